//! Text of a message: replaces references with names, and removes mentions of the bot.

use std::{borrow::Cow, collections::HashMap};

/// Text of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SlackText {
    pub(super) text: String,
    /// Whether the bot was mentioned.
    pub(super) mentioned: bool,
}

/// Parses a text. `names` contains the names of the mentioned users.
pub(super) fn parse_text(text: &str, bot: &str, names: &HashMap<String, String>) -> SlackText {
    let mut out = String::with_capacity(text.len());
    let mut mentioned = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(&unescape(before));
        let Some((inside, after)) = after.split_once('>') else {
            out.push('<');
            rest = after;
            continue;
        };
        rest = after;
        if user(inside) == Some(bot) {
            mentioned = true;
            rest = close(&out, rest);
        } else {
            out.push_str(&reference(inside, names));
        }
    }
    out.push_str(&unescape(rest));
    SlackText { text: out.trim().to_owned(), mentioned }
}

/// Returns the ids of the users mentioned in a text, except the bot.
pub(super) fn named<'a>(text: &'a str, bot: &str) -> Vec<&'a str> {
    let inside = text.split('<').skip(1).filter_map(|part| Some(part.split_once('>')?.0));
    let plain = inside.filter(|inside| !inside.contains('|'));
    plain.filter_map(user).filter(|id| *id != bot).collect()
}

fn user(inside: &str) -> Option<&str> {
    inside.strip_prefix('@').map(|rest| rest.split_once('|').map_or(rest, |(id, _)| id))
}

/// Returns the text after a removed mention, without a double space, and at the start without the comma.
fn close<'a>(out: &str, rest: &'a str) -> &'a str {
    let called = rest.strip_prefix([',', ':']).filter(|rest| rest.starts_with(char::is_whitespace));
    let rest = called.filter(|_| out.trim().is_empty()).unwrap_or(rest);
    if out.ends_with(char::is_whitespace) { rest.strip_prefix(' ').unwrap_or(rest) } else { rest }
}

fn reference(inside: &str, names: &HashMap<String, String>) -> String {
    let (target, label) =
        inside.split_once('|').map_or((inside, None), |(target, label)| (target, Some(label)));
    let label = label.map(unescape).filter(|label| !label.is_empty());
    let sign = target.chars().next();
    let id = target.get(sign.map_or(0, char::len_utf8)..).unwrap_or_default();
    match sign {
        Some('@') => format!("@{}", label.as_deref().or(names.get(id).map(String::as_str)).unwrap_or(id)),
        Some('#') => format!("#{}", label.as_deref().unwrap_or(id)),
        // A date has its text in its label; the label of a group includes the `@`.
        Some('!') => match label {
            Some(label) => label.into_owned(),
            None => format!("@{}", id.split('^').next().unwrap_or_default()),
        },
        _ => {
            let url = unescape(target);
            match label {
                Some(label) if !url.ends_with(label.as_ref()) => format!("{label} ({url})"),
                _ => url.strip_prefix("mailto:").unwrap_or(&url).to_owned(),
            }
        }
    }
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> (String, bool) {
        let names = HashMap::from([("U2".to_owned(), "Bob".to_owned())]);
        let words = parse_text(text, "UBOT", &names);
        (words.text, words.mentioned)
    }

    #[test]
    fn references_become_text() {
        let cases = [
            ("<@UBOT> hello", "hello", true),
            ("<@UBOT|pudu>: hello", "hello", true),
            ("hello <@UBOT> there", "hello there", true),
            ("ask <@U2> and <@U3|cy>", "ask @Bob and @cy", false),
            ("<@U9>", "@U9", false),
            ("see <https://a.b/?x=1&amp;y=2|the page>", "see the page (https://a.b/?x=1&y=2)", false),
            ("<http://a.b|a.b> <https://c.d>", "http://a.b https://c.d", false),
            ("<mailto:a@b.c|a@b.c>", "a@b.c", false),
            (
                "<#C1|general> <!here> <!subteam^S1|@team> <!date^1^{d}|today>",
                "#general @here @team today",
                false,
            ),
            ("1 &lt; 2 &amp;amp; 3 &gt; 2", "1 < 2 &amp; 3 > 2", false),
            ("a < b", "a < b", false),
            ("<@UBOT> /status", "/status", true),
        ];
        for (given, text, mentioned) in cases {
            assert_eq!(read(given), (text.to_owned(), mentioned), "for {given:?}");
        }
        assert_eq!(named("<@U1> <@UBOT> <@U2|x> <https://a>", "UBOT"), ["U1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn arbitrary_text_never_panics(text in "[<>@#!|&a-z^ é]{0,60}") {
            let (read, _) = read(&text);
            prop_assert!(read.len() <= text.len() * 2 + 60);
        }
    }
}
