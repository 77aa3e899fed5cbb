//! Removes secrets from text that leaves the process: logs, errors, API responses and output of commands. Secrets are
//! recognized by value, if they are configured or issued by a platform, and by their format. The types that hold
//! secrets do not print them either; this is the second line of defense.
//!
//! The known secrets are global: a secret is registered once, and all output goes through [`hide`], so no module needs
//! access to another's secrets. Users choose their own secrets: these are only removed from the output of the user's
//! commands and from the log, and do not affect texts of others.

mod known;

pub use known::SecretScope;

use known::{known, learn};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use std::{
    borrow::Cow,
    collections::{BTreeSet, VecDeque},
    sync::{Arc, OnceLock},
};
use url::form_urlencoded;

/// Replacement for a secret.
pub const HIDDEN: &str = "[secret]";

/// Formats of secrets. Each has one leading capture group that is kept, so that a reader sees the kind of secret:
/// `Bearer [secret]`.
const SHAPES: &[&str] = &[
    // A Telegram bot token, alone or in the path of a URL: numeric bot id, colon, 35 characters.
    r"(\bbot|\b)[0-9]{6,12}:[A-Za-z0-9_-]{30,}",
    // Slack: bot, user, app-level and refresh tokens.
    r"()\bx(?:ox[a-z]|app)(?:\.xox[a-z])?-[A-Za-z0-9-]{10,}",
    // Discord: user id, time and signature in base64, separated by dots.
    r"()\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}",
    // Feishu and Lark: tenant, user and app access tokens.
    r"()\b[tua]-[A-Za-z0-9]{2,}[A-Za-z0-9._-]{18,}",
    // OpenAI, Anthropic, and providers with the same prefix.
    r"()\bsk-[A-Za-z0-9_-]{16,}",
    // A bearer or basic header.
    r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}",
    // A password in a URL.
    r"(\b[a-z][a-z0-9+.-]*://[^/\s:@]*:)[^@/\s]+@",
    // A named value: query, form, header, JSON (DingTalk's and Feishu's secrets have no format of their own).
    r#"(?i)((?:access_token|app_secret|appsecret|client_secret|clientsecret|secret_token|accesstoken|api[_-]?key|password|ticket|token|secret)["']?\s*[:=]\s*["']?)[^\s"'&,;}\[\]]{6,}"#,
];

/// Minimum length of a hidden secret, in bytes: hiding shorter ones would damage ordinary text.
const MIN_SECRET_BYTES: usize = 6;
/// Minimum length of a value that is hidden in the errors of a program that received it, in bytes.
const MIN_PROGRAM_BYTES: usize = 4;
/// Common settings that are not secrets.
const SWITCHES: [&str; 17] = [
    "true", "false", "none", "null", "auto", "info", "warn", "warning", "error", "debug", "trace", "json",
    "text", "http", "https", "stdio", "default",
];
/// Minimum length of a secret that is hidden in a conversation, in bytes: a short password may be a word.
const MIN_TALK_BYTES: usize = 12;
/// Characters that are percent-encoded in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Maximum number of known spellings of issued tokens; the oldest have long expired.
const MAX_ISSUED: usize = 256;
/// Maximum number of known spellings of users' secrets, the most recently used.
const MAX_PERSONAL: usize = 1024;
/// Minimum length of a line of a multi-line secret that is hidden on its own, in bytes.
const MIN_LINE_BYTES: usize = 16;

/// Remembers secrets of the configuration for as long as the process lives, because an old one may be repeated
/// later.
pub fn remember(secrets: impl IntoIterator<Item = String>) {
    learn(|known| {
        known.configured.extend(secrets.into_iter().flat_map(|secret| spellings(&secret, MIN_SECRET_BYTES)))
    });
}

/// Registers a token that a platform issued.
pub fn remember_issued(token: &str) {
    learn(|known| push(&mut known.issued, spellings(token, MIN_SECRET_BYTES), MAX_ISSUED));
}

/// Adds new spellings and drops the oldest ones in excess of the limit.
fn push(known: &mut VecDeque<String>, spellings: impl Iterator<Item = String>, most: usize) {
    for spelling in spellings {
        known.retain(|other| *other != spelling);
        known.push_back(spelling);
    }
    while known.len() > most {
        known.pop_front();
    }
}

/// The secrets of one user in every spelling, to be hidden in the output of their commands.
#[derive(Clone, Default)]
pub struct SecretWords(Arc<[String]>);

