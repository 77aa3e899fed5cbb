//! Names under which models see the tools of MCP servers. Providers reject a request if a tool name is longer than 64
//! characters or contains characters other than ASCII letters, digits, `_` and `-`. Servers also use dots, slashes,
//! spaces and other scripts.

use pudu_base::digest;
use std::collections::HashSet;

/// Maximum length of a name, in characters: the limit of OpenAI and Anthropic.
const MAX_NAME_CHARS: usize = 64;
/// Number of hexadecimal digits that make equal names distinct.
const DIGEST_CHARS: usize = 8;

/// Returns whether a tool can have this name.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_legal_char)
}

fn is_legal_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Replaces each character that is invalid in a tool's name with `_`.
#[must_use]
pub fn tool_name_part(text: &str) -> String {
    text.chars().map(|c| if is_legal_char(c) { c } else { '_' }).collect()
}

/// Names already taken.
pub(crate) struct TakenNames {
    /// Names already assigned to tools.
    given: HashSet<String>,
    /// Returns whether the program reserves a name.
    is_reserved: fn(&str) -> bool,
}

impl TakenNames {
    pub(crate) fn new(is_reserved: fn(&str) -> bool) -> Self {
        Self { given: HashSet::new(), is_reserved }
    }

    /// Reserves a name. Returns whether it was valid and free.
    fn reserve(&mut self, name: &str) -> bool {
        is_tool_name(name) && !(self.is_reserved)(name) && self.given.insert(name.to_owned())
    }
}

/// Assigns names to the tools of one server, in order. A valid name stays unchanged, even if an earlier tool's name has
/// to be replaced.
pub(crate) fn assign(
    server: &str,
    has_prefix: bool,
    remotes: &[&str],
    taken: &mut TakenNames,
) -> Vec<String> {
    let full_name = |remote: &str| if has_prefix { format!("{server}_{remote}") } else { remote.to_owned() };
    let reserved: Vec<Option<String>> =
        remotes.iter().map(|remote| Some(full_name(remote)).filter(|name| taken.reserve(name))).collect();
    let all = remotes.iter().zip(reserved);
    let fallback = |remote: &str, taken: &mut TakenNames| {
        // The server's name makes a tool without a prefix unique.
        let prefixed = (!has_prefix).then(|| format!("{server}_{remote}"));
        fallback_name(
            &[Some(full_name(remote)), prefixed].into_iter().flatten().collect::<Vec<_>>(),
            remote,
            taken,
        )
    };
    all.map(|(remote, reserved)| reserved.unwrap_or_else(|| fallback(remote, taken))).collect()
}

/// Returns a valid, unused name that resembles one of the wanted names.
fn fallback_name(wanted: &[String], remote: &str, taken: &mut TakenNames) -> String {
    let is_readable = remote.chars().any(|c| c.is_ascii_alphanumeric());
    if let Some(plain) =
        wanted.iter().map(|name| tool_name_part(name)).find(|name| is_readable && taken.reserve(name))
    {
        return plain;
    }
    let last = wanted.last().map(String::as_str).unwrap_or_default();
    let plain = tool_name_part(last);
    let stem: String = plain.chars().take(MAX_NAME_CHARS - DIGEST_CHARS - 1).collect();
    let stem = if is_readable { stem.trim_end_matches('_') } else { stem.trim_matches('_') };
    let stem = if stem.is_empty() { "tool" } else { stem };
    // The digest may be taken as well, so further seeds follow.
    let seeds = std::iter::once(last.to_owned()).chain((0..).map(|n: u32| format!("{last}\n{n}")));
    let mut names =
        seeds.map(|seed| format!("{stem}_{}", digest(seed).get(..DIGEST_CHARS).unwrap_or_default()));
    names.find(|name| taken.reserve(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(server: &str, has_prefix: bool, remotes: &[&str], taken: &[&str]) -> Vec<String> {
        let given = taken.iter().map(|name| (*name).to_owned()).collect();
        let mut taken = TakenNames { given, is_reserved: |name| name == "bash" };
        let names = assign(server, has_prefix, remotes, &mut taken);
        let different: HashSet<&String> = names.iter().collect();
        assert!(different.len() == names.len() && names.iter().all(|name| is_tool_name(name)), "{names:?}");
        names
    }

    #[test]
    fn every_tool_gets_a_valid_and_unique_name() {
        let check = |remotes: &[&str], expect: &[&str]| assert_eq!(named("s", true, remotes, &[]), expect);
        check(&["search", "create-issue", "A1"], &["s_search", "s_create-issue", "s_A1"]);
        check(
            &["calendar.read", "user-profile/update", "Create CIFS Share"],
            &["s_calendar_read", "s_user-profile_update", "s_Create_CIFS_Share"],
        );
        // A valid name stays unchanged at any position in the list.
        check(&["a.b", "a_b", "a/b"], &["s_a_b_cda64c94", "s_a_b", "s_a_b_e84890f4"]);
        check(&["搜索", "查询"], &["s_06283131", "s_3ad3367a"]);
        let long = "list_".repeat(20);
        let twin = format!("{long}x");
        let names = named("s", true, &[&long, &twin], &[]);
        assert!(
            names.iter().all(|name| name.len() <= MAX_NAME_CHARS && name.starts_with("s_list_list_")),
            "{names:?}"
        );
    }

    #[test]
    fn names_are_unique_across_servers() {
        assert_eq!(named("b", false, &["search", "other"], &["search"])[1], "other");
        assert_eq!(named("b", false, &["search", "bash"], &["search"]), ["b_search", "b_bash"]);
        assert!(named("b", false, &["search"], &["search", "b_search"])[0].starts_with("b_search_"));
        assert_eq!(named("my server", true, &["go"], &[]), ["my_server_go"]);
        assert_eq!(named("飞书", true, &["go"], &[]), ["___go"]);
    }
}
