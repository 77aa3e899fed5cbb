//! Secrets that people type. They are removed from an event before it is stored or shown, and kept in memory until the
//! command with the secret is answered. If the process restarts before that, the person has to type the secret again.

use indexmap::IndexMap;
use pudu_base::is_secret_name;
use pudu_channels::{EventKey, Inbound, InboundKind};
use secrecy::SecretString;
use std::sync::{Mutex, PoisonError};

/// The command that people use to provide secrets.
const COMMAND: &str = "/secret";
/// The same command with its usual misspelling.
const COMMANDS: [&str; 2] = [COMMAND, "/secrets"];
/// Argument that sets a secret.
const SET: &str = "set";
/// Arguments that take a name and no value.
const DELETE: [&str; 2] = ["delete", "remove"];
/// Maximum number of values that wait for their commands; the oldest are dropped first.
const MAX_WAITING: usize = 128;

/// A message without its secret.
#[derive(Debug)]
pub struct ConcealedText {
    /// The text that may be stored and shown.
    pub shown: String,
    /// The secret.
    pub value: SecretString,
}

/// Removes the secret from a command that sets one; `None` for other texts. All text after the name counts as the
/// secret, even if the verb is missing or unknown.
pub fn conceal(text: &str) -> Option<ConcealedText> {
    let (command, rest) = word(text.trim_start());
    let command = command.to_lowercase();
    if !COMMANDS.contains(&command.split_once('@').map_or(command.as_str(), |(command, _)| command)) {
        return None;
    }
    let (first, behind) = word(rest);
    let verb = first.to_lowercase();
    let (shown, value) = match verb.as_str() {
        "" => return None,
        SET => named(behind),
        verb if DELETE.contains(&verb) => {
            let (name, value) = word(behind);
            (format!("{COMMAND} delete {}", shown_name(name)), value)
        }
        // The verb is missing or unknown.
        _ => named(rest),
    };
    let value = value.trim();
    (!value.is_empty()).then(|| ConcealedText { shown, value: value.into() })
}

/// Splits `NAME VALUE` or `NAME=VALUE`.
fn named(rest: &str) -> (String, &str) {
    let (name, value) = word(rest);
    let (name, value) = match name.split_once('=') {
        Some((name, _)) => (name, rest.split_once('=').map_or("", |(_, value)| value)),
        None => (name, value),
    };
    match is_secret_name(name) {
        true if value.is_empty() => (format!("{COMMAND} {SET} {name}"), ""),
        true => (format!("{COMMAND} {SET} {name}"), value),
        // Text that is not a valid name may be the secret itself.
        false => (format!("{COMMAND} {SET}"), rest),
    }
}

fn shown_name(name: &str) -> &str {
    if is_secret_name(name) { name } else { "" }
}

/// Splits the first word off.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// Identity of an event: its account and its key there.
pub(super) type EventIdentity = (String, EventKey);

/// Secret values, kept until their commands take them.
#[derive(Default)]
pub(super) struct ConcealedValues(Mutex<IndexMap<EventIdentity, SecretString>>);

impl ConcealedValues {
    /// Removes the secret from an event and keeps it.
    pub(super) fn conceal(&self, inbound: &mut Inbound) {
        let (InboundKind::Message { text, .. } | InboundKind::Edit { text }) = &mut inbound.kind else {
            return;
        };
        let Some(ConcealedText { shown, value }) = conceal(text) else { return };
        *text = shown;
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_WAITING {
            waiting.shift_remove_index(0);
        }
        waiting.insert((inbound.address.account.clone(), inbound.key.clone()), value);
    }

    /// Takes the secret of an event.
    pub(super) fn take(&self, inbound: &Inbound) -> Option<SecretString> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.shift_remove(&(inbound.address.account.clone(), inbound.key.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn anything_that_may_be_a_secret_is_removed_from_the_shown_text() {
        let check = |text: &str, shown: &str, value: &str| {
            let concealed = conceal(text).unwrap_or_else(|| panic!("{text:?} is shown"));
            assert_eq!(
                (concealed.shown.as_str(), concealed.value.expose_secret()),
                (shown, value),
                "{text:?}"
            );
        };
        check("/secret set KEY hush", "/secret set KEY", "hush");
        check("  /Secret@pudu_bot SET KEY\n a b \nc ", "/secret set KEY", "a b \nc");
        check("/secret set KEY=hush=hush", "/secret set KEY", "hush=hush");
        check("/secrets set KEY hush", "/secret set KEY", "hush");
        check("/SECRETS@pudu_bot set KEY hush", "/secret set KEY", "hush");
        check("/secret KEY hush", "/secret set KEY", "hush");
        check("/secret KEY=hush", "/secret set KEY", "hush");
        check("/secret sett KEY hush", "/secret set sett", "KEY hush");
        check("/secret set hush-hush", "/secret set", "hush-hush");
        check("/secret hush-hush", "/secret set", "hush-hush");
        check("/secret delete KEY hush", "/secret delete KEY", "hush");
        check("/secret set PATH /evil", "/secret set", "PATH /evil");
        for text in [
            "",
            "/secret",
            "/secret set KEY",
            "/secret delete KEY",
            "/secret KEY",
            "what is /secret set K v?",
            "/secretary set up a call with Bob",
            "/secret-santa draws names",
            "/secretly@pudu_bot tell Bob",
            "/secret/set K v",
            "/skills",
        ] {
            assert!(conceal(text).is_none(), "{text}");
        }
    }
}
