//! The types of settings.
//!
//! A value may be written directly, as text that can be parsed as the value, or as `$NAME` for a variable with such a
//! text. Empty text counts as absent. The value of a variable is never shown.

use super::{
    declaration::ValueKind,
    declare::Setting,
    problem::{Problem, join, nearest},
    quantity::{self, NumberUnit},
    raw::{Node, NodeValue},
    reader::{Section, describe, kind},
};
use jiff::tz::TimeZone;
use pudu_net::scrub;
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value as Json};
use std::{fmt::Display, ops::RangeInclusive, time::Duration};
use url::Url;

impl<'r> Section<'r> {
    /// Reads text.
    pub(super) fn text<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, String> {
        self.scalar(key, ValueKind::Text("text"), false, String::clone, text)
    }

    /// Reads a secret text. A placeholder is refused.
    pub(super) fn secret<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, SecretString> {
        let secret = self.secret_or_placeholder(key);
        match &secret.value {
            Some(value) if self.is_needed() && is_placeholder(value.expose_secret()) => {
                let what = match self.variable(key) {
                    Some(name) => {
                        format!("the environment variable {name} is a placeholder, not a secret")
                    }
                    None => "this is a placeholder, not a secret".to_owned(),
                };
                self.refuse(key, what, "write the real secret, preferably as a variable: $NAME");
                Setting { value: None, spoilt: true, ..secret }
            }
            _ => secret,
        }
    }

    /// Reads a secret text, which may be a placeholder.
    pub(super) fn secret_or_placeholder<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, SecretString> {
        let show = |secret: &SecretString| secret.expose_secret().to_owned();
        let kind = ValueKind::Text("secret");
        let secret = self.scalar(key, kind, true, show, |value| Ok(text(value)?.map(SecretString::from)));
        self.know_secret(secret.value.as_ref());
        secret
    }

    /// Reads a boolean.
    pub(super) fn flag<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, bool> {
        self.scalar(key, ValueKind::Flag, false, bool::to_string, flag)
    }

    /// Reads an integer.
    pub(super) fn number<'s, T>(&'s self, key: &'s str, range: RangeInclusive<T>) -> Setting<'s, 'r, T>
    where
        T: Copy + Display + TryFrom<i128> + TryInto<i128> + 'static,
    {
        self.amount(key, NumberUnit::Plain, range)
    }