impl SecretWords {
    /// Registers secrets, and also hides them in the log until too many newer ones follow. Only for stored secrets:
    /// text that users type is not registered.
    pub fn remember<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let words = Self::with_lines(secrets, MIN_SECRET_BYTES);
        if !words.is_empty() {
            learn(|known| push(&mut known.personal, words.iter().cloned(), MAX_PERSONAL));
        }
        Self::longest_first(words)
    }

    /// Registers all values that were passed to a program, to hide them in its errors and in the log. They may be
    /// ordinary words, so they are not hidden elsewhere.
    pub fn of_program<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let is_switch = |value: &str| SWITCHES.contains(&value.trim().to_ascii_lowercase().as_str());
        let values: Vec<&str> = values.into_iter().filter(|value| !is_switch(value)).collect();
        let logged = Self::with_lines(values.iter().copied(), MIN_SECRET_BYTES);
        if !logged.is_empty() {
            learn(|known| known.given.extend(logged));
        }
        Self::longest_first(Self::with_lines(values, MIN_PROGRAM_BYTES))
    }

    /// Returns secrets of a minimum length, in bytes, and their long lines, in every spelling.
    fn with_lines<'a>(secrets: impl IntoIterator<Item = &'a str>, least: usize) -> BTreeSet<String> {
        let lines = |secret: &'a str| secret.lines().filter(|line| line.len() >= MIN_LINE_BYTES);
        let parts = secrets.into_iter().flat_map(|secret| std::iter::once(secret).chain(lines(secret)));
        parts.flat_map(|part| spellings(part, least)).collect()
    }

    fn longest_first(words: BTreeSet<String>) -> Self {
        let mut words: Vec<String> = words.into_iter().collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Self(words.into())
    }

    /// Returns a text without these secrets.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        replace(text, self.0.iter())
    }
}

/// Returns whether a value from a mixed source is a secret: its name suggests one, or the value looks random.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    const NAMES: [&str; 6] = ["key", "token", "secret", "pass", "auth", "cookie"];
    let name = name.to_lowercase();
    NAMES.iter().any(|part| name.contains(part)) || looks_secret(value)
}

/// Returns whether a value looks like a secret: long, without spaces, letters and digits, and not an address or path.
#[must_use]
pub fn looks_secret(value: &str) -> bool {
    const MIN_BYTES: usize = 16;
    let has = |what: fn(char) -> bool| value.chars().any(what);
    value.len() >= MIN_BYTES
        && !has(char::is_whitespace)
        && !value.starts_with(['/', '.', '~'])
        && !value.contains("://")
        && has(|c| c.is_ascii_digit())
        && has(|c| c.is_ascii_alphabetic())
}

/// Returns the spellings of a secret in plain text, JSON, URLs and forms.
fn spellings(secret: &str, least: usize) -> impl Iterator<Item = String> + use<> {
    let json = secret.replace('\\', r"\\").replace('"', r#"\""#);
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let all = BTreeSet::from([
        secret.to_owned(),
        json.replace('/', r"\/"),
        json,
        utf8_percent_encode(secret, RESERVED).to_string(),
        form,
    ]);
    let known = secret.trim().len() >= least;
    all.into_iter().filter(move |_| known)
}

/// Returns the text of a conversation without secrets that are known by value. Text that only looks like a secret is
/// kept, because a user may be asking about it, and so are short secrets, which may be words.
#[must_use]
pub fn hide_in_talk(text: &str) -> Cow<'_, str> {
    replace_known(text, MIN_TALK_BYTES)
}

/// Returns a partial answer without secrets, and without an end that may be the beginning of one.
#[must_use]
pub fn hide_in_growing_talk(text: &str) -> Cow<'_, str> {
    let text = hide_in_talk(text);
    let words = known(|known| &known.words);
    let partial = words.iter().filter(|word| word.len() >= MIN_TALK_BYTES).filter_map(|word| {
        let mut ends = word.char_indices().map(|(at, _)| at).rev();
        ends.find(|at| {
            *at >= MIN_SECRET_BYTES && word.get(..*at).is_some_and(|partial| text.ends_with(partial))
        })
    });
    match partial.max() {
        Some(length) => Cow::Owned(text.get(..text.len() - length).unwrap_or_default().to_owned()),
        None => text,
    }
}

