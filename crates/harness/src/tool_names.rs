//! Tool names with markers of a model's own format in them, such as `ls<|channel|>commentary` or `functions.ls`.

use crate::Toolbox;
use pudu_base::ToolCall;

/// Words of formats that models write calls in.
const FORMAT_WORDS: [&str; 22] = [
    "functions",
    "function",
    "tools",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_use",
    "default_api",
    "multi_tool_use",
    "assistant",
    "recipient",
    "channel",
    "commentary",
    "analysis",
    "final",
    "constrain",
    "message",
    "json",
    "call",
    "start",
    "end",
    "to",
];

/// Replaces each unknown tool name with the name of the one tool that the model meant. A call that matches none, or
/// several, stays unchanged: the model gets an error.
pub(crate) fn repair_names(calls: &mut [ToolCall], tools: &Toolbox) {
    for call in calls.iter_mut().filter(|call| tools.get(&call.name).is_none()) {
        let names = || tools.specs().iter().map(|spec| spec.name.as_str());
        if let Some(name) = repaired(&call.name, &names) {
            tracing::info!(called = ?call.name, tool = name, "repaired tool name");
            call.name = name.to_owned();
        }
    }
}

fn repaired<'a, I: Iterator<Item = &'a str>>(name: &str, offered: &impl Fn() -> I) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let is_mark = |part: &&str| {
        FORMAT_WORDS.contains(&part.to_ascii_lowercase().as_str()) || part.bytes().all(|c| c.is_ascii_digit())
    };
    let mut parts: Vec<String> =
        name.split(|c| !is_part(c)).filter(|part| !part.is_empty() && !is_mark(part)).map(letters).collect();
    parts.dedup();
    only(&letters(name), offered()).or_else(|| match &parts[..] {
        [part] => only(part, offered()),
        _ => None,
    })
}

/// Returns the only name that has these letters.
fn only<'a>(wanted: &str, offered: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut alike = offered.filter(|name| !wanted.is_empty() && letters(name) == wanted);
    alike.next().filter(|_| alike.next().is_none())
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_format_markers_is_repaired_if_unambiguous() {
        let offered = ["ls", "read_file", "github_search", "a_b", "a-b", "json", "tool_search"];
        let check = |name: &str, expect: Option<&str>| {
            assert_eq!(repaired(name, &|| offered.into_iter()), expect, "{name}");
        };
        for name in [
            "ls<|channel|>commentary",
            "ls<|constrain|>json",
            "functions.ls",
            "functions.ls:0",
            "<|channel|>commentary to=functions.ls",
            "default_api:ls",
            " `ls` ",
            "ls()",
            "LS",
            "<tool_call>ls",
        ] {
            check(name, Some("ls"));
        }
        check("Read-File", Some("read_file"));
        check("readFile", Some("read_file"));
        check("github.search", Some("github_search"));
        check("tools.tool_search", Some("tool_search"));
        check("a.b", None);
        check("gitlab.search", None);
        check("ls read_file", None);
        check("rm", None);
        check("functions", None);
        check("", None);
        check("<|>", None);
    }
}