    /// Reads an integer number of a unit. It may be written with another unit of the same kind.
    pub(super) fn amount<'s, T>(
        &'s self,
        key: &'s str,
        unit: NumberUnit,
        range: RangeInclusive<T>,
    ) -> Setting<'s, 'r, T>
    where
        T: Copy + Display + TryFrom<i128> + TryInto<i128> + 'static,
    {
        let kind = number(unit.name(), &range, true);
        let [low, high] = [*range.start(), *range.end()].map(|end| end.try_into().unwrap_or(i128::MAX));
        self.scalar(key, kind, false, T::to_string, move |value| {
            let within = |n: i128| (low..=high).contains(&n).then(|| T::try_from(n).ok()).flatten();
            let number =
                unit.parse(value).and_then(quantity::to_whole).ok_or_else(|| match unit.help(value) {
                    help if unit == NumberUnit::Days => help.replace("days", "whole days"),
                    help => help.to_owned(),
                })?;
            // The message consists only of the expected range.
            Ok(Some(within(number).ok_or_else(String::new)?))
        })
    }

    /// Reads a time as an integer number of a unit.
    pub(super) fn span<'s>(
        &'s self,
        key: &'s str,
        unit: NumberUnit,
        range: RangeInclusive<u64>,
    ) -> Setting<'s, 'r, Duration> {
        let millis = unit.millis();
        let Setting { kind, value, spoilt, .. } = self.amount(key, unit, range);
        let show = move |time: &Duration| (time.as_millis() / u128::from(millis)).to_string();
        Setting::new(self, key, kind, show, value.map(|count| Duration::from_millis(count * millis)), spoilt)
    }

    /// Reads any number.
    pub(super) fn decimal<'s>(&'s self, key: &'s str, range: RangeInclusive<f64>) -> Setting<'s, 'r, f64> {
        self.any_number(key, NumberUnit::Plain, "number", range)
    }

    /// Reads a number of days, with or without a fraction.
    pub(super) fn days<'s>(&'s self, key: &'s str, range: RangeInclusive<f64>) -> Setting<'s, 'r, f64> {
        self.any_number(key, NumberUnit::Days, "days", range)
    }

    /// Reads a fraction, or a count that may have a unit of tokens.
    pub(super) fn share_or_tokens<'s>(
        &'s self,
        key: &'s str,
        range: RangeInclusive<f64>,
    ) -> Setting<'s, 'r, f64> {
        self.any_number(key, NumberUnit::Tokens, "number", range)
    }

    fn any_number<'s>(
        &'s self,
        key: &'s str,
        unit: NumberUnit,
        kind: &'static str,
        range: RangeInclusive<f64>,
    ) -> Setting<'s, 'r, f64> {
        self.scalar(key, number(kind, &range, false), false, f64::to_string, move |value| {
            let number = unit.parse(value).ok_or_else(|| unit.help(value))?;
            Ok(Some(Some(number).filter(|n| range.contains(n)).ok_or_else(String::new)?))
        })
    }

    /// Reads a time in seconds, up to a year.
    pub(super) fn seconds<'s>(&'s self, key: &'s str, least: f64) -> Setting<'s, 'r, Duration> {
        const YEAR: f64 = 31_536_000.0;
        let show = |time: &Duration| time.as_secs_f64().to_string();
        let range = least..=YEAR;
        self.scalar(key, number("seconds", &range, false), false, show, move |value| {
            let number = NumberUnit::Seconds.parse(value).ok_or_else(|| NumberUnit::Seconds.help(value))?;
            let within = Some(number).filter(|n| range.contains(n));
            Ok(Some(Duration::from_secs_f64(within.ok_or_else(String::new)?)))
        })
    }

    /// Reads a URL that begins with `http://` or `https://`.
    pub(super) fn url<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Url> {
        let show = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
        let setting = self.scalar(key, ValueKind::Text("URL"), false, show, |value| {
            let Some(text) = text(value)? else { return Ok(None) };
            let url = Url::parse(&text).map_err(|fault| match fault {
                url::ParseError::InvalidPort => "write a port from 1 to 65535",
                url::ParseError::EmptyHost => "write a host after the `//`",
                _ => "begin it with https:// or http://",
            })?;
            let url = Some(url).filter(|url| matches!(url.scheme(), "http" | "https"));
            Ok(Some(url.ok_or("begin it with https:// or http://")?))
        });
        if let Some(url) = &setting.value {
            let pairs = url.query_pairs().filter(|(name, value)| scrub::is_secret(name, value));
            let hidden = pairs.map(|(_, value)| value.into_owned()).chain(url.password().map(str::to_owned));
            self.know_secret(&hidden.map(SecretString::from).collect::<Vec<_>>());
        }
        setting
    }

    /// Reads a time zone: a name known to the system, or a fixed offset.
    pub(super) fn timezone<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, TimeZone> {
        let show = |zone: &TimeZone| match (zone.iana_name(), zone.to_fixed_offset()) {
            (Some(name), _) => name.to_owned(),
            (None, Ok(offset)) => offset.to_string(),
            (None, Err(_)) => "the system's".to_owned(),
        };
        self.scalar(key, ValueKind::Text("time zone"), false, show, |value| {
            let Some(text) = text(value)? else { return Ok(None) };
            let help = "write a time zone of this machine, such as Europe/Berlin, or an offset: +02:00";
            quantity::time_zone(&text).map(Some).ok_or_else(|| help.to_owned())
        })
    }

    /// Reads one of the languages that have a catalogue.
    pub(super) fn language<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Language> {
        let show = |language: &Language| language.primary().to_owned();
        self.scalar(key, ValueKind::Text("en or zh"), false, show, |value| {
            let Some(text) = text(value)? else { return Ok(None) };
            match text.to_ascii_lowercase().as_str() {
                "en" => Ok(Some(Language::English)),
                "zh" | "zh-cn" | "zh-hans" => Ok(Some(Language::Chinese)),
                _ => {
                    Err("write en, or zh for Simplified Chinese; without the key each person gets their own"
                        .to_owned())
                }
            }
        })
    }

    /// Reads one of the given words.
    pub(super) fn choice<'s, T: Copy + PartialEq + 'static>(
        &'s self,
        key: &'s str,
        words: &'static [(&'static str, T)],
    ) -> Setting<'s, 'r, T> {
        let all = words.iter().map(|(word, _)| *word);
        let kind = ValueKind::Choice(all.clone().collect());
        let show = |choice: &T| {
            words
                .iter()
                .find(|(_, other)| other == choice)
                .map_or_else(String::new, |(word, _)| (*word).to_owned())
        };
        self.scalar(key, kind, false, show, move |value| {
            // Unquoted `on` and `off` are booleans in YAML.
            let typed = match value {
                NodeValue::Bool(true) => Some("on".to_owned()),
                NodeValue::Bool(false) => Some("off".to_owned()),
                value => text(value)?,
            };
            let Some(typed) = typed else { return Ok(None) };
            let typed = typed.to_lowercase();
            match words.iter().find(|(word, _)| *word == typed) {
                Some((_, choice)) => Ok(Some(*choice)),
                None => Err(nearest(&typed, all.clone())
                    .map_or_else(String::new, |near| format!("did you mean `{near}`?"))),
            }
        })
    }

    /// Reads a list. A single value is a list of one, and a text may contain several values separated by commas.
    pub(super) fn list<'s, T: Display>(
        &'s self,
        key: &'s str,
        kind: &'static str,
        one: impl Fn(&NodeValue) -> Result<T, String>,
    ) -> Setting<'s, 'r, Vec<T>> {
        let path = join(&self.path, key);
        let entry = self.entry(key);
        let nodes = match entry.map(|entry| &entry.node) {
            Some(Node { value: NodeValue::List(nodes), .. }) => nodes.iter().collect(),
            other => Vec::from_iter(other),
        };
        let (mut items, mut spoilt) = (Vec::new(), false);
        for node in nodes {
            for piece in self.pieces(&path, node) {
                match self.one(&path, kind, node, piece, &one) {
                    Some(item) => items.push(item),
                    None => spoilt = true,
                }
            }
        }
        let show = |items: &Vec<T>| items.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
        Setting::new(self, key, ValueKind::List(kind), show, entry.map(|_| items), spoilt)
    }

    /// Reads a list of plain names.
    pub(super) fn names<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Vec<String>> {
        let name = |value: &NodeValue| match value {
            NodeValue::Text(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err("write names".to_owned()),
        };
        self.list(key, "names", name)
    }

    /// Reads a list of texts, which may contain commas.
    pub(super) fn texts<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Vec<String>> {
        let path = join(&self.path, key);
        let entry = self.entry(key);
        let text = |value: Json| match value {
            Json::String(text) => text,
            other => other.to_string(),
        };
        let value = entry.and_then(|entry| match self.json(&path, &entry.node) {
            Some(Json::Array(items)) if !items.iter().any(|item| item.is_array() || item.is_object()) => {
                Some(items.into_iter().map(text).collect())
            }
            Some(_) => {
                self.mismatch(
                    &path,
                    &entry.node,
                    kind(&entry.node.value),
                    "a list of texts",
                    "write `[one, two]`",
                );
                None
            }
            None => None,
        });
        let spoilt = entry.is_some() && value.is_none();
        let show = |texts: &Vec<String>| texts.join(", ");
        Setting::new(self, key, ValueKind::List("texts"), show, value, spoilt)
    }

    /// Reads a mapping with arbitrary keys, and expands the variables in it.
    pub(super) fn map<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Map<String, Json>> {
        let show = |map: &Map<String, Json>| {
            if map.is_empty() { "{}".to_owned() } else { Json::from(map.clone()).to_string() }
        };
        let entry = self.entry(key);
        let path = join(&self.path, key);
        let value = entry.and_then(|entry| match self.json(&path, &entry.node) {
            Some(Json::Object(map)) => Some(map),
            Some(_) => {
                self.mismatch(&path, &entry.node, kind(&entry.node.value), "a mapping", "");
                None
            }
            None => None,
        });
        let spoilt = entry.is_some() && value.is_none();
        Setting::new(self, key, ValueKind::Mapping, show, value, spoilt)
    }

    /// Returns the given keys that are present, as JSON.
    pub(super) fn carried(&self, keys: &[&str]) -> Map<String, Json> {
        let pair = |key: &&str| {
            let entry = self.entry(key)?;
            Some(((*key).to_owned(), self.json(&join(&self.path, key), &entry.node)?))
        };
        keys.iter().filter_map(pair).collect()
    }

    /// Converts a value to JSON. Reports and omits a value that JSON cannot represent.
    fn json(&self, path: &str, node: &Node) -> Option<Json> {
        Some(match &node.value {
            NodeValue::Null => Json::Null,
            NodeValue::Bool(value) => Json::from(*value),
            NodeValue::Int(value) => i64::try_from(*value)
                .map(Json::from)
                .or_else(|_| u64::try_from(*value).map(Json::from))
                .ok()?,
            NodeValue::Float(value) => Json::from(*value),
            NodeValue::Text(text) => Json::from(self.expand(path, node.at, text)?),
            NodeValue::List(items) => items.iter().filter_map(|item| self.json(path, item)).collect(),
            NodeValue::Map(entries) => {
                let pair = |entry: &super::raw::MappingEntry| {
                    Some((entry.key.clone(), self.json(&join(path, &entry.key), &entry.node)?))
                };
                Json::Object(entries.iter().filter_map(pair).collect())
            }
        })
    }

    fn scalar<'s, T>(
        &'s self,
        key: &'s str,
        expected: ValueKind,
        secret: bool,
        show: impl Fn(&T) -> String + 'static,
        parse: impl Fn(&NodeValue) -> Result<Option<T>, String>,
    ) -> Setting<'s, 'r, T> {
        let node = self.entry(key).map(|entry| &entry.node);
        let path = join(&self.path, key);
        let (value, spoilt) = match node.map(|node| (node, self.resolve(&path, node))) {
            None => (None, false),
            Some((_, None)) => (None, true),
            Some((_, Some(NodeValue::Text(empty)))) if empty.is_empty() => (None, false),
            Some((node, Some(typed))) => match parse(&typed) {
                Ok(value) => (value, false),
                Err(help) => {
                    let found = if secret { kind(&typed).to_owned() } else { found(&node.value) };
                    self.mismatch(&path, node, &found, &expected.expectation(), &help);
                    (None, true)
                }
            },
        };
        Setting::new(self, key, expected, show, value, spoilt)
    }

    /// Expands the variable in a value.
    fn resolve(&self, path: &str, node: &Node) -> Option<NodeValue> {
        match &node.value {
            NodeValue::Text(text) => Some(NodeValue::Text(self.expand(path, node.at, text)?)),
            other => Some(other.clone()),
        }
    }

    /// Returns the comma-separated parts of a value, with `None` for a variable without a value.
    fn pieces(&self, path: &str, node: &Node) -> Vec<Option<NodeValue>> {
        match self.resolve(path, node) {
            Some(NodeValue::Text(text)) => {
                text.split(',').map(|part| Some(NodeValue::Text(part.trim().to_owned()))).collect()
            }
            other => vec![other],
        }
    }

    fn one<T>(
        &self,
        path: &str,
        kind: &str,
        node: &Node,
        piece: Option<NodeValue>,
        parse: impl Fn(&NodeValue) -> Result<T, String>,
    ) -> Option<T> {
        match parse(&piece?) {
            Ok(item) => Some(item),
            Err(help) => {
                self.mismatch(path, node, &found(&node.value), &format!("a list of {kind}"), &help);
                None
            }
        }
    }

    fn mismatch(&self, path: &str, node: &Node, found: &str, expected: &str, help: &str) {
        self.note(Problem::error(node.at, path, format!("found {found}, expected {expected}"), help));
    }
}