/// An answer in chunks: a possible beginning of a secret is held until the next chunk.
#[derive(Clone, Debug, Default)]
pub struct GrowingTalk(String);

impl GrowingTalk {
    /// Adds a chunk, and returns the text that can be sent.
    pub fn push(&mut self, piece: &str) -> String {
        self.0.push_str(piece);
        let words = known(|known| &known.words);
        let is_begun = |end: &str| {
            words
                .iter()
                .any(|word| word.len() >= MIN_TALK_BYTES && word.len() > end.len() && word.starts_with(end))
        };
        let mut starts = self.0.char_indices().map(|(at, _)| at);
        let held = starts.find(|at| self.0.get(*at..).is_some_and(is_begun)).unwrap_or(self.0.len());
        let rest = self.0.split_off(held);
        let released = std::mem::replace(&mut self.0, rest);
        hide_in_talk(&released).into_owned()
    }

    /// Returns the held text at the end.
    pub fn finish(&mut self) -> String {
        hide_in_talk(&std::mem::take(&mut self.0)).into_owned()
    }

    /// Returns whether no text is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn replace_known(text: &str, shortest: usize) -> Cow<'_, str> {
    replace(text, known(|known| &known.words).iter().filter(|word| word.len() >= shortest))
}

fn replace<'t, 'w>(text: &'t str, words: impl Iterator<Item = &'w String>) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    for word in words {
        if text.contains(word.as_str()) {
            text = Cow::Owned(text.replace(word.as_str(), HIDDEN));
        }
    }
    text
}

/// Returns the text without secrets.
#[must_use]
pub fn hide(text: &str) -> Cow<'_, str> {
    hide_shapes(replace_known(text, MIN_SECRET_BYTES))
}

/// Returns a log line without secrets, including those of users.
#[must_use]
pub fn hide_in_log(text: &str) -> Cow<'_, str> {
    hide_shapes(replace(text, known(|known| &known.logged).iter()))
}

fn hide_shapes(mut text: Cow<'_, str>) -> Cow<'_, str> {
    for shape in shapes() {
        if shape.is_match(&text) {
            let replaced = shape.replace_all(&text, |caps: &regex::Captures<'_>| {
                let prefix = caps.get(1).map_or("", |m| m.as_str());
                let value = caps.get(0).map_or("", |m| m.as_str()).trim_start_matches(prefix);
                // "the token: missing" is prose.
                if prefix.ends_with(": ") && !value.contains(|c: char| c.is_ascii_digit()) {
                    return format!("{prefix}{value}");
                }
                let at = if caps.get(0).is_some_and(|m| m.as_str().ends_with('@')) { "@" } else { "" };
                format!("{prefix}{HIDDEN}{at}")
            });
            text = Cow::Owned(replaced.into_owned());
        }
    }
    text
}

/// Returns at most `most` characters of the text without secrets. Cutting first could leave a part of a secret that is
/// not recognized.
#[must_use]
pub fn hide_and_cut(text: &str, most: usize) -> String {
    hide(text).chars().take(most).collect()
}

