//! Telegram's HTML parse mode: a few tags, strictly checked, and otherwise not HTML.
//!
//! Errors have the platform's wording and byte offsets, because a client may parse them. Deliberately absent: the user
//! in a mention link (`tg://user?id=`), and the other two parse modes.

use super::{
    entity::{Entity, units},
    error::{Answer, Refusal},
};
use url::Url;

/// Parses HTML to text and entities.
pub(crate) fn parse(html: &str) -> Answer<(String, Vec<Entity>)> {
    let mut parser = Parser { html, rest: html, text: String::new(), open: Vec::new(), entities: Vec::new() };
    while !parser.rest.is_empty() {
        parser.step()?;
    }
    match parser.open.pop() {
        Some(tag) => Err(refuse(format!("Can't find end tag corresponding to start tag \"{}\"", tag.name))),
        None => Ok((parser.text, finish(parser.entities))),
    }
}

/// Sorts outer before inner entities. A language without a `<pre>` is ignored.
fn finish(mut entities: Vec<Entity>) -> Vec<Entity> {
    entities.sort_by_key(|entity| (entity.offset, std::cmp::Reverse(entity.length)));
    for code in entities.iter_mut().filter(|entity| entity.kind == "code") {
        code.language = None;
    }
    entities
}

struct Parser<'a> {
    html: &'a str,
    rest: &'a str,
    text: String,
    open: Vec<Tag>,
    entities: Vec<Entity>,
}

/// An open start tag.
struct Tag {
    name: String,
    /// The only used attribute of this tag.
    argument: String,
    /// Start of its text: in UTF-16 units, and in bytes.
    offset: usize,
    from: usize,
}

impl<'a> Parser<'a> {
    fn step(&mut self) -> Answer<()> {
        let start = self.html.len() - self.rest.len();
        if let Some(rest) = self.rest.strip_prefix("</") {
            self.rest = rest;
            return self.end_tag(start);
        }
        if let Some(rest) = self.rest.strip_prefix('<') {
            self.rest = rest;
            return self.start_tag(start);
        }
        let (c, rest) = character(self.rest);
        self.text.push(c);
        self.rest = rest;
        Ok(())
    }

    fn take_until(&mut self, stop: impl Fn(char) -> bool) -> &'a str {
        let at = self.rest.find(stop).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn start_tag(&mut self, start: usize) -> Answer<()> {
        let name = self.take_until(|c| c.is_whitespace() || c == '>').to_lowercase();
        if self.rest.is_empty() {
            return Err(refuse(format!("Unclosed start tag at byte offset {start}")));
        }
        if !TAGS.contains(&name.as_str()) {
            return Err(refuse(format!("Unsupported start tag \"{name}\" at byte offset {start}")));
        }
        let argument = self.attributes(&name, start)?;
        if name == "span" && argument != "tg-spoiler" {
            return Err(refuse(format!(
                "Tag \"span\" must have class \"tg-spoiler\" at byte offset {start}"
            )));
        }
        self.open.push(Tag { name, argument, offset: units(&self.text), from: self.text.len() });
        Ok(())
    }

