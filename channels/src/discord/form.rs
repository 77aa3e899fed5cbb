//! Forms in modals: <https://docs.discord.com/developers/components/reference#label>,
//! <https://docs.discord.com/developers/interactions/receiving-and-responding>.

use super::{
    decode::MODAL,
    event_handler::{DiscordEventHandler, DiscordIntakeError, EventResponse},
    page::quiet,
    wire::Interaction,
};
use crate::{
    EventSink, FormAccess, Inbound, OpenForm,
    form::{Submitted, blank, cut, input_id, option_at},
};
use pudu_base::{FieldKind, FormField};
use pudu_texts::Language;
use serde_json::{Value, json};

/// Maximum lengths of a title or label, of a text input's placeholder, of an option and of a typed answer, in characters.
const LABEL: usize = 45;
const PLACEHOLDER: usize = 100;
const OPTION: usize = 100;
const TYPED: usize = 4000;
/// Maximum length of the message about errors, in characters.
const MESSAGE: usize = 2000;
/// Flag of a message that only one user sees.
const EPHEMERAL: u64 = 1 << 6;

/// Types of responses and components.
const RESPOND: u64 = 4;
const SHOW_MODAL: u64 = 9;
const SELECT: u64 = 3;
const TEXT_INPUT: u64 = 4;
const LABELLED: u64 = 18;

impl DiscordEventHandler {
    /// Returns the response to a press that opens a form.
    pub(super) async fn open_form(
        &self,
        interaction: &Interaction,
        inbound: Inbound,
        sink: &dyn EventSink,
    ) -> Result<EventResponse, DiscordIntakeError> {
        let body = match sink.form(&blank(inbound)).await? {
            FormAccess::Open(open) => json!({"type": SHOW_MODAL, "data": modal(&open)}),
            FormAccess::Refused(why) => aside(&why),
        };
        Ok(EventResponse::Respond { id: interaction.id.clone(), token: interaction.token.clone(), body })
    }

    /// Stores the answers of a submitted form, and returns the response.
    pub(super) async fn submit_form(
        &self,
        interaction: &Interaction,
        inbound: Inbound,
        sink: &dyn EventSink,
    ) -> Result<EventResponse, DiscordIntakeError> {
        let (id, token) = (interaction.id.clone(), interaction.token.clone());
        let open = match sink.form(&inbound).await? {
            FormAccess::Open(open) => open,
            FormAccess::Refused(why) => return Ok(EventResponse::Respond { id, token, body: aside(&why) }),
        };
        let answer = |at: usize, field: &FormField| answer(field, input(interaction, &input_id(at)));
        match open.submit(sink, inbound, Vec::new(), answer).await? {
            Submitted::Accepted => Ok(EventResponse::Press { id, token }),
            Submitted::Wrong(problems) => {
                let body = aside(&open.problems_in_words(&problems));
                Ok(EventResponse::Respond { id, token, body })
            }
        }
    }
}

/// Returns a response that only the user sees.
fn aside(text: &str) -> Value {
    let mut data = quiet();
    data["content"] = cut(text, MESSAGE).into();
    data["flags"] = (data["flags"].as_u64().unwrap_or_default() | EPHEMERAL).into();
    json!({"type": RESPOND, "data": data})
}

fn modal(open: &OpenForm) -> Value {
    let title = cut(open.language.button_answer(), LABEL);
    let inputs = open.form.inputs(false).map(|(at, field)| {
        let component = component(open.language, at, field);
        json!({"type": LABELLED, "label": cut(&field.label, LABEL), "component": component})
    });
    json!({"custom_id": MODAL, "title": title, "components": inputs.collect::<Vec<_>>()})
}

fn component(language: Language, at: usize, field: &FormField) -> Value {
    let option =
        |(value, label): (usize, &str)| json!({"label": cut(label, OPTION), "value": value.to_string()});
    let select = |options: &mut dyn Iterator<Item = &str>, max: usize| {
        let options: Vec<Value> = options.enumerate().map(option).collect();
        let min = usize::from(field.required);
        json!({
            "type": SELECT, "custom_id": input_id(at), "options": options, "required": field.required,
            "min_values": min, "max_values": max.max(1),
        })
    };
    let style = if field.kind == FieldKind::Textarea { 2 } else { 1 };
    match field.kind {
        FieldKind::Select => select(&mut field.options.iter().map(String::as_str), 1),
        FieldKind::MultiSelect => select(&mut field.options.iter().map(String::as_str), field.options.len()),
        FieldKind::Checkbox => select(&mut [language.form_yes()].into_iter(), 1),
        FieldKind::Text | FieldKind::Textarea | FieldKind::Number | FieldKind::Date | FieldKind::File => {
            let hint = match field.kind {
                FieldKind::Date => Some("YYYY-MM-DD"),
                _ => field.placeholder.as_deref(),
            };
            json!({
                "type": TEXT_INPUT, "custom_id": input_id(at), "style": style, "required": field.required,
                "max_length": TYPED, "placeholder": cut(hint.unwrap_or_default(), PLACEHOLDER),
            })
        }
    }
}

/// Returns the submitted component with an id.
fn input<'a>(interaction: &'a Interaction, id: &str) -> &'a Value {
    let inputs = interaction.data.components.iter().map(|labelled| &labelled["component"]);
    inputs.into_iter().find(|input| input["custom_id"] == id).unwrap_or(&Value::Null)
}

fn answer(field: &FormField, input: &Value) -> Value {
    let chosen = || input["values"].as_array().into_iter().flatten();
    match field.kind {
        FieldKind::Select => chosen().next().map_or(Value::Null, |value| option_at(field, value)),
        FieldKind::MultiSelect => chosen().map(|value| option_at(field, value)).collect(),
        FieldKind::Checkbox => Value::Bool(chosen().next().is_some()),
        FieldKind::Text | FieldKind::Textarea | FieldKind::Number | FieldKind::Date | FieldKind::File => {
            input["value"].clone()
        }
    }
}

#[cfg(test)]
mod tests;
