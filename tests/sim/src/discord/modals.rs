//! Modals, checked like the platform, and submissions of users.

use super::{
    error::{Answer, Refusal},
    interactions, wire,
    world::World,
};
use serde_json::{Value, json};

/// Maximum number of components of a modal, and of options of a select.
const COMPONENTS: usize = 5;
const OPTIONS: usize = 25;
/// Maximum lengths in characters.
const TITLE: usize = 45;
const ID: usize = 100;
const PLACEHOLDER: usize = 100;
const OPTION: usize = 100;
const TYPED: u64 = 4000;

/// A modal that the bot showed.
#[derive(Clone, Debug)]
pub struct Modal {
    /// The user.
    pub person: String,
    /// The message whose button was pressed.
    pub(crate) source: Option<u64>,
    /// Its content.
    pub content: Value,
}

/// Returns the error of a modal, if any.
pub(crate) fn check(modal: &Value) -> Answer<()> {
    text(&modal["custom_id"], 1, ID, "custom_id")?;
    text(&modal["title"], 1, TITLE, "title")?;
    let components = modal["components"].as_array().map(Vec::as_slice).unwrap_or_default();
    if components.is_empty() || components.len() > COMPONENTS {
        return Err(wrong("components", "Must be between 1 and 5 in length."));
    }
    components.iter().try_for_each(|labelled| {
        if labelled["type"] != 18 {
            return Err(wrong("components", "Value of field \"type\" must be one of (18)."));
        }
        text(&labelled["label"], 1, TITLE, "label")?;
        input(&labelled["component"])
    })
}

fn input(input: &Value) -> Answer<()> {
    text(&input["custom_id"], 1, ID, "custom_id")?;
    if !input["placeholder"].is_null() {
        text(&input["placeholder"], 0, PLACEHOLDER, "placeholder")?;
    }
    match input["type"].as_u64() {
        Some(4) => {
            let styled = matches!(input["style"].as_u64(), Some(1 | 2));
            let fits = input["max_length"].as_u64().is_none_or(|max| (1..=TYPED).contains(&max));
            if styled && fits { Ok(()) } else { Err(wrong("component", "Invalid style or length.")) }
        }
        Some(3) => {
            let options = input["options"].as_array().map(Vec::as_slice).unwrap_or_default();
            let max = input["max_values"].as_u64().unwrap_or(1);
            let many = u64::try_from(options.len()).unwrap_or(u64::MAX);
            let optional = input["required"] == false;
            let min = input["min_values"].as_u64().unwrap_or(1);
            if options.is_empty() || options.len() > OPTIONS || max == 0 || max > many || min > max {
                return Err(wrong("options", "Invalid number of options."));
            }
            if min == 0 && !optional {
                return Err(wrong("min_values", "A required select needs a value."));
            }
            options.iter().try_for_each(|option| {
                text(&option["label"], 1, OPTION, "label")?;
                text(&option["value"], 1, OPTION, "value")
            })
        }
        _ => Err(wrong("component", "This component is not known here.")),
    }
}

fn text(value: &Value, min: usize, max: usize, name: &str) -> Answer<()> {
    let fits = value.as_str().is_some_and(|text| (min..=max).contains(&text.chars().count()));
    if fits { Ok(()) } else { Err(wrong(name, "Must have a valid length.")) }
}

fn wrong(field: &str, why: &str) -> Refusal {
    Refusal::form(field, "BASE_TYPE_BAD_LENGTH", why)
}

impl World {
    pub(crate) fn submit(&mut self, modal: usize, values: &Value) -> bool {
        let Some(modal) = self.modals.get(modal).cloned() else { return false };
        let Some(message) = modal.source.and_then(|id| self.messages.get(&id)) else { return false };
        let (channel, told) = (message.channel.clone(), wire::message(self, message));
        let labelled = modal.content["components"].as_array().into_iter().flatten();
        let components: Vec<Value> = labelled
            .enumerate()
            .map(|(at, labelled)| {
                let input = submitted(&labelled["component"], values);
                json!({"type": 18, "id": at * 2 + 1, "component": input})
            })
            .collect();
        let data = json!({"custom_id": modal.content["custom_id"], "components": components});
        interactions::begin(self, &channel, &modal.person, 5, &data, Some(told));
        true
    }
}

fn submitted(input: &Value, values: &Value) -> Value {
    let id = &input["custom_id"];
    let value = &values[id.as_str().unwrap_or_default()];
    if input["type"] == 4 {
        return json!({"type": 4, "id": 2, "custom_id": id, "value": value.as_str().unwrap_or_default()});
    }
    let labels = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let options = input["options"].as_array().cloned().unwrap_or_default();
    let chosen = options.iter().filter(|option| labels.contains(&option["label"]));
    let chosen: Vec<&Value> = chosen.map(|option| &option["value"]).collect();
    json!({"type": 3, "id": 2, "custom_id": id, "values": chosen})
}
