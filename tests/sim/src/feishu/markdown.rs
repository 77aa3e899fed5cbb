//! Renders the card's Markdown as users see it: markup and entities resolved. Sufficient to read a bot's message;
//! deliberately not a full parser, and strict about mentions: a mention tag counts everywhere, even in code.

/// Returns whether a text notifies users.
pub(crate) fn pings(raw: &str) -> bool {
    let lower = raw.to_ascii_lowercase();
    lower.match_indices("<at").any(|(at, _)| {
        let after = lower.split_at(at + 3).1.chars().next();
        after.is_none_or(|c| c.is_whitespace() || c == '>' || c == '/')
    })
}

/// Returns the number of tables.
pub(crate) fn tables(raw: &str) -> usize {
    let mut code = false;
    let mut count = 0;
    for line in raw.lines() {
        let line = line.trim();
        code ^= line.starts_with("```");
        let rule = line.contains('|') && line.contains('-') && line.chars().all(|c| "|-: ".contains(c));
        count += usize::from(!code && rule);
    }
    count
}

/// Returns the text without markup.
pub(crate) fn plain(raw: &str) -> String {
    let mut code = false;
    let mut lines = Vec::new();
    for line in raw.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if code {
            lines.push(line.to_owned());
        } else {
            lines.push(entities(&inline(&tagged(heading(line)))));
        }
    }
    lines.join("\n").trim().to_owned()
}

fn heading(line: &str) -> &str {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if (1..=6).contains(&level) && rest.starts_with(' ') { rest.trim_start() } else { line }
}

/// Removes known tags and keeps their content.
pub(crate) fn tagged(raw: &str) -> String {
    const KNOWN: [&str; 9] = ["at", "font", "a", "text_tag", "br", "person", "number_tag", "link", "u"];
    let mut out = String::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let Some((tag, tail)) = after.split_once('>') else {
            out.push('<');
            rest = after;
            continue;
        };
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if KNOWN.contains(&name) {
            if name == "at" && !tag.starts_with('/') {
                out.push('@');
            }
            if name == "br" {
                out.push('\n');
            }
            rest = tail;
        } else {
            out.push('<');
            rest = after;
        }
    }
    out + rest
}

fn inline(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let tail = rest.split_at(c.len_utf8()).1;
        if let Some((text, after)) = link(rest) {
            out.push_str(&inline(text));
            rest = after;
        } else if c == '`' && tail.contains('`') {
            let (code, after) = tail.split_once('`').unwrap_or((tail, ""));
            // Entities in code are literal.
            out.push_str(&code.replace('&', "&amp;"));
            rest = after;
        } else if rest.starts_with("**") || rest.starts_with("~~") {
            rest = tail.split_at(1).1;
        } else if c == '*' && !tail.starts_with(' ') && !tail.is_empty()
            || c == '*' && !out.ends_with(' ') && !out.is_empty()
        {
            rest = tail;
        } else {
            out.push(c);
            rest = tail;
        }
    }
    out
}

/// Parses `[text](target)`, and returns the rest.
fn link(rest: &str) -> Option<(&str, &str)> {
    let (text, after) = rest.strip_prefix('[')?.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!text.contains('\n') && !text.contains('[')).then_some((text, after))
}

fn entities(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let found = after.split_once(';').and_then(|(name, tail)| Some((entity(name)?, tail)));
        match found {
            Some((c, tail)) => {
                out.push(c);
                rest = tail;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out + rest
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        "sim" => Some('∼'),
        _ => char::from_u32(name.strip_prefix('#')?.parse().ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_resolved_and_entities_mean_themselves() {
        let cases = [
            ("**bold** and *it* and ~~old~~", "bold and it and old"),
            ("# Title\ntext", "Title\ntext"),
            ("[here](https://a.example/b) `a*b`", "here a*b"),
            ("2 &#42; 3 &lt; 7 &amp;lt;", "2 * 3 < 7 &lt;"),
            ("```rust\nlet a = **b;\n```", "let a = **b;"),
            ("a < b > c", "a < b > c"),
            ("2 * 3 * 4", "2 * 3 * 4"),
            ("<font color='red'>red</font><br>two", "red\ntwo"),
        ];
        for (raw, seen) in cases {
            assert_eq!(plain(raw), seen, "{raw}");
        }
    }

    #[test]
    fn a_tag_that_names_somebody_pings_wherever_it_stands() {
        for raw in ["<at id=all></at>", "`<at id=ou_1>`", "```\n<AT user_id=\"all\">\n```"] {
            assert!(pings(raw), "{raw}");
        }
        for raw in ["&lt;at id=all&#62;", "<attack>", "@all", "a<b"] {
            assert!(!pings(raw), "{raw}");
        }
    }
}