    /// Parses up to and including `>`; returns the used attribute.
    fn attributes(&mut self, tag: &str, start: usize) -> Answer<String> {
        let mut argument = String::new();
        loop {
            self.skip_space();
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return Ok(argument);
            }
            let name = self.take_until(|c| c.is_whitespace() || matches!(c, '=' | '>'));
            if name.is_empty() {
                return Err(refuse(format!(
                    "Empty attribute name in the tag \"{tag}\" at byte offset {start}"
                )));
            }
            let value = self.value(tag, name, start)?;
            if matches!((tag, name), ("a", "href") | ("code" | "span", "class") | ("tg-emoji", "emoji-id")) {
                argument = value;
            } else if (tag, name) == ("blockquote", "expandable") {
                argument = name.to_owned();
            }
        }
    }

    fn value(&mut self, tag: &str, name: &str, start: usize) -> Answer<String> {
        self.skip_space();
        let Some(rest) = self.rest.strip_prefix('=') else {
            // The only attribute without a value.
            if (tag, name) == ("blockquote", "expandable") {
                return Ok(String::new());
            }
            let what = "Expected equal sign in declaration of an attribute of the tag";
            return Err(refuse(format!("{what} \"{tag}\" at byte offset {start}")));
        };
        self.rest = rest.trim_start();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => self.quoted(quote),
            None => {
                self.take_until(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))).to_lowercase()
            }
        };
        match self.rest.chars().next() {
            None => Err(refuse(format!("Unclosed start tag at byte offset {start}"))),
            Some(c) if quote.is_none() && !c.is_whitespace() && c != '>' => {
                let at = self.html.len() - self.rest.len() - value.len();
                Err(refuse(format!("Unexpected end of name token at byte offset {at}")))
            }
            Some(_) => Ok(value),
        }
    }

    fn quoted(&mut self, quote: char) -> String {
        let mut value = String::new();
        self.rest = self.rest.strip_prefix(quote).unwrap_or(self.rest);
        while !self.rest.is_empty() {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                self.rest = rest;
                break;
            }
            let (c, rest) = character(self.rest);
            value.push(c);
            self.rest = rest;
        }
        value
    }

    fn end_tag(&mut self, start: usize) -> Answer<()> {
        let Some(tag) = self.open.pop() else {
            return Err(refuse(format!("Unexpected end tag at byte offset {start}")));
        };
        let name = self.take_until(|c| c.is_whitespace() || c == '>').to_lowercase();
        self.skip_space();
        let Some(rest) = self.rest.strip_prefix('>') else {
            return Err(refuse(format!("Unclosed end tag at byte offset {start}")));
        };
        self.rest = rest;
        // An end tag without a name closes the innermost tag.
        if !name.is_empty() && name != tag.name {
            let found = format!("expected \"</{}>\", found \"</{name}>\"", tag.name);
            return Err(refuse(format!("Unmatched end tag at byte offset {start}, {found}")));
        }
        self.close(&tag)
    }

    fn close(&mut self, tag: &Tag) -> Answer<()> {
        let length = units(&self.text) - tag.offset;
        if length == 0 {
            return Ok(());
        }
        let mut entity = Entity::new(kind(&tag.name), tag.offset, length);
        match tag.name.as_str() {
            "a" if tag.argument.starts_with("tg://user?id=") => entity.kind = "text_mention".to_owned(),
            "a" => {
                let shown = self.text.get(tag.from..).unwrap_or_default();
                entity.url = link(if tag.argument.is_empty() { shown } else { &tag.argument });
                if entity.url.is_none() {
                    return Ok(());
                }
            }
            "tg-emoji" if tag.argument.parse::<u64>().is_err() => {
                return Err(refuse("Invalid custom emoji identifier specified"));
            }
            "tg-emoji" => entity.custom_emoji_id = Some(tag.argument.clone()),
            "blockquote" if tag.argument == "expandable" => entity.kind = "expandable_blockquote".to_owned(),
            "code" => entity.language = tag.argument.strip_prefix("language-").map(str::to_owned),
            _ => {}
        }
        self.push(entity);
        Ok(())
    }

    /// `<pre><code class="language-x">` is one entity.
    fn push(&mut self, mut entity: Entity) {
        let inner = self.entities.last().filter(|code| {
            entity.kind == "pre"
                && code.kind == "code"
                && (code.offset, code.length) == (entity.offset, entity.length)
                && code.language.is_some()
        });
        if inner.is_some() {
            entity.language = self.entities.pop().and_then(|code| code.language);
        }
        self.entities.push(entity);
    }
}

const TAGS: [&str; 16] = [
    "a",
    "b",
    "strong",
    "i",
    "em",
    "s",
    "strike",
    "del",
    "u",
    "ins",
    "tg-spoiler",
    "tg-emoji",
    "span",
    "pre",
    "code",
    "blockquote",
];

fn kind(tag: &str) -> &'static str {
    match tag {
        "b" | "strong" => "bold",
        "i" | "em" => "italic",
        "u" | "ins" => "underline",
        "s" | "strike" | "del" => "strikethrough",
        "a" => "text_link",
        "tg-spoiler" | "span" => "spoiler",
        "tg-emoji" => "custom_emoji",
        "pre" => "pre",
        "code" => "code",
        _ => "blockquote",
    }
}

/// Returns the normalized URL; `None` if it is invalid, and the text stays plain.
fn link(address: &str) -> Option<String> {
    let url = Url::parse(address).or_else(|_| Url::parse(&format!("http://{address}"))).ok()?;
    let web =
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| host.contains('.'));
    let telegram = url.scheme() == "tg" && url.host_str() != Some("user");
    (web || telegram || url.host_str() == Some("localhost")).then(|| url.to_string())
}

/// Returns the first character of a non-empty text; a character reference counts as one.
fn character(text: &str) -> (char, &str) {
    if let Some(found) = text.strip_prefix('&').and_then(reference) {
        return found;
    }
    let mut rest = text.chars();
    (rest.next().unwrap_or_default(), rest.as_str())
}