fn shapes() -> &'static [Regex] {
    static COMPILED: OnceLock<Vec<Regex>> = OnceLock::new();
    // The tests detect an invalid format.
    COMPILED.get_or_init(|| SHAPES.iter().filter_map(|shape| Regex::new(shape).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(text: &str) -> String {
        remember(["feishu-secret-of-32-characters-xx".to_owned()]);
        hide(text).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_in_every_spelling_from_any_source() {
        let secret = "a/key-with=signs\"and 'quotes'";
        remember([secret.to_owned(), "short".to_owned()]);
        remember_issued("issued-0123456789");
        let check = |text: &str, expect: &str| assert_eq!(hide(text), expect, "{text}");
        check(&format!("it said {secret}!"), "it said [secret]!");
        check("GET /x?k=a%2Fkey-with%3Dsigns%22and%20%27quotes%27", "GET /x?k=[secret]");
        check("k=a%2Fkey-with%3Dsigns%22and+%27quotes%27&x=1", "k=[secret]&x=1");
        check(r#"{"echo":"a/key-with=signs\"and 'quotes'"}"#, r#"{"echo":"[secret]"}"#);
        check(r#"{"echo":"a\/key-with=signs\"and 'quotes'"}"#, r#"{"echo":"[secret]"}"#);
        let growing = |text: &str, expect: &str| assert_eq!(hide_in_growing_talk(text), expect, "{text}");
        growing("it is a/key-wi", "it is ");
        growing(&format!("it is {secret}"), "it is [secret]");
        growing("it is a/key", "it is a/key");
        remember(["wordpass".to_owned()]);
        assert_eq!((hide_in_talk("wordpass"), hide("wordpass")), ("wordpass".into(), "[secret]".into()));
        check("issued-0123456789 short", "[secret] short");
        (0..MAX_ISSUED).for_each(|n| remember_issued(&format!("{n:010}")));
        check("issued-0123456789", "issued-0123456789");
        remember_issued("issued-0123456789");
        assert_eq!(hide_and_cut("0123 issued-0123456789", 14), "0123 [secret]");
    }

    #[test]
    fn a_users_secrets_are_hidden_in_every_spelling_and_line_by_line() {
        let key = "-----BEGIN KEY-----\nAAAABBBBCCCCDDDDEEEE\nshort\n-----END KEY-----";
        let words = SecretWords::remember(["pass \"word\" 1", key]);
        let check = |text: &str, expect: &str| assert_eq!(words.hide(text), expect, "{text}");
        check("it is pass \"word\" 1.", "it is [secret].");
        check(r#"{"k":"pass \"word\" 1"}"#, r#"{"k":"[secret]"}"#);
        check("k=pass+%22word%22+1&x", "k=[secret]&x");
        check(key, "[secret]");
        check("2: AAAABBBBCCCCDDDDEEEE!", "2: [secret]!");
        check("short and nothing else", "short and nothing else");
        assert_eq!(hide_in_log("pass \"word\" 1"), "[secret]");
        let others = "say pass \"word\" 1 again";
        assert_eq!(
            [hide(others), hide_in_talk(others), hide_in_growing_talk(others)],
            [others; 3],
            "hidden only in their own output"
        );
        assert_eq!(hide_in_growing_talk("say pass \"wo"), "say pass \"wo");
        assert_eq!(SecretWords::default().hide("x"), "x");
    }

    #[test]
    fn values_of_a_program_are_hidden_in_its_errors_and_in_the_log() {
        let words = SecretWords::of_program(["Europe/Berlin", "s3kr", "abc", "Error", "a \"b\" c"]);
        let check = |text: &str, expect: &str| assert_eq!(words.hide(text), expect, "{text}");
        check("no zone Europe/Berlin or Europe%2FBerlin", "no zone [secret] or [secret]");
        check("error: s3kr is not abc", "error: [secret] is not abc");
        check(r#"{"v":"a \"b\" c"}"#, r#"{"v":"[secret]"}"#);
        let others = "It is noon in Europe/Berlin.";
        assert_eq!([hide(others), hide_in_talk(others)], [others; 2]);
        assert_eq!(hide_in_log(others), "It is noon in [secret].");
        assert_eq!(hide_in_log("s3kr"), "s3kr");
    }

    #[test]
    fn no_chunk_reveals_a_split_secret() {
        remember(["zq-secret-in-pieces".to_owned()]);
        let stream = |pieces: &[&str]| {
            let mut talk = GrowingTalk::default();
            let shown: Vec<String> = pieces.iter().map(|piece| talk.push(piece)).collect();
            (shown, talk.finish())
        };
        let check = |pieces: &[&str], expected: &[&str], rest: &str| {
            let expected = expected.iter().map(|piece| (*piece).to_owned()).collect();
            assert_eq!(stream(pieces), (expected, rest.to_owned()), "{pieces:?}");
        };
        check(&["it is zq-sec", "ret-in-", "pieces!"], &["it is ", "", "[secret]!"], "");
        check(&["it is zq-secret-in-pieces"], &["it is [secret]"], "");
        check(&["zzq", "-secret-in-piec", "es zq"], &["z", "", "[secret] "], "zq");
        check(&["zq-secret", "ary é", "z"], &["", "zq-secretary é", ""], "z");
        let one_by_one: Vec<String> = "a zq-secret-in-pieces z".chars().map(String::from).collect();
        let (pieces, rest) = stream(&one_by_one.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(pieces.concat() + &rest, "a [secret] z");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(shapes().len(), SHAPES.len());
    }

    #[test]
    fn the_token_format_of_each_platform_is_hidden() {
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
            "token: @pudu_bot",
            "channels.slack.app_token: needed here",
        ] {
            assert_eq!(scrub(text), text);
        }
    }
}