fn number<T: Display>(unit: &'static str, range: &RangeInclusive<T>, is_whole: bool) -> ValueKind {
    let (low, high) = (range.start().to_string(), range.end().to_string());
    ValueKind::Number { unit, low, high, is_whole }
}

/// Returns whether a text is a placeholder for a secret, as in examples. Words such as `EMPTY`, which are used for
/// servers without keys, are not placeholders.
pub(super) fn is_placeholder(text: &str) -> bool {
    const WORDS: [&str; 6] = ["apikey", "changeme", "fixme", "placeholder", "replaceme", "todo"];
    const ENDS: [&str; 4] = ["key", "password", "secret", "token"];
    let text = text.trim().to_lowercase().replace(['-', ' '], "_");
    let bare = text.trim_matches(|c| "<>{}[]".contains(c));
    let joined = bare.replace('_', "");
    let last = bare.rsplit('_').next().unwrap_or_default();
    let is_blank = |part: &str| {
        part.len() >= 3 && ['x', '.', '*', '…'].iter().any(|c| part.chars().all(|other| other == *c))
    };
    (text.len() > 2 && (text.starts_with('<') && text.ends_with('>') || text.starts_with("{{")))
        || WORDS.contains(&joined.as_str())
        || joined.starts_with("your") && ENDS.iter().any(|end| joined.ends_with(end))
        || bare.starts_with("your_")
        || bare.contains("_your_")
        || bare.ends_with("_here")
        || is_blank(last)
}

/// Describes a value for a message. For a variable, shows only the name.
fn found(value: &NodeValue) -> String {
    match value {
        NodeValue::Text(text) if text.starts_with('$') && !text.starts_with("$$") => {
            format!("something else in the variable {text}")
        }
        value => describe(value),
    }
}

fn text(value: &NodeValue) -> Result<Option<String>, String> {
    match value {
        NodeValue::Text(text) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        NodeValue::Bool(_) | NodeValue::Int(_) | NodeValue::Float(_) => Err("put it in quotes".to_owned()),
        _ => Err(String::new()),
    }
}

fn flag(value: &NodeValue) -> Result<Option<bool>, String> {
    let typed = match value {
        NodeValue::Bool(value) => return Ok(Some(*value)),
        NodeValue::Text(text) => text.to_lowercase(),
        _ => return Err(String::new()),
    };
    match typed.as_str() {
        "true" | "yes" | "on" | "1" => Ok(Some(true)),
        "false" | "no" | "off" | "0" => Ok(Some(false)),
        _ => Err(String::new()),
    }
}
