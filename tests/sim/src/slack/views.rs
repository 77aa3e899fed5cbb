//! Modals: `views.open`, checked like the platform, and submissions of users.

use super::{
    error::{Answer, Refusal},
    params::Params,
    wire,
    world::{APP, TEAM, World},
};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How long a trigger is valid.
const TRIGGER: Duration = Duration::from_secs(3);
/// Maximum number of blocks of a modal, and of options of a select and of checkboxes.
const BLOCKS: usize = 100;
const OPTIONS: usize = 100;
const BOXES: usize = 10;
/// Maximum lengths in characters.
const TITLE: usize = 24;
const LABEL: usize = 2000;
const SECTION: usize = 3000;
const PLACEHOLDER: usize = 150;
const OPTION: usize = 75;
const VALUE: usize = 150;
const METADATA: usize = 3000;
const ID: usize = 255;

/// A modal of the app.
#[derive(Clone, Debug)]
pub struct View {
    /// Its ID.
    pub id: String,
    /// The user who sees it.
    pub person: String,
    /// Its content.
    pub content: Value,
    /// Errors of the last submission, by block.
    pub errors: Value,
    /// Whether it is open.
    pub open: bool,
}

/// Permission to open a modal.
pub(crate) struct Trigger {
    pub(crate) id: String,
    pub(crate) person: String,
    pub(crate) at: Instant,
    pub(crate) used: bool,
}

pub(crate) fn open(world: &mut World, params: &Params) -> Answer {
    let id = params.need("trigger_id")?.to_owned();
    let missing = || Refusal::argument("invalid_arguments", "missing required field: view");
    let view = params.object("view")?.ok_or_else(missing)?;
    let trigger = world.triggers.iter_mut().find(|trigger| trigger.id == id);
    let trigger = trigger.ok_or_else(|| Refusal::new("invalid_trigger_id"))?;
    if trigger.used {
        return Err(Refusal::new("exchanged_trigger_id"));
    }
    if trigger.at.elapsed() > TRIGGER {
        return Err(Refusal::new("expired_trigger_id"));
    }
    check(&view).map_err(|why| Refusal::argument("invalid_arguments", &why))?;
    trigger.used = true;
    let (person, id) = (trigger.person.clone(), world.id('V'));
    let shown = View { id: id.clone(), person, content: view.clone(), errors: Value::Null, open: true };
    world.views.push(shown);
    let mut view = view;
    view["id"] = id.into();
    Ok(json!({"ok": true, "view": view}))
}

