//! Forms in modals: <https://docs.slack.dev/surfaces/modals>,
//! <https://docs.slack.dev/reference/block-kit/blocks/input-block>.

use super::{
    decode::{SlackDecoder, attachment},
    event_handler::{SlackEventHandler, SlackIntakeError},
    wire::{Actions, FormPlace, SlackFile, Submission},
};
use crate::{
    EventKey, EventSink, FormAccess, Inbound, InboundKind, OpenForm, Sender,
    clock::now,
    form::{Submitted, blank, cut, input_id, option_at},
    lenient,
    render::{parse, slack::mrkdwn},
};
use pudu_base::{FieldKind, FormField};
use pudu_texts::Language;
use serde_json::{Map, Value, json};

/// Id of pudu's modals.
const MODAL: &str = "pudu_form";
/// Id of the one element of each block.
const ELEMENT: &str = "answer";
/// Maximum lengths of a modal's title and buttons, an input's label, its placeholder, an option, an error, and a
/// section's text, in characters.
const TITLE: usize = 24;
const LABEL: usize = 2000;
const PLACEHOLDER: usize = 150;
const OPTION: usize = 75;
const SECTION: usize = 3000;

impl SlackEventHandler {
    /// Opens the form of a pressed button. A modal that cannot be opened is only logged: another press would need
    /// another trigger anyway.
    pub(super) async fn open_form(
        &self,
        pressed: &Actions,
        inbound: Inbound,
        sink: &dyn EventSink,
    ) -> Result<(), SlackIntakeError> {
        let place = FormPlace {
            channel: inbound.address.chat.clone(),
            message: inbound.message.clone(),
            thread: inbound.address.topic.clone(),
        };
        let inbound = blank(inbound);
        let view = match sink.form(&inbound).await? {
            FormAccess::Open(open) => modal(&open, &place),
            FormAccess::Refused(why) => notice(&why, inbound.sender.language.as_deref()),
        };
        let params = json!({"trigger_id": pressed.trigger_id, "view": view});
        if let Err(error) = self.state.client.write::<Value>("views.open", &params).await {
            tracing::warn!(account = &*self.account, %error, "failed to open form");
        }
        Ok(())
    }

    /// Stores the answers of a submitted form. Returns the payload of the acknowledgement, if Slack has to show errors.
    pub(super) async fn submit_form(
        &self,
        submission: &Submission,
        sink: &dyn EventSink,
    ) -> Result<Option<Value>, SlackIntakeError> {
        let Some(inbound) = self.decoder(self.me()?).submission(submission, now()) else { return Ok(None) };
        let inbound = self.with_sender_name(inbound).await;
        let open = match sink.form(&inbound).await? {
            FormAccess::Open(open) => open,
            FormAccess::Refused(why) => {
                let view = notice(&why, inbound.sender.language.as_deref());
                return Ok(Some(json!({"response_action": "update", "view": view})));
            }
        };
        let values = &submission.view.state["values"];
        let answer = |at: usize, field: &FormField| answer(field, &values[input_id(at)][ELEMENT]);
        let submitted = open.submit(sink, inbound, files(&open, values), answer).await?;
        let Submitted::Wrong(problems) = submitted else { return Ok(None) };
        let errors = problems.into_iter().map(|(at, why)| (input_id(at), why.into()));
        Ok(Some(json!({"response_action": "errors", "errors": errors.collect::<Map<_, _>>()})))
    }
}

impl SlackDecoder<'_> {
    /// Decodes a submitted form, without its answers. `now` is in milliseconds since 1970.
    fn submission(&self, submission: &Submission, now: i64) -> Option<Inbound> {
        let (view, user) = (&submission.view, &submission.user);
        if view.callback_id != MODAL || view.id.is_empty() || user.id.is_empty() {
            return None;
        }
        let place: FormPlace = lenient::from_bytes(view.private_metadata.as_bytes()).ok()?;
        if place.channel.is_empty() || place.message.is_empty() {
            return None;
        }
        let team = user.team_id.as_deref().or_else(|| Some(submission.team.as_ref()?.id.as_str()));
        Some(Inbound {
            key: EventKey(format!("v{}", view.id)),
            address: self.place(&place.channel, place.thread.as_deref()),
            private: place.channel.starts_with('D'),
            message: place.message,
            reply_to: place.thread,
            sender: Sender {
                id: user.id.clone(),
                name: user.name.clone().unwrap_or_else(|| user.id.clone()),
                language: None,
            },
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: Some(self.hint(team)),
            kind: InboundKind::Submit { text: String::new(), attachments: Vec::new() },
        })
    }
}

