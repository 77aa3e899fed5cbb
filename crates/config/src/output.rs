//! Handling of tool results that are too long for a model, and tool search.

use super::reader::Section;
use pudu_agent::RESULTS_FOLDER;
use pudu_harness::ResultRules;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Maximum value of each length setting, in characters.
const MAX_OUTPUT_CHARS: usize = 10_000_000;
/// Maximum length of the folder's name, in bytes.
const MAX_FOLDER_BYTES: usize = 200;

/// Handling of long results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongResults {
    /// Rules for storing results in files, and for the part of a result that is shown.
    pub rules: ResultRules,
    /// The folder for stored results, relative to a thread's outputs.
    pub folder: String,
}

/// Reads the handling of long results.
pub(super) fn results(top: &Section<'_>) -> LongResults {
    let section = top
        .section("tool_output")
        .about("Tool results that are too long for a model. All lengths are in characters.");
    let usual = ResultRules::default();
    settings! { section =>
        /// Enables storage of long results in files, with a preview for the model; otherwise each tool cuts its results.
        enabled = flag().or(usual.enabled);
        /// Length above which a result is stored whole in a file among the thread's outputs; 0 stores none.
        longest as "externalize_min_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.longest);
        /// Length of the beginning of a stored result that the model sees.
        shown_head as "preview_head_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.shown.0);
        /// Length of the end of a stored result that the model sees.
        shown_tail as "preview_tail_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.shown.1);
        /// Length above which a result that could not be stored is cut; 0 cuts none.
        uncut as "fallback_max_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.uncut);
        /// Length of the beginning of a cut result.
        left_head as "fallback_head_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.left.0);
        /// Length of the end of a cut result.
        left_tail as "fallback_tail_chars" = number(0..=MAX_OUTPUT_CHARS).or(usual.left.1);
        /// Folder of stored results below the outputs.
        folder as "storage_subdir" = text().or(RESULTS_FOLDER.to_owned());
        /// Tools whose results are not stored; a result longer than fallback_max_chars shows its beginning and how to read
        /// the rest.
        exempt as "exempt_tools" = names().or(usual.exempt.iter().cloned().collect()).into_iter().collect();
        /// Values of externalize_min_chars for single tools, such as {web_fetch: 20000}.
        overrides as "tool_overrides" = map().or(serde_json::Map::new());
    }
    let (shown, left) = ((shown_head, shown_tail), (left_head, left_tail));
    let fits = |key, most: usize, (head, tail): (usize, usize)| {
        if most != 0 && head + tail > most {
            let what = format!("the shown part of a long result, {}, is longer than this", head + tail);
            section.warn(key, what, "decrease the head or the tail, or increase this");
        }
    };
    fits("externalize_min_chars", longest, shown);
    fits("fallback_max_chars", uncut, left);
    let tools = lengths(&section, overrides);
    let rules = ResultRules { enabled, longest, shown, uncut, left, exempt, tools };
    LongResults { rules, folder: below_outputs(&section, folder) }
}

/// Reads the lengths for individual tools.
fn lengths(section: &Section<'_>, map: serde_json::Map<String, Json>) -> BTreeMap<String, usize> {
    let mut tools = BTreeMap::new();
    for (tool, value) in map {
        let chars = value.as_u64().and_then(|chars| usize::try_from(chars).ok());
        match chars.filter(|chars| *chars <= MAX_OUTPUT_CHARS) {
            Some(chars) => {
                tools.insert(tool, chars);
            }
            None => {
                let found = if let Json::Number(number) = &value { number.to_string() } else { kind(&value) };
                let what =
                    format!("found {found} for {tool}, expected a whole number from 0 to {MAX_OUTPUT_CHARS}");
                section.refuse("tool_overrides", what, "write `tool: characters`; 0 stores no result");
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

/// Refuses a folder that is not inside the outputs.
fn below_outputs(section: &Section<'_>, folder: String) -> String {
    let down = folder.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if down && folder.len() <= MAX_FOLDER_BYTES && !folder.contains(['\\', '\0']) {
        return folder;
    }
    let help = "use a folder below a thread's outputs, such as .tool-results";
    section.refuse("storage_subdir", "this is not a plain folder below the outputs", help);
    RESULTS_FOLDER.to_owned()
}

/// Reads whether the model has to search for the tools of MCP servers instead of getting the whole list.
pub(super) fn searched(top: &Section<'_>) -> bool {
    let section = top
        .section("tool_search")
        .about("Search for tools of MCP servers, if their descriptions would fill the context window.");
    section.note_unused(&["auto_promote_top_k"]);
    settings! { section =>
        /// Enables tool search: the model gets only the names of tools, and searches for the ones that it needs.
        enabled = flag().or(false);
    }
    enabled
}
