//! Takes secrets out of text that leaves the process: out of logs, errors, answers of the API and what a command
//! prints. They are known by value, because the configuration holds them or a platform issued them, and by their
//! shape. The types that hold secrets do not print them either; this is the second net.
//!
//! The list of known secrets is the process's own: a secret is registered here once, and everything that
//! leaves goes through [`hide`], so no path has to be given the secrets of another. People's own secrets are theirs to
//! choose: they are taken out of their own commands' results and of the log, and change nothing that others read.

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

/// Replacement for a secret in a text.
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

/// Shorter words are left: hiding them would tear ordinary text.
const MIN_SECRET_BYTES: usize = 6;
/// Minimum length of a value that is taken out of the errors of the program that was given it, in bytes.
const MIN_PROGRAM_BYTES: usize = 4;
/// Values that switch something and are no secrets.
const SWITCHES: [&str; 17] = [
    "true", "false", "none", "null", "auto", "info", "warn", "warning", "error", "debug", "trace", "json",
    "text", "http", "https", "stdio", "default",
];
/// In a talk, shorter ones are left: a password may be a word.
const MIN_TALK_BYTES: usize = 12;
/// Characters that are percent-encoded in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// So many spellings of issued tokens are known; the oldest have long expired.
const MAX_ISSUED: usize = 256;
/// So many spellings of people's own secrets are known, those that were used last.
const MAX_PERSONAL: usize = 1024;
/// A line of a secret that has several is hidden for itself if it is so long, in bytes.
const MIN_LINE_BYTES: usize = 16;

/// Remembers secrets of the configuration for as long as the process lives: also an old one may be repeated by
/// somebody later.
pub fn remember(secrets: impl IntoIterator<Item = String>) {
    learn(|known| {
        known.configured.extend(secrets.into_iter().flat_map(|secret| spellings(&secret, MIN_SECRET_BYTES)))
    });
}

/// Remembers a token that a platform issued, among the newest of them.
pub fn remember_issued(token: &str) {
    learn(|known| push(&mut known.issued, spellings(token, MIN_SECRET_BYTES), MAX_ISSUED));
}

/// Adds what is not known yet, and drops the oldest that are too many.
fn push(known: &mut VecDeque<String>, spellings: impl Iterator<Item = String>, most: usize) {
    for spelling in spellings {
        known.retain(|other| *other != spelling);
        known.push_back(spelling);
    }
    while known.len() > most {
        known.pop_front();
    }
}

/// The secrets of one person, in every spelling, to be taken out of what their commands print.
#[derive(Clone, Default)]
pub struct SecretWords(Arc<[String]>);

impl SecretWords {
    /// Takes them in, and has them taken out of the log, too, as long as others are not newer. Only for secrets that are
    /// kept: of what anybody may type, nothing is remembered.
    pub fn remember<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let words = Self::with_lines(secrets, MIN_SECRET_BYTES);
        if !words.is_empty() {
            learn(|known| push(&mut known.personal, words.iter().cloned(), MAX_PERSONAL));
        }
        Self::longest_first(words)
    }

    /// Takes in all values that a program was given, to be taken out of its errors and of the log. Ordinary words may be
    /// among them, so nothing else is searched for these values.
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

    /// Returns a text without them.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        replace(text, self.0.iter())
    }
}

/// Returns whether a value is to be remembered, from a place that holds secrets and other things too: its
/// name says so, or it looks like nothing that a person would read.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    const NAMES: [&str; 6] = ["key", "token", "secret", "pass", "auth", "cookie"];
    let name = name.to_lowercase();
    NAMES.iter().any(|part| name.contains(part)) || looks_secret(value)
}

/// Returns whether a value looks like a secret: long, in one piece, letters and digits, and no address or
/// path.
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

/// Returns how a secret looks in plain text, in JSON, in an address and in a form.
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

/// Returns the text of a talk without the secrets that are known by value. What only looks like one stays, because it
/// may be what somebody asks about; so do short ones, which may be words.
#[must_use]
pub fn hide_in_talk(text: &str) -> Cow<'_, str> {
    replace_known(text, MIN_TALK_BYTES)
}

