//! Takes secrets out of text before it is logged or shown: by their shape, and by the very words that
//! the configuration holds. The types that hold secrets do not print them either; this is the second net.

use regex::Regex;
use std::{borrow::Cow, sync::OnceLock};

/// What stands in a secret's place.
pub const HIDDEN: &str = "[secret]";

/// Shapes of secrets. Each has one capture group in front that is kept, so that a reader sees what was
/// hidden: `Bearer [secret]`.
const SHAPES: &[&str] = &[
    // A Telegram bot token, alone or in the path of a URL: numeric bot id, colon, 35 characters.
    r"(\bbot|\b)[0-9]{6,12}:[A-Za-z0-9_-]{30,}",
    // Slack: bot, user, app-level and refresh tokens.
    r"()\bx(?:ox[a-z]|app)(?:\.xox[a-z])?-[A-Za-z0-9-]{10,}",
    // Discord: user id, time and signature in base64, with dots between.
    r"()\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    // Feishu and Lark: tenant, user and app access tokens.
    r"()\b[tua]-[A-Za-z0-9]{2,}[A-Za-z0-9._-]{18,}",
    // OpenAI, Anthropic and those who took over the prefix.
    r"()\bsk-[A-Za-z0-9_-]{16,}",
    // A bearer or basic header.
    r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}",
    // A password in a URL.
    r"(\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@/\s]+@",
    // A named value: query, form, header, JSON (DingTalk's and Feishu's secrets have no shape of their own).
    r#"(?i)((?:access_token|app_secret|appsecret|client_secret|clientsecret|secret_token|accesstoken|api[_-]?key|password|ticket|token|secret)["']?\s*[:=]\s*["']?)[^\s"'&,;}\[\]]{6,}"#,
];

/// Knows what to hide.
#[derive(Clone, Default)]
pub struct Scrubber {
    words: Vec<String>,
}

/// Says how much it knows, never what.
impl std::fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrubber").field("words", &self.words.len()).finish()
    }
}

impl Scrubber {
    /// Makes one that hides these very words as well. Words under 6 characters are left: hiding them
    /// would tear ordinary text.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        let mut words: Vec<String> = words.into_iter().filter(|word| word.len() >= 6).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Self { words }
    }

    /// Returns the text without secrets.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for word in &self.words {
            if text.contains(word.as_str()) {
                text = Cow::Owned(text.replace(word.as_str(), HIDDEN));
            }
        }
        for shape in shapes() {
            if shape.is_match(&text) {
                let replaced = shape.replace_all(&text, |caps: &regex::Captures<'_>| {
                    let kept = caps.get(1).map_or("", |m| m.as_str());
                    let at = if caps.get(0).is_some_and(|m| m.as_str().ends_with('@')) { "@" } else { "" };
                    format!("{kept}{HIDDEN}{at}")
                });
                text = Cow::Owned(replaced.into_owned());
            }
        }
        text
    }
}

fn shapes() -> &'static [Regex] {
    static COMPILED: OnceLock<Vec<Regex>> = OnceLock::new();
    // A shape that does not compile is caught by the first test.
    COMPILED.get_or_init(|| SHAPES.iter().filter_map(|shape| Regex::new(shape).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(text: &str) -> String {
        Scrubber::new(["feishu-secret-of-32-characters-xx".to_owned()]).scrub(text).into_owned()
    }

    #[test]
    fn every_shape_compiles() {
        assert_eq!(shapes().len(), SHAPES.len());
    }

    #[test]
    fn each_platforms_token_shape_is_hidden() {
        let check = |text: &str, expect: &str| assert_eq!(scrub(text), expect, "{text}");
        let discord = format!("M{}.{}.{}", "T".repeat(24), "GabcdE", "s".repeat(38));
        check(
            "https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/getMe failed",
            "https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0/getMe failed"
                .replace("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0", HIDDEN)
                .as_str(),
        );
        check("slack xoxb-1234567890-abcdefghij ok", "slack [secret] ok");
        check("slack xapp-1-A0123456789-123-abc ok", "slack [secret] ok");
        check(&format!("discord {discord} ok"), "discord [secret] ok");
        check("feishu t-g1044qeGEDXTB6NDJOGV4JQCYDGHRBARFTGT1234 ok", "feishu [secret] ok");
        check("app secret feishu-secret-of-32-characters-xx", "app secret [secret]");
        check("wss://h/connect?ticket=abcdef-123&x=1", "wss://h/connect?ticket=[secret]&x=1");
        check("oapi/robot/send?access_token=566cc69da782ec", "oapi/robot/send?access_token=[secret]");
        check(r#"{"appSecret":"dingTalkSecretWithoutShape"}"#, r#"{"appSecret":"[secret]"}"#);
        check(&format!("key sk-{} ok", "ant-api03".repeat(3)), "key [secret] ok");
        check("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [secret]");
        check("postgres://pudu:hunter2@db/pudu", "postgres://pudu:[secret]@db/pudu");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "the token count is 12",
            "12:30 and 123456:short",
            "task-list of a-team at https://example.org/a:b",
            "/work-items/t-shirt",
            "tokens: 5",
        ] {
            assert_eq!(scrub(text), text);
        }
    }
}
