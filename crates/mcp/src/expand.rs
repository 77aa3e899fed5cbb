//! Expands `$NAME` in a configuration: a value that begins with a dollar sign is replaced with that variable's value.
//! An unset variable becomes the empty string, as in DeerFlow.

use pudu_net::scrub;
use std::collections::{BTreeSet, HashMap};

/// Replaces variables and collects the values that must stay hidden.
pub(crate) struct Expand<'a> {
    pub(crate) vars: &'a HashMap<String, String>,
    /// Secret values.
    pub(crate) secrets: Vec<String>,
    /// All values of environment variables and headers, secret or not.
    pub(crate) given: Vec<String>,
    /// Variables that were used but not set.
    pub(crate) missing: BTreeSet<String>,
}

impl<'a> Expand<'a> {
    pub(crate) fn new(vars: &'a HashMap<String, String>) -> Self {
        Self { vars, secrets: Vec::new(), given: Vec::new(), missing: BTreeSet::new() }
    }

    /// Returns a variable, if it is set.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// Expands a value that may be a variable.
    pub(crate) fn value(&mut self, text: &str) -> String {
        let Some(name) = text.strip_prefix('$') else {
            self.note("", text);
            return text.to_owned();
        };
        let Some(value) = self.vars.get(name) else {
            self.missing.insert(name.to_owned());
            return String::new();
        };
        let value = value.clone();
        self.note(name, &value);
        value
    }

    /// Expands the value of an environment variable or a header.
    pub(crate) fn named(&mut self, name: &str, text: &str) -> String {
        let value = self.value(text);
        self.note(name, &value);
        self.given.push(value.clone());
        // A server may repeat the credentials without their scheme, such as `Bearer`.
        self.given.extend(value.split_once(' ').map(|(_, rest)| rest.to_owned()));
        value
    }

    fn note(&mut self, name: &str, value: &str) {
        if scrub::is_secret(name, value) {
            self.secrets.push(value.to_owned());
        }
    }
}