/// Returns the text of an answer that grows, without its end where that may be the beginning of a secret.
#[must_use]
pub fn hide_in_growing_talk(text: &str) -> Cow<'_, str> {
    let text = hide_in_talk(text);
    let words = known(|known| &known.words);
    let begun = words.iter().filter(|word| word.len() >= MIN_TALK_BYTES).filter_map(|word| {
        let mut ends = word.char_indices().map(|(at, _)| at).rev();
        ends.find(|at| *at >= MIN_SECRET_BYTES && word.get(..*at).is_some_and(|begun| text.ends_with(begun)))
    });
    match begun.max() {
        Some(length) => Cow::Owned(text.get(..text.len() - length).unwrap_or_default().to_owned()),
        None => text,
    }
}

/// An answer that is told in pieces: what may be the beginning of a secret waits for what follows.
#[derive(Clone, Debug, Default)]
pub struct GrowingTalk(String);

impl GrowingTalk {
    /// Takes the next piece, and returns what can be told by now.
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
        let told = std::mem::replace(&mut self.0, rest);
        hide_in_talk(&told).into_owned()
    }

    /// Returns what waits: nothing follows.
    pub fn finish(&mut self) -> String {
        hide_in_talk(&std::mem::take(&mut self.0)).into_owned()
    }

    /// Returns whether nothing waits.
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

/// Returns a line of the log without secrets, those of people included.
#[must_use]
pub fn hide_in_log(text: &str) -> Cow<'_, str> {
    hide_shapes(replace(text, known(|known| &known.logged).iter()))
}

fn hide_shapes(mut text: Cow<'_, str>) -> Cow<'_, str> {
    for shape in shapes() {
        if shape.is_match(&text) {
            let replaced = shape.replace_all(&text, |caps: &regex::Captures<'_>| {
                let kept = caps.get(1).map_or("", |m| m.as_str());
                let value = caps.get(0).map_or("", |m| m.as_str()).trim_start_matches(kept);
                // "the token: missing" is prose.
                if kept.ends_with(": ") && !value.contains(|c: char| c.is_ascii_digit()) {
                    return format!("{kept}{value}");
                }
                let at = if caps.get(0).is_some_and(|m| m.as_str().ends_with('@')) { "@" } else { "" };
                format!("{kept}{HIDDEN}{at}")
            });
            text = Cow::Owned(replaced.into_owned());
        }
    }
    text
}

/// Returns at most so many characters of the text without secrets. What is cut first would leave half a secret that
/// nothing recognises.
#[must_use]
pub fn hide_and_cut(text: &str, most: usize) -> String {
    hide(text).chars().take(most).collect()
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
        remember(["feishu-secret-of-32-characters-xx".to_owned()]);
        hide(text).into_owned()
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_spelt_and_whenever_it_became_known() {
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
    fn a_persons_secrets_are_hidden_in_every_spelling_and_line_by_line() {
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
            "theirs alone"
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
    fn a_secret_in_pieces_is_told_by_no_piece() {
        remember(["zq-secret-in-pieces".to_owned()]);
        let told = |pieces: &[&str]| {
            let mut talk = GrowingTalk::default();
            let told: Vec<String> = pieces.iter().map(|piece| talk.push(piece)).collect();
            (told, talk.finish())
        };
        let check = |pieces: &[&str], expected: &[&str], rest: &str| {
            let expected = expected.iter().map(|piece| (*piece).to_owned()).collect();
            assert_eq!(told(pieces), (expected, rest.to_owned()), "{pieces:?}");
        };
        check(&["it is zq-sec", "ret-in-", "pieces!"], &["it is ", "", "[secret]!"], "");
        check(&["it is zq-secret-in-pieces"], &["it is [secret]"], "");
        check(&["zzq", "-secret-in-piec", "es zq"], &["z", "", "[secret] "], "zq");
        check(&["zq-secret", "ary é", "z"], &["", "zq-secretary é", ""], "z");
        let one_by_one: Vec<String> = "a zq-secret-in-pieces z".chars().map(String::from).collect();
        let (pieces, rest) = told(&one_by_one.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(pieces.concat() + &rest, "a [secret] z");
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
            "token: @pudu_bot",
            "channels.slack.app_token: needed here",
        ] {
            assert_eq!(scrub(text), text);
        }
    }
}
