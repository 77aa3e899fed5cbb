//! Forms below finished replies: a button opens one, and submitted answers are checked and stored like a message.
//!
//! The fields are read from the stored reply each time, so that forms survive a restart. Each platform only maps fields
//! to its widgets and back. Deliberately absent: access, and whether a form is still open: the event sink decides both.

use crate::{AcceptError, Attachment, EventSink, FORM_ACTION, Inbound, InboundKind, OpenForm, QuestionForm};
use pudu_base::{FieldKind, FieldProblem, FormField, check_form, form_answer};
use pudu_texts::Language;
use serde_json::{Map, Value};

/// Maximum length of a label in a list of wrong answers, in characters.
const MAX_LABEL_CHARS: usize = 100;

/// Result of submitted answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// The answers are stored.
    Accepted,
    /// These fields have to be corrected, by index; each with a text for the sender.
    Wrong(Vec<(usize, String)>),
}

impl QuestionForm {
    /// Returns the fields that become inputs, each with its index. Files are inputs on few platforms.
    pub(crate) fn inputs(&self, files: bool) -> impl Iterator<Item = (usize, &FormField)> {
        let fields = self.fields.iter().enumerate();
        fields.filter(move |(_, field)| files || field.kind != FieldKind::File)
    }

    /// Returns the request to send the files in the chat, for platforms whose forms have no files.
    pub(crate) fn files_hint(&self, language: Language) -> Option<String> {
        let files = self.fields.iter().filter(|field| field.kind == FieldKind::File);
        let labels: Vec<&str> = files.map(|field| field.label.as_str()).collect();
        (!labels.is_empty()).then(|| language.form_files(language.list(&labels)))
    }
}

impl OpenForm {
    /// Checks the answers, read by the index of each field, and stores them as the event `inbound`.
    ///
    /// # Errors
    /// If the event cannot be stored. The platform then has to deliver the answers again.
    pub(crate) async fn submit(
        &self,
        sink: &dyn EventSink,
        inbound: Inbound,
        attachments: Vec<Attachment>,
        answer: impl Fn(usize, &FormField) -> Value,
    ) -> Result<Submitted, AcceptError> {
        let answers = self.form.inputs(false).map(|(at, field)| (field.name.clone(), answer(at, field)));
        let answers: Map<String, Value> = answers.collect();
        let fields: Vec<FormField> = self.form.inputs(false).map(|(_, field)| field.clone()).collect();
        match check_form(&fields, &answers) {
            Ok(checked) => {
                let text = form_answer(&fields, &checked);
                sink.accept(Inbound { kind: InboundKind::Submit { text, attachments }, ..inbound }).await?;
                Ok(Submitted::Accepted)
            }
            Err(problems) => Ok(Submitted::Wrong(self.describe(&problems))),
        }
    }

    /// Describes wrong answers as one text, for platforms that show no errors at the fields.
    pub(crate) fn problems_in_words(&self, problems: &[(usize, String)]) -> String {
        let label = |at: usize| self.form.fields.get(at).map_or("", |field| field.label.as_str());
        let lines = problems.iter().map(|(at, why)| format!("{}: {why}", cut(label(*at), MAX_LABEL_CHARS)));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn describe(&self, problems: &[(&str, FieldProblem)]) -> Vec<(usize, String)> {
        let problem_of = |name: &str| problems.iter().find(|(wrong, _)| *wrong == name).map(|(_, why)| *why);
        let wrong =
            self.form.inputs(false).filter_map(|(at, field)| Some((at, field, problem_of(&field.name)?)));
        wrong.map(|(at, field, why)| (at, problem(self.language, field, why))).collect()
    }
}

fn problem(language: Language, field: &FormField, why: FieldProblem) -> String {
    match why {
        FieldProblem::Missing => language.form_missing().to_owned(),
        FieldProblem::NotNumber => language.form_number().to_owned(),
        FieldProblem::NotDate => language.form_date().to_owned(),
        FieldProblem::NotOption => language.form_option(field.options.join(" / ")),
        FieldProblem::NotYesOrNo => language.form_yes_or_no().to_owned(),
        FieldProblem::TooLong => language.form_long().to_owned(),
    }
}

/// Returns whether an event opens a form.
pub(crate) fn opens(inbound: &Inbound) -> bool {
    matches!(&inbound.kind, InboundKind::Press { action } if action == FORM_ACTION)
}

/// Returns the event as the submission of a form, without answers.
pub(crate) fn blank(inbound: Inbound) -> Inbound {
    Inbound { kind: InboundKind::Submit { text: String::new(), attachments: Vec::new() }, ..inbound }
}

/// Returns the id of an input.
pub(crate) fn input_id(at: usize) -> String {
    format!("field_{at}")
}

/// Returns the option with an index, sent by a widget as its value. A widget's values are indexes, because platforms
/// limit their length.
pub(crate) fn option_at(field: &FormField, value: &Value) -> Value {
    let found = value.as_str().and_then(|value| field.options.get(value.parse::<usize>().ok()?));
    // An unknown value is reported as no option.
    found.map_or_else(|| value.clone(), |option| option.as_str().into())
}

/// Cuts a text to `max` characters.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Accepted, Address, BoxFuture, EventKey, FormAccess, ReplyStoreError, Sender};
    use serde_json::json;
    use std::sync::Mutex;