/// Parses four names and numbers; the semicolon is optional. Anything else is literal.
fn reference(text: &str) -> Option<(char, &str)> {
    let (c, rest) = match text.strip_prefix('#') {
        Some(number) => numeric(number)?,
        None => {
            let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
            let (name, rest) = text.split_at_checked(end)?;
            let c = [("lt", '<'), ("gt", '>'), ("amp", '&'), ("quot", '"')]
                .iter()
                .find_map(|(known, c)| (*known == name).then_some(*c))?;
            (c, rest)
        }
    };
    Some((c, rest.strip_prefix(';').unwrap_or(rest)))
}

fn numeric(text: &str) -> Option<(char, &str)> {
    let (radix, digits) = match text.strip_prefix(['x', 'X']) {
        Some(hex) => (16, hex),
        None => (10, text),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at_checked(end)?;
    let code = u32::from_str_radix(number, radix).ok().filter(|code| *code != 0)?;
    Some((char::from_u32(code)?, rest))
}

fn refuse(what: impl std::fmt::Display) -> Refusal {
    Refusal::bad(format!("can't parse entities: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(html: &str, text: &str, expected: &[(&str, usize, usize, &str)]) {
        let (found, entities) = parse(html).unwrap();
        assert_eq!(found, text);
        let entities: Vec<_> = entities
            .iter()
            .map(|e| {
                let more = e.url.as_deref().or(e.language.as_deref()).unwrap_or_default();
                (e.kind.as_str(), e.offset, e.length, more)
            })
            .collect();
        assert_eq!(entities, expected, "{html}");
    }

    #[track_caller]
    fn refuses(html: &str, why: &str) {
        let refusal = parse(html).unwrap_err();
        assert_eq!(refusal, Refusal::bad(format!("can't parse entities: {why}")), "{html}");
    }

    #[test]
    fn tags_become_entities_at_utf16_offsets() {
        reads("plain", "plain", &[]);
        reads("🦌 <b>deer</b>", "🦌 deer", &[("bold", 3, 4, "")]);
        reads("<B>x<i>y</I></b>", "xy", &[("bold", 0, 2, ""), ("italic", 1, 1, "")]);
        reads("<b>x</>", "x", &[("bold", 0, 1, "")]);
        reads("<u></u>x", "x", &[]);
        reads("<pre>x</pre>", "x", &[("pre", 0, 1, "")]);
        reads("<pre><code class=\"language-rust\">fn</code></pre>", "fn", &[("pre", 0, 2, "rust")]);
        reads(
            "<code class=\"language-rust\">fn</code> <b>x</b>",
            "fn x",
            &[("code", 0, 2, ""), ("bold", 3, 1, "")],
        );
        reads("<blockquote expandable>q</blockquote>", "q", &[("expandable_blockquote", 0, 1, "")]);
        reads("<span class='tg-spoiler'>s</span>", "s", &[("spoiler", 0, 1, "")]);
    }

    #[test]
    fn a_link_that_is_none_leaves_its_text() {
        reads(
            "<a href=\"https://a.example/?x=1&amp;y\">l</a>",
            "l",
            &[("text_link", 0, 1, "https://a.example/?x=1&y")],
        );
        reads("<a>a.example</a>", "a.example", &[("text_link", 0, 9, "http://a.example/")]);
        reads("<a href='javascript:alert(1)'>l</a>", "l", &[]);
    }

    #[test]
    fn only_four_names_and_numbers_are_references() {
        reads("&lt;b&gt; &amp; &quot;&#33;&#x1F98C;", "<b> & \"!🦌", &[]);
        reads("&nbsp;&apos; & &lt", "&nbsp;&apos; & <", &[]);
        reads("&#0;&#xD800;", "&#0;&#xD800;", &[]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_place() {
        refuses("a <p>", "Unsupported start tag \"p\" at byte offset 2");
        refuses("1 <2", "Unclosed start tag at byte offset 2");
        refuses("1 < 2", "Unsupported start tag \"\" at byte offset 2");
        refuses("ü<b>x", "Can't find end tag corresponding to start tag \"b\"");
        refuses("x</b>", "Unexpected end tag at byte offset 1");
        refuses("<i>x</b>", "Unmatched end tag at byte offset 4, expected \"</i>\", found \"</b>\"");
        refuses("<b>x</b", "Unclosed end tag at byte offset 4");
        refuses("<a href=\"x>y", "Unclosed start tag at byte offset 0");
        refuses(
            "<a href>y</a>",
            "Expected equal sign in declaration of an attribute of the tag \"a\" at byte offset 0",
        );
        refuses("<span>x</span>", "Tag \"span\" must have class \"tg-spoiler\" at byte offset 0");
    }
}
