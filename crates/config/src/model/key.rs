//! Keys of models' APIs.

use super::super::{env::Env, reader::Section, setting::is_placeholder};
use secrecy::{ExposeSecret, SecretString};

/// Reads the key. If none is configured, reads the variable that the provider's own clients use. `is_providers` means
/// that the address is the provider's own, which always requires a key.
pub(super) fn api_key(
    section: &Section<'_>,
    variables: &[&'static str],
    is_providers: bool,
    env: &Env,
) -> Option<SecretString> {
    let about = "API key; without it pudu reads the provider's own variable, such as OPENAI_API_KEY.";
    let setting = section.secret_or_placeholder("api_key").about(about).eg("$OPENAI_API_KEY");
    let spoilt = setting.spoilt;
    let written = setting.optional("the provider's environment variable");
    if let (None, false, Some(name)) = (&written, spoilt, section.variable("api_key")) {
        let help = format!("set {name}, or remove `api_key` if the server needs no key");
        section.refuse("api_key", format!("the environment variable {name} is empty"), help);
        return None;
    }
    let unfit = |key: &str| key.trim().is_empty() || key.chars().any(char::is_control);
    if written.as_ref().is_some_and(|key| unfit(key.expose_secret())) {
        section.refuse("api_key", "it is blank or has a line break", "write only the key");
    }
    let found = env.first(variables);
    let holder = match (&written, found) {
        (Some(_), _) => section.variable("api_key"),
        (None, found) => found.map(|(name, _)| name),
    };
    let key = written.or_else(|| found.map(|(_, key)| SecretString::from(key)));
    if key.as_ref().is_some_and(|key| is_placeholder(key.expose_secret())) {
        let what = match holder {
            Some(name) => format!("the environment variable {name} is a placeholder, not a key"),
            None => "this is a placeholder, not a key".to_owned(),
        };
        let help = match holder {
            Some(name) => format!("set {name} to the provider's key"),
            None => {
                let name = variables.first().copied().unwrap_or("API_KEY");
                format!("write `api_key: ${name}` and set the variable, or remove the line")
            }
        };
        match is_providers && section.is_needed() {
            true => section.refuse("api_key", what, help),
            false => section.warn("api_key", what, "write the server's key, or remove this if it needs none"),
        }
    }
    if let (None, [name, ..], true) = (&key, variables, is_providers && !spoilt && section.is_needed()) {
        let help = format!("set {name}, or write `api_key: $NAME` with another variable");
        section.refuse("api_key", format!("there is no `api_key`, and {name} is not set"), help);
    }
    key
}