fn check(view: &Value) -> Result<(), String> {
    if view["type"] != "modal" {
        return Err("unsupported type of view".to_owned());
    }
    plain(&view["title"], TITLE, "title")?;
    let blocks = view["blocks"].as_array().ok_or("missing required field: blocks")?;
    if blocks.len() > BLOCKS {
        return Err(format!("no more than {BLOCKS} items allowed [json-pointer:/view/blocks]"));
    }
    let inputs = blocks.iter().filter(|block| block["type"] == "input");
    if inputs.clone().next().is_some() {
        plain(&view["submit"], TITLE, "submit")?;
    }
    let long = |name: &str, max: usize| view[name].as_str().is_some_and(|text| text.chars().count() > max);
    if long("private_metadata", METADATA) || long("callback_id", ID) {
        return Err("private_metadata or callback_id is too long".to_owned());
    }
    let mut ids: Vec<&str> = inputs.filter_map(|block| block["block_id"].as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() < all {
        return Err("block_id already exists".to_owned());
    }
    blocks.iter().try_for_each(block)
}

fn block(block: &Value) -> Result<(), String> {
    match block["type"].as_str() {
        Some("section") => sized(&block["text"], SECTION, "text"),
        Some("input") => {
            plain(&block["label"], LABEL, "label")?;
            let id = block["block_id"].as_str().unwrap_or("x");
            if !(1..=ID).contains(&id.chars().count()) {
                return Err("block_id is too long or empty".to_owned());
            }
            element(&block["element"])
        }
        other => Err(format!("unsupported type: {}", other.unwrap_or("missing"))),
    }
}

fn element(element: &Value) -> Result<(), String> {
    let options = |max: usize| -> Result<(), String> {
        let options = element["options"].as_array().ok_or("missing required field: options")?;
        if options.is_empty() || options.len() > max {
            return Err(format!("must have between 1 and {max} options"));
        }
        options.iter().try_for_each(|option| {
            let fits = option["value"].as_str().is_some_and(|value| value.chars().count() <= VALUE);
            if !fits {
                return Err("value is missing or too long".to_owned());
            }
            plain(&option["text"], OPTION, "option")
        })
    };
    let placed = element["placeholder"].is_object();
    match element["type"].as_str() {
        Some("plain_text_input" | "datepicker") => Ok(()),
        Some("number_input") if element["is_decimal_allowed"].is_boolean() => Ok(()),
        Some("static_select" | "multi_static_select") => options(OPTIONS),
        Some("checkboxes") if !placed => options(BOXES),
        Some("file_input") if !placed => Ok(()),
        other => Err(format!("unsupported element: {}", other.unwrap_or("missing"))),
    }?;
    if placed { plain(&element["placeholder"], PLACEHOLDER, "placeholder") } else { Ok(()) }
}

fn plain(text: &Value, max: usize, name: &str) -> Result<(), String> {
    if text["type"] != "plain_text" {
        return Err(format!("{name} must be plain_text"));
    }
    sized(text, max, name)
}

fn sized(text: &Value, max: usize, name: &str) -> Result<(), String> {
    let length = text["text"].as_str().map_or(0, |text| text.chars().count());
    if (1..=max).contains(&length) { Ok(()) } else { Err(format!("{name} must have 1 to {max} characters")) }
}

impl World {
    /// Issues a trigger for a user's action.
    pub(crate) fn trigger(&mut self, person: &str) -> String {
        let id = format!("{}.1000.{:032x}", self.fresh(), 0xfeed);
        let (person, at) = (person.to_owned(), Instant::now());
        self.triggers.push(Trigger { id: id.clone(), person, at, used: false });
        id
    }

    /// Submits a modal with values by block: the state of the block's element, or a text, a label of an option, a list of
    /// labels, a boolean, or the name of a file.
    pub(crate) fn submit(&mut self, view: &str, values: &Value) -> bool {
        let Some(view) = self.views.iter().find(|known| known.id == view).cloned() else { return false };
        let blocks = view.content["blocks"].as_array().into_iter().flatten();
        let inputs: Vec<Value> = blocks.filter(|block| block["type"] == "input").cloned().collect();
        let mut state = Map::new();
        for block in inputs {
            let id = block["block_id"].as_str().unwrap_or_default();
            let action = block["element"]["action_id"].as_str().unwrap_or_default();
            state.insert(id.to_owned(), json!({action: self.element_state(&block["element"], &values[id])}));
        }
        let mut content = view.content.clone();
        content["id"] = view.id.as_str().into();
        content["state"] = json!({"values": state});
        let name = self.people.get(&view.person).cloned().unwrap_or_default().to_lowercase();
        let user = json!({"id": view.person, "username": name, "name": name, "team_id": TEAM});
        let payload = json!({
            "type": "view_submission", "team": {"id": TEAM, "domain": "simulated"}, "user": user,
            "api_app_id": APP, "token": "verification-token-of-old-0", "trigger_id": self.trigger(&view.person),
            "view": content, "response_urls": [],
        });
        self.tell("interactive", payload, true);
        true
    }

    fn element_state(&mut self, element: &Value, value: &Value) -> Value {
        if value.is_object() {
            return value.clone();
        }
        let kind = &element["type"];
        let options = element["options"].as_array().cloned().unwrap_or_default();
        let option = |label: &Value| options.iter().find(|option| option["text"]["text"] == *label).cloned();
        match kind.as_str().unwrap_or_default() {
            "datepicker" => json!({"type": kind, "selected_date": value}),
            "static_select" => json!({"type": kind, "selected_option": option(value)}),
            "multi_static_select" => {
                let chosen = value.as_array().into_iter().flatten();
                json!({"type": kind, "selected_options": chosen.filter_map(option).collect::<Vec<_>>()})
            }
            "checkboxes" => {
                let chosen = if value == true { options } else { Vec::new() };
                json!({"type": kind, "selected_options": chosen})
            }
            "file_input" => {
                let names: Vec<String> = value.as_str().map(str::to_owned).into_iter().collect();
                let files: Vec<Value> = names.iter().map(|name| self.uploaded(name)).collect();
                json!({"type": kind, "files": files})
            }
            _ => json!({"type": kind, "value": value}),
        }
    }

    /// A file whose content is its name.
    fn uploaded(&mut self, name: &str) -> Value {
        let id = self.keep(name, bytes::Bytes::from(name.to_owned().into_bytes()));
        wire::file(self, &id)
    }

    /// Shows the response to a submission: errors, another content, or none, which closes the modal.
    pub(crate) fn responded(&mut self, payload: &Value, response: &Value) {
        let id = payload["view"]["id"].as_str().unwrap_or_default();
        let submitted = payload["type"] == "view_submission";
        let Some(view) = self.views.iter_mut().find(|view| submitted && view.id == id) else { return };
        match response["response_action"].as_str() {
            Some("errors") => view.errors = response["errors"].clone(),
            Some("update") if check(&response["view"]).is_ok() => view.content = response["view"].clone(),
            _ => view.open = false,
        }
    }
}