fn modal(open: &OpenForm, place: &FormPlace) -> Value {
    let language = open.language;
    let mut blocks = vec![section(&open.form.text)];
    blocks.extend(open.form.inputs(true).map(|(at, field)| input(language, at, field)));
    json!({
        "type": "modal", "callback_id": MODAL, "private_metadata": json!(place).to_string(),
        "title": plain(language.button_answer(), TITLE), "submit": plain(language.button_answer(), TITLE),
        "blocks": blocks,
    })
}

/// Returns a modal that only shows a text.
fn notice(text: &str, language: Option<&str>) -> Value {
    let language = language.and_then(Language::of_person).unwrap_or_default();
    let text = if text.is_empty() { language.form_unread() } else { text };
    json!({"type": "modal", "title": plain(language.button_answer(), TITLE), "blocks": [section(text)]})
}

fn plain(text: &str, max: usize) -> Value {
    json!({"type": "plain_text", "text": cut(text, max)})
}

fn section(markdown: &str) -> Value {
    json!({"type": "section", "text": {"type": "mrkdwn", "text": cut(&mrkdwn(&parse(markdown)), SECTION)}})
}

fn input(language: Language, at: usize, field: &FormField) -> Value {
    json!({
        "type": "input", "block_id": input_id(at), "label": plain(&field.label, LABEL),
        "optional": !field.required, "element": element(language, field),
    })
}

fn element(language: Language, field: &FormField) -> Value {
    let options = || -> Vec<Value> {
        let all = field.options.iter().enumerate();
        all.map(|(at, option)| json!({"text": plain(option, OPTION), "value": at.to_string()})).collect()
    };
    let yes = || json!([{"text": plain(language.form_yes(), OPTION), "value": "yes"}]);
    let mut element = match field.kind {
        FieldKind::Text => json!({"type": "plain_text_input"}),
        FieldKind::Textarea => json!({"type": "plain_text_input", "multiline": true}),
        FieldKind::Number => json!({"type": "number_input", "is_decimal_allowed": true}),
        FieldKind::Select => json!({"type": "static_select", "options": options()}),
        FieldKind::MultiSelect => json!({"type": "multi_static_select", "options": options()}),
        FieldKind::Checkbox => json!({"type": "checkboxes", "options": yes()}),
        FieldKind::Date => json!({"type": "datepicker"}),
        FieldKind::File => json!({"type": "file_input"}),
    };
    element["action_id"] = ELEMENT.into();
    let hinted = !matches!(field.kind, FieldKind::Checkbox | FieldKind::File);
    if let Some(hint) = field.placeholder.as_deref().filter(|hint| hinted && !hint.is_empty()) {
        element["placeholder"] = plain(hint, PLACEHOLDER);
    }
    element
}

/// Returns the answer in an element's state.
fn answer(field: &FormField, state: &Value) -> Value {
    match field.kind {
        FieldKind::Text | FieldKind::Textarea | FieldKind::Number => state["value"].clone(),
        FieldKind::Date => state["selected_date"].clone(),
        FieldKind::Select => option_at(field, &state["selected_option"]["value"]),
        FieldKind::MultiSelect => {
            let chosen = state["selected_options"].as_array().into_iter().flatten();
            chosen.map(|option| option_at(field, &option["value"])).collect()
        }
        FieldKind::Checkbox => {
            let chosen = state["selected_options"].as_array();
            Value::Bool(chosen.is_some_and(|chosen| !chosen.is_empty()))
        }
        FieldKind::File => Value::Null,
    }
}

/// Returns the uploaded files.
fn files(open: &OpenForm, values: &Value) -> Vec<crate::Attachment> {
    let fields = open.form.inputs(true).filter(|(_, field)| field.kind == FieldKind::File);
    let files =
        fields.flat_map(|(at, _)| values[input_id(at)][ELEMENT]["files"].as_array().into_iter().flatten());
    files.filter_map(|file| attachment(&lenient::read::<SlackFile>(file.clone(), "file")?)).collect()
}

#[cfg(test)]
mod tests;
