//! Handling of tool results that are too long for a model, and whether it has to search for tools.

use super::reader::Section;
use pudu_client::{RESULTS_FOLDER, harness::ResultRules};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Maximum value of a length, in characters.
const MAX_OUTPUT_CHARS: u32 = 10_000_000;
/// Maximum length of the folder's name, in bytes.
const MAX_FOLDER_BYTES: usize = 200;

/// Handling of long results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongResults {
    /// When results are kept in files, and which part of a result is shown.
    pub rules: ResultRules,
    /// The folder of a thread's outputs for the kept results.
    pub folder: String,
}

/// Reads the handling of long results.
pub(super) fn results(top: &Section<'_>) -> LongResults {
    let section = top.section("tool_output");
    let chars = |key: &str, default: usize| {
        section.number(key, 0..=MAX_OUTPUT_CHARS).or(u32::try_from(default).unwrap_or(MAX_OUTPUT_CHARS))
            as usize
    };
    let usual = ResultRules::default();
    let longest = chars("externalize_min_chars", usual.longest);
    let shown = (chars("preview_head_chars", usual.shown.0), chars("preview_tail_chars", usual.shown.1));
    let uncut = chars("fallback_max_chars", usual.uncut);
    let left = (chars("fallback_head_chars", usual.left.0), chars("fallback_tail_chars", usual.left.1));
    let fits = |key, most: usize, (head, tail): (usize, usize)| {
        if most != 0 && head + tail > most {
            let what = format!("what is shown of a long result, {}, is more than this", head + tail);
            section.warn(key, what, "make the head or the tail smaller, or this larger");
        }
    };
    fits("externalize_min_chars", longest, shown);
    fits("fallback_max_chars", uncut, left);
    let exempt: Vec<String> = usual.exempt.iter().cloned().collect();
    let rules = ResultRules {
        enabled: section.flag("enabled").or(usual.enabled),
        longest,
        shown,
        uncut,
        left,
        exempt: section.names("exempt_tools").or(exempt).into_iter().collect(),
        tools: overrides(&section),
    };
    LongResults { rules, folder: folder(&section) }
}

/// Reads the tools that have a length of their own.
fn overrides(section: &Section<'_>) -> BTreeMap<String, usize> {
    let map = section.map("tool_overrides").or(serde_json::Map::new());
    let mut tools = BTreeMap::new();
    for (tool, value) in map {
        match value
            .as_u64()
            .and_then(|most| u32::try_from(most).ok())
            .filter(|most| *most <= MAX_OUTPUT_CHARS)
        {
            Some(most) => {
                tools.insert(tool, most as usize);
            }
            None => {
                let found = if let Json::Number(number) = &value { number.to_string() } else { kind(&value) };
                let what = format!("{tool} has {found}, expected whole number, 0 to {MAX_OUTPUT_CHARS}");
                section.refuse("tool_overrides", what, "write `tool: characters`; 0 keeps no result of it");
            }
        }
    }
    tools
}

fn kind(value: &Json) -> String {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a yes or no",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
    }
    .to_owned()
}

/// Reads the folder, which has to stay below the outputs.
fn folder(section: &Section<'_>) -> String {
    let folder = section.text("storage_subdir").or(RESULTS_FOLDER.to_owned());
    let down = folder.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if down && folder.len() <= MAX_FOLDER_BYTES && !folder.contains(['\\', '\0']) {
        return folder;
    }
    let help = "name a folder below a thread's outputs, such as .tool-results";
    section.refuse("storage_subdir", "this is no plain folder below the outputs", help);
    RESULTS_FOLDER.to_owned()
}

/// Reads whether tools of MCP servers are found by a search, instead of all being listed to the model.
pub(super) fn searched(top: &Section<'_>) -> bool {
    let section = top.section("tool_search");
    section.note_unused(&["auto_promote_top_k"]);
    section.flag("enabled").or(false)
}