    /// Event sink with one form, or without.
    #[derive(Default)]
    pub(crate) struct FormSink {
        pub(crate) form: Option<QuestionForm>,
        pub(crate) kept: Mutex<Vec<Inbound>>,
    }

    impl EventSink for FormSink {
        fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
            self.kept.lock().unwrap().push(inbound);
            Box::pin(std::future::ready(Ok(Accepted::New)))
        }

        fn form<'a>(&'a self, _: &'a Inbound) -> BoxFuture<'a, Result<FormAccess, ReplyStoreError>> {
            let open = self.form.clone().map(|form| OpenForm { form, language: Language::English });
            let access = open.map(|open| FormAccess::Open(Box::new(open)));
            Box::pin(std::future::ready(Ok(
                access.unwrap_or_else(|| FormAccess::Refused("It is over.".into()))
            )))
        }

        crate::event_sink::knows_no_messages!();
    }

    impl FormSink {
        /// Returns the stored answers.
        pub(crate) fn answers(&self) -> Vec<String> {
            let text = |inbound: &Inbound| match &inbound.kind {
                InboundKind::Submit { text, .. } => text.clone(),
                other => format!("{other:?}"),
            };
            self.kept.lock().unwrap().iter().map(text).collect()
        }
    }

    /// A form with a field of each kind, named after it. Only the first is required.
    pub(crate) fn form_of_each_kind() -> QuestionForm {
        use FieldKind::{Checkbox, Date, File, MultiSelect, Number, Select, Text, Textarea};
        let kinds = [Text, Textarea, Number, Select, MultiSelect, Checkbox, Date, File];
        let field = |kind: FieldKind| FormField {
            name: format!("{kind:?}").to_lowercase(),
            label: format!("{kind:?}"),
            kind,
            required: kind == Text,
            options: if matches!(kind, Select | MultiSelect) {
                vec!["S".into(), "L, with lid".into()]
            } else {
                Vec::new()
            },
            placeholder: (kind == Text).then(|| "Ada".to_owned()),
        };
        QuestionForm { text: "Where **to**?".into(), fields: kinds.map(field).to_vec() }
    }

    fn submission() -> Inbound {
        Inbound {
            key: EventKey("v1".into()),
            address: Address { account: "a".into(), chat: "c".into(), topic: None },
            private: true,
            message: "9".into(),
            reply_to: None,
            sender: Sender { id: "7".into(), name: "Ada".into(), language: None },
            addressed: true,
            at: 0,
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Submit { text: String::new(), attachments: Vec::new() },
        }
    }

    #[tokio::test]
    async fn checked_answers_become_an_event_and_wrong_ones_are_named_by_their_field() {
        let (sink, open) =
            (FormSink::default(), OpenForm { form: form_of_each_kind(), language: Language::English });
        let submit = async |answers: Value| {
            let answer = |at: usize, _: &FormField| answers[at].clone();
            open.submit(&sink, submission(), Vec::new(), answer).await.unwrap()
        };
        let lines = vec![(0, "Please fill this in.".to_owned()), (99, "?".to_owned())];
        assert_eq!(open.problems_in_words(&lines), "Text: Please fill this in.\n: ?");
        let wrong = submit(json!([" ", null, "many", "XL", ["XL"], "perhaps", "soon", "?"])).await;
        let Submitted::Wrong(wrong) = wrong else { panic!("the form is accepted") };
        assert_eq!(wrong.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6]);
        assert_eq!(wrong[0].1, "Please fill this in.");
        assert_eq!(wrong[2].1, "Please choose one of the options: S / L, with lid");
        let huge = submit(json!(["x".repeat(20_000)])).await;
        assert_eq!(huge, Submitted::Wrong(vec![(0, "This is too long.".into())]));
        assert!(sink.answers().is_empty());
        let right = submit(json!(["Ada", "", "2", "S", ["S", "L, with lid"], true, "2026-12-01", "?"])).await;
        assert_eq!(right, Submitted::Accepted);
        let lines =
            "Text: Ada\nNumber: 2\nSelect: S\nMultiSelect: S, L, with lid\nCheckbox: yes\nDate: 2026-12-01";
        assert_eq!(sink.answers(), [lines]);
    }

    #[test]
    fn a_widget_names_options_by_index_and_long_texts_are_cut() {
        let field =
            FormField { options: vec!["1".into(), "0".into()], ..form_of_each_kind().fields[3].clone() };
        assert_eq!(option_at(&field, &json!("0")), "1");
        assert_eq!(option_at(&field, &json!("7")), "7");
        assert_eq!(option_at(&field, &json!(null)), Value::Null);
        assert_eq!([cut("héllo", 5), cut("héllo", 4)], ["héllo", "hél…"]);
    }
}
