//! The visible text of a message: mrkdwn, Markdown and blocks rendered as plain text; and whether it notifies users.

use super::world::{BOT_USER, Message, World};
use serde_json::Value;

/// Returns the visible text of a message. Blocks replace the text, if any.
pub(crate) fn visible(world: &World, message: &Message) -> String {
    let text = if message.markdown { markdown(&message.text) } else { mrkdwn(world, &message.text) };
    let parts: Vec<String> = message.blocks.iter().filter_map(|block| block_text(world, block)).collect();
    // The blocks of a closed stream are below its text; those of other messages replace it.
    match (message.stream.is_some(), parts.is_empty()) {
        (_, true) => text,
        (true, false) => format!("{text}\n{}", parts.join("\n")),
        (false, false) => parts.join("\n"),
    }
}

fn block_text(world: &World, block: &Value) -> Option<String> {
    let inner = |value: &Value| {
        let text = value["text"].as_str()?;
        Some(if value["type"] == "mrkdwn" { mrkdwn(world, text) } else { text.to_owned() })
    };
    match block["type"].as_str()? {
        "section" | "header" => inner(&block["text"]),
        "markdown" => Some(markdown(block["text"].as_str()?)),
        "context" => {
            let parts: Vec<String> = block["elements"].as_array()?.iter().filter_map(inner).collect();
            Some(parts.join(" "))
        }
        _ => None,
    }
}

/// Returns whether a message notifies a user or everyone.
pub(crate) fn pings(message: &Message) -> bool {
    let blocks = message.blocks.iter().map(Value::to_string).collect::<String>();
    let calls = |text: &str| {
        ["<!here", "<!channel", "<!everyone", "<!subteam", "<@U", "<@W"]
            .iter()
            .any(|mark| text.contains(mark))
    };
    let named = ["@here", "@channel", "@everyone"].iter().any(|mark| message.text.contains(mark));
    let linked = message.names_linked || message.markdown;
    calls(&message.text) || calls(&blocks) || (linked && named)
}

/// Renders mrkdwn: references, entities and markers around words and lines.
pub(crate) fn mrkdwn(world: &World, text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split("```").enumerate() {
        if at % 2 == 1 {
            out.push_str(&references(world, part.trim_matches('\n')));
        } else {
            out.push_str(&inline(world, part));
        }
    }
    out
}

fn inline(world: &World, text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let line = line.strip_prefix("> ").or_else(|| line.strip_prefix("&gt; ")).unwrap_or(line);
        let plain = line.split('`').enumerate().map(|(at, part)| {
            if at % 2 == 1 { references(world, part) } else { unmark(&references(world, part)) }
        });
        plain.collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes markers around words.
fn unmark(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut open: Vec<char> = Vec::new();
    for (at, c) in chars.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
        let after = chars.get(at + 1).copied();
        let edge = |side: Option<char>| side.is_none_or(|c| !c.is_alphanumeric());
        let begins = edge(before) && after.is_some_and(|c| !c.is_whitespace());
        let ends = edge(after) && before.is_some_and(|c| !c.is_whitespace());
        if matches!(c, '*' | '_' | '~') {
            if open.contains(&c) && ends {
                open.retain(|other| *other != c);
                continue;
            }
            let closes_later = chars.get(at + 1..).is_some_and(|rest| rest.contains(&c));
            if begins && closes_later {
                open.push(c);
                continue;
            }
        }
        // Adjacent markers may need a zero-width space, which is invisible.
        if c != '\u{200b}' {
            out.push(c);
        }
    }
    out
}

fn references(world: &World, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(&unescape(before));
        let Some((inside, after)) = after.split_once('>') else {
            out.push('<');
            rest = after;
            continue;
        };
        out.push_str(&reference(world, inside));
        rest = after;
    }
    out.push_str(&unescape(rest));
    out
}

fn reference(world: &World, inside: &str) -> String {
    let (target, label) = inside.split_once('|').map_or((inside, None), |(a, b)| (a, Some(b)));
    if let Some(user) = target.strip_prefix('@') {
        let name = if user == BOT_USER { Some("pudu") } else { world.people.get(user).map(String::as_str) };
        return format!("@{}", label.or(name).unwrap_or(user));
    }
    if let Some(channel) = target.strip_prefix('#') {
        let title = world.channels.get(channel).map(|channel| channel.title.as_str());
        return format!("#{}", label.or(title).unwrap_or(channel));
    }
    if let Some(special) = target.strip_prefix('!') {
        return label.map_or_else(|| format!("@{special}"), str::to_owned);
    }
    unescape(label.unwrap_or(target.strip_prefix("mailto:").unwrap_or(target)))
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Renders the standard Markdown of answers.
pub(crate) fn markdown(text: &str) -> String {
    let mut fenced = false;
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            lines.push(line.to_owned());
            continue;
        }
        let line =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')).unwrap_or(line);
        let line = line.strip_prefix("> ").unwrap_or(line);
        let line = line.replace("**", "").replace("~~", "");
        let parts = line.split('`').enumerate();
        lines
            .push(parts.map(|(at, part)| if at % 2 == 1 { part.to_owned() } else { unmark(part) }).collect());
    }
    let text = lines.join("\n");
    // Zero-width characters that break a reference are invisible.
    unescape(&text.replace('\u{2060}', "")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slack::world::Options;

    #[test]
    fn people_see_words_and_not_marks() {
        let mut world = World::new(Options::default());
        world.people.insert("U1".into(), "Ada".into());
        let cases = [
            ("*bold* _it_ ~gone~ `a*b*`", "bold it gone a*b*"),
            ("2 * 3 * 4 snake_case_name", "2 * 3 * 4 snake_case_name"),
            ("<https://a.b|see> <@U1> <!here> <https://c.d>", "see @Ada @here https://c.d"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("> quote\nend", "quote\nend"),
            ("```\nlet *a* = 1;\n```", "let *a* = 1;"),
        ];
        for (text, seen) in cases {
            assert_eq!(mrkdwn(&world, text), seen, "for {text:?}");
        }
        assert_eq!(markdown("# T\n**b** `x` *i*\n```rust\n**a**\n```"), "T\nb x i\n**a**");
    }
}
