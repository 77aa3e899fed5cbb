//! Visible text of a message's markup, and its mentions.

use super::{
    error::{Answer, Refusal},
    wire,
    world::World,
};
use serde_json::{Value, json};

/// Checks the format of `allowed_mentions`.
pub(crate) fn check_mentions(body: &Value) -> Answer<()> {
    let kinds = body["allowed_mentions"]["parse"].as_array().map(Vec::as_slice).unwrap_or_default();
    let known = |kind: &Value| matches!(kind.as_str(), Some("users" | "roles" | "everyone"));
    if kinds.iter().all(known) {
        return Ok(());
    }
    let why = "Value must be one of ('users', 'everyone', 'roles').";
    Err(Refusal::form("allowed_mentions.parse", "BASE_TYPE_CHOICES", why))
}

/// Returns whether a message notifies users, given the allowed mentions.
pub(crate) fn pings(content: &str, answers: bool, body: &Value) -> bool {
    let allowed = body.get("allowed_mentions").filter(|allowed| !allowed.is_null());
    let parse = |kind: &str| match allowed {
        None => true,
        Some(allowed) => allowed["parse"].as_array().is_some_and(|all| all.iter().any(|one| one == kind)),
    };
    let listed = |kind: &str, id: &str| {
        allowed.is_some_and(|allowed| {
            allowed[kind].as_array().is_some_and(|all| all.iter().any(|one| one == id))
        })
    };
    let bare = outside_code(content);
    (wire::mentioned(&bare).next().is_some() && parse("users"))
        || wire::mentioned(&bare).any(|id| listed("users", id))
        || (bare.contains("<@&") && parse("roles"))
        || ((bare.contains("@everyone") || bare.contains("@here")) && parse("everyone"))
        || (answers && allowed.is_none_or(|allowed| allowed["replied_user"] == true))
}

fn outside_code(content: &str) -> String {
    content.split('`').step_by(2).collect()
}

/// Links become previews unless the sender suppresses them: the linked server receives a request.
pub(crate) fn embeds(content: &str, body: &Value) -> Vec<Value> {
    let quiet = body["flags"].as_u64().unwrap_or(0) & super::world::SUPPRESS_EMBEDS != 0;
    let bare = outside_code(content);
    let links = bare.split_whitespace().filter(|word| word.contains("http://") || word.contains("https://"));
    let shown = links.filter(|word| !quiet && !word.contains("<http"));
    shown.map(|link| json!({"type": "link", "url": link})).collect()
}

/// Returns the visible text.
pub(crate) fn visible(world: &World, content: &str) -> String {
    let mut out = String::new();
    for (n, piece) in content.split("```").enumerate() {
        if n % 2 == 1 {
            out.push_str(without_language(piece).trim_end_matches('\n'));
            out.push('\n');
        } else {
            let lines: Vec<String> = piece.split('\n').map(|line| inline(world, unprefixed(line))).collect();
            out.push_str(&lines.join("\n"));
        }
    }
    out.trim().to_owned()
}

fn without_language(code: &str) -> &str {
    match code.split_once('\n') {
        Some((first, rest)) if !first.contains(char::is_whitespace) => rest,
        _ => code,
    }
}

fn unprefixed(line: &str) -> &str {
    let start = line.trim_start();
    ["> ", ">>> ", "# ", "## ", "### ", "-# "]
        .iter()
        .find_map(|mark| start.strip_prefix(mark))
        .unwrap_or(line)
}

const MARKS: [&str; 7] = ["***", "**", "__", "~~", "||", "*", "_"];

fn inline(world: &World, line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    let mut open: Vec<&str> = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some((shown, after)) = code(rest).or_else(|| angle(world, rest)).or_else(|| link(world, rest))
        {
            out.push_str(&shown);
            rest = after;
        } else if let Some(escaped) = rest.strip_prefix('\\').and_then(|after| after.chars().next())
            && escaped.is_ascii_punctuation()
        {
            out.push(escaped);
            rest = after(rest, 1 + escaped.len_utf8());
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark))
            && (open.last() == Some(mark) || closes(rest, mark, &out))
        {
            if open.last() == Some(mark) {
                open.truncate(open.len() - 1);
            } else {
                open.push(mark);
            }
            rest = after(rest, mark.len());
        } else {
            out.push(first);
            rest = after(rest, first.len_utf8());
        }
    }
    out
}

