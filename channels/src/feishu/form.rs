//! Forms inside cards: <https://open.feishu.cn/document/feishu-cards/card-json-v2-components/containers/form-container>.
//! A form has no files: they are sent in the chat.

use crate::{
    Choice, FORM_ACTION, QuestionForm,
    form::{cut, input_id, option_at},
    reply::MessageDraft,
};
use pudu_base::{FieldKind, FormField};
use pudu_texts::Language;
use serde_json::{Value, json};

/// Maximum length of a typed answer, and of a placeholder, in characters.
const TYPED: usize = 1000;
const PLACEHOLDER: usize = 100;

/// The form of a finished message, with the button that submits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeishuForm {
    form: QuestionForm,
    language: Language,
    button: Choice,
}

impl FeishuForm {
    /// Returns the form of a message, unless the message has no button for it.
    pub(super) fn new(draft: &MessageDraft) -> Option<Self> {
        let button = draft.choices.iter().find(|choice| choice.action == FORM_ACTION)?;
        Some(Self { form: draft.form.clone()?, language: draft.language, button: button.clone() })
    }

    /// Returns the card's element.
    pub(super) fn element(&self) -> Value {
        let fields = self.form.inputs(false);
        let mut elements: Vec<Value> =
            fields.flat_map(|(at, field)| inputs(self.language, at, field)).collect();
        elements.extend(self.form.files_hint(self.language).map(|hint| label(&hint)));
        elements.push(json!({
            "tag": "button", "name": "submit", "text": plain(&self.button.label), "type": "primary",
            "form_action_type": "submit",
            "behaviors": [{"type": "callback", "value": {"action": self.button.action}}],
        }));
        json!({"tag": "form", "name": "pudu_form", "element_id": "form", "elements": elements})
    }
}

fn plain(text: &str) -> Value {
    json!({"tag": "plain_text", "content": text})
}

fn label(text: &str) -> Value {
    json!({"tag": "div", "text": plain(text)})
}

/// Returns the elements of a field: its label and its input.
fn inputs(language: Language, at: usize, field: &FormField) -> Vec<Value> {
    let star = if field.required { " *" } else { "" };
    let text = format!("{}{star}", field.label);
    let options = || -> Vec<Value> {
        let all = field.options.iter().enumerate();
        all.map(|(at, option)| json!({"text": plain(option), "value": at.to_string()})).collect()
    };
    let mut input = match field.kind {
        FieldKind::Text | FieldKind::Number | FieldKind::File => json!({"tag": "input", "max_length": TYPED}),
        FieldKind::Textarea => json!({"tag": "input", "input_type": "multiline_text", "max_length": TYPED}),
        FieldKind::Select => json!({"tag": "select_static", "options": options()}),
        FieldKind::MultiSelect => json!({"tag": "multi_select_static", "options": options()}),
        FieldKind::Date => json!({"tag": "date_picker"}),
        FieldKind::Checkbox => {
            json!({"tag": "checker", "text": plain(language.form_yes()), "checked": false})
        }
    };
    input["name"] = input_id(at).into();
    if field.kind != FieldKind::Checkbox {
        input["required"] = field.required.into();
        if let Some(hint) = field.placeholder.as_deref() {
            input["placeholder"] = plain(&cut(hint, PLACEHOLDER));
        }
    }
    vec![label(&text), input]
}

/// Returns the answer of a field in the values of a submitted form.
pub(super) fn answer(at: usize, field: &FormField, values: &Value) -> Value {
    let value = &values[input_id(at)];
    match field.kind {
        FieldKind::Select => option_at(field, value),
        FieldKind::MultiSelect => {
            value.as_array().into_iter().flatten().map(|value| option_at(field, value)).collect()
        }
        FieldKind::Checkbox => Value::Bool(value == true || value == "true"),
        FieldKind::Text | FieldKind::Textarea | FieldKind::Number | FieldKind::Date | FieldKind::File => {
            value.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::tests::form_of_each_kind;

    #[test]
    fn each_kind_of_field_has_its_element() {
        let button = Choice { label: "Answer".into(), action: FORM_ACTION.into() };
        let draft = MessageDraft {
            form: Some(form_of_each_kind()),
            choices: vec![button],
            ..MessageDraft::default()
        };
        let element = FeishuForm::new(&draft).unwrap().element();
        let tags: Vec<&Value> = element["elements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["tag"])
            .filter(|tag| *tag != "div")
            .collect();
        assert_eq!(
            tags,
            [
                "input",
                "input",
                "input",
                "select_static",
                "multi_select_static",
                "checker",
                "date_picker",
                "button"
            ]
        );
        assert_eq!(element["elements"][0]["text"]["content"], "Text *");
        let name = json!({
            "tag": "input", "max_length": 1000, "name": "field_0", "required": true,
            "placeholder": {"tag": "plain_text", "content": "Ada"},
        });
        assert_eq!(element["elements"][1], name);
        assert_eq!(element["elements"][14]["text"]["content"], "Please send these in the chat: File");
        assert!(
            FeishuForm::new(&MessageDraft { choices: Vec::new(), ..draft }).is_none(),
            "the form has expired"
        );
    }

    #[test]
    fn answers_are_read_by_the_kind_of_their_field() {
        let fields = form_of_each_kind().fields;
        let read = |at: usize, value: Value| answer(at, &fields[at], &json!({input_id(at): value}));
        assert_eq!(read(0, json!("Ada")), "Ada");
        assert_eq!(read(3, json!("1")), "L, with lid");
        assert_eq!(read(4, json!(["0", "9", 7])), json!(["S", "9", 7]));
        assert_eq!([read(5, json!(true)), read(5, json!(null))], [true, false]);
        assert_eq!(read(6, json!("2026-12-01 +0800")), "2026-12-01 +0800");
        assert_eq!(answer(0, &fields[0], &json!(7)), Value::Null);
    }
}