fn after(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

/// Returns whether a marker that begins here ends later in the line. A single underscore only marks whole words.
fn closes(rest: &str, mark: &str, before: &str) -> bool {
    let inside = after(rest, mark.len());
    let within_word = before.ends_with(char::is_alphanumeric);
    if inside.starts_with(char::is_whitespace) || (mark == "_" && within_word) {
        return false;
    }
    let mut escaped = false;
    inside.char_indices().skip(1).any(|(at, c)| {
        let here = !escaped && after(inside, at).starts_with(mark);
        escaped = c == '\\' && !escaped;
        let next = after(inside, at + mark.len()).chars().next();
        here && (mark != "_" || !next.is_some_and(char::is_alphanumeric))
    })
}

fn code(rest: &str) -> Option<(String, &str)> {
    let fence = if rest.starts_with("``") { "``" } else { "`" };
    let inside = rest.strip_prefix(fence)?;
    let (code, after) = inside.split_once(fence)?;
    let shown = if fence == "``" { code.trim() } else { code };
    (!code.is_empty()).then(|| (shown.to_owned(), after))
}

/// Names, channels, and links without a preview.
fn angle<'a>(world: &World, rest: &'a str) -> Option<(String, &'a str)> {
    let (inside, after) = rest.strip_prefix('<')?.split_once('>')?;
    let digits = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let shown = if let Some(id) = inside.strip_prefix("@&").filter(|id| digits(id)) {
        format!("@role-{id}")
    } else if let Some(id) =
        inside.strip_prefix('@').map(|id| id.trim_start_matches('!')).filter(|id| digits(id))
    {
        format!("@{}", world.people.get(id).map_or("unknown-user", String::as_str))
    } else if let Some(id) = inside.strip_prefix('#').filter(|id| digits(id)) {
        format!("#{}", world.channels.get(id).map_or("unknown", |channel| channel.name.as_str()))
    } else if inside.starts_with("http://") || inside.starts_with("https://") {
        inside.to_owned()
    } else {
        return None;
    };
    Some((shown, after))
}

fn link<'a>(world: &World, rest: &'a str) -> Option<(String, &'a str)> {
    let (words, behind) = rest.strip_prefix('[')?.split_once("](")?;
    let (target, after) = behind.split_once(')')?;
    let web = target.trim_start_matches('<').starts_with("http");
    (web && !words.contains('\n')).then(|| (inline(world, words), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::Options;

    #[test]
    fn markup_is_resolved_as_people_see_it() {
        let mut world = World::new(Options::default());
        world.people.insert("12".to_owned(), "Ada".to_owned());
        let cases = [
            ("plain", "plain"),
            ("**bold** *it* _it_ __under__ ~~gone~~", "bold it it under gone"),
            ("***both***", "both"),
            ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
            ("\\*as typed\\* \\_x\\_ \\\\ \\@", "*as typed* _x_ \\ @"),
            ("`a*b*` ``x`y``", "a*b* x`y"),
            ("```rust\nlet a = 1;\n```", "let a = 1;"),
            ("> quoted\n# Title\n-# small", "quoted\nTitle\nsmall"),
            ("<@12> <#9> <https://x.y>", "@Ada #unknown https://x.y"),
            ("[a *b*](https://x.y) [a](b)", "a b [a](b)"),
            ("a < b > c", "a < b > c"),
        ];
        for (content, expected) in cases {
            assert_eq!(visible(&world, content), expected, "{content}");
        }
    }

    #[test]
    fn who_is_called_depends_on_what_was_allowed() {
        let none = json!({"allowed_mentions": {"parse": []}});
        let cases = [
            ("<@12>", false, json!({}), true),
            ("<@12> @everyone <@&3>", true, none.clone(), false),
            ("@everyone", false, json!({}), true),
            ("`@everyone`", false, json!({}), false),
            ("hi", true, json!({}), true),
            ("hi", true, none, false),
            ("<@12>", false, json!({"allowed_mentions": {"users": ["12"]}}), true),
            ("<@&3>", false, json!({"allowed_mentions": {"parse": ["users"]}}), false),
        ];
        for (content, answers, body, expected) in cases {
            assert_eq!(pings(content, answers, &body), expected, "{content} {body}");
        }
    }
}
