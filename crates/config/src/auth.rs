//! Sign-in: the allowed origins and proxies, and the secrets of sessions and tokens.
//!
//! The variables are DeerFlow's. `AUTH_JWT_SECRET` signs sessions; `DEER_FLOW_INTERNAL_AUTH_TOKEN` lets a program of
//! the installation act for a user; `DEER_FLOW_AUTH_DISABLED` switches sign-in off, except in production.
//! `GATEWAY_ENABLE_DOCS` switches off the pages that document the API.
//!
//! Sign-in through providers is in `oidc.rs`.

use super::{
    Start,
    oidc::{self, OidcConfig},
    problem::Problem,
    raw::NodeValue,
    reader::Section,
};
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use std::net::IpAddr;
use url::{Origin, Url};

/// Minimum length of a secret, in bytes. Shorter ones can be guessed.
const MIN_SECRET_BYTES: usize = 16;

/// Settings of sign-in that need a restart.
#[derive(Clone, Debug, Default)]
pub struct AuthConfig {
    /// Origins of other pages that may use the API, in the form that browsers send.
    pub cors_origins: Vec<String>,
    /// Proxies that are trusted to report the client's address.
    pub trusted_proxies: Vec<IpNet>,
    /// The key that signs sessions; if `None`, it is in the home folder.
    pub jwt_secret: Option<SecretString>,
    /// The token that lets a program of the installation act for a user; if `None`, no program can.
    pub internal_token: Option<SecretString>,
    /// Whether sign-in is disabled. Every caller is then the operator: the local user, as an administrator.
    pub disabled: bool,
    /// Whether sessions may outlive the browser session over plain HTTP.
    pub insecure_persistence: bool,
    /// Sign-in through providers; `None` if it is disabled.
    pub oidc: Option<OidcConfig>,
    /// The URL at which browsers reach pudu, if known.
    pub public_url: Option<Url>,
    /// Whether the API's documentation is hidden.
    pub hides_docs: bool,
}

pub(super) fn read(top: &Section<'_>, start: &Start, public_url: Option<Url>) -> AuthConfig {
    let gateway = top.section("gateway");
    let auth = top
        .section("auth")
        .about("Sign-in with e-mail and password, or by providers; `pudu user add` creates an account.");
    settings! { gateway =>
        /// Origins of other pages that may use the API with a session; `GATEWAY_CORS_ORIGINS` overrides it.
        listed as "cors_origins" = list("origins", |value| match value {
            NodeValue::Text(text) => origin(text),
            _ => Err(ORIGIN.to_owned()),
        }).or_described(Vec::new(), "none");
    }
    settings! { auth =>
        /// Addresses or networks of proxies that name the client in X-Real-IP or X-Forwarded-For; `AUTH_TRUSTED_PROXIES`
        /// overrides it.
        proxies as "trusted_proxies" = list("addresses or networks", |value| match value {
            NodeValue::Text(text) => network(text),
            _ => Err(NETWORK.to_owned()),
        }).or_described(Vec::new(), "none");
    }
    let origins = from_env(top, start, "GATEWAY_CORS_ORIGINS", listed, origin);
    let disabled = is_on(start, "DEER_FLOW_AUTH_DISABLED");
    if disabled && is_production(start) {
        let what = "it is ignored in production, where users sign in";
        top.note(Problem::warning(None, "DEER_FLOW_AUTH_DISABLED", what, "unset the variable"));
    }
    if disabled && !is_production(start) && gateway.entry("token").is_some() {
        let what =
            "it makes every caller an administrator, but gateway.token admits only callers with the token";
        top.note(Problem::error(None, "DEER_FLOW_AUTH_DISABLED", what, "remove one of the two"));
    }
    if origins.iter().any(|origin| origin == ANY) {
        let what = "`*` is ignored, because every website could act as a signed-in user";
        gateway.warn("cors_origins", what, "name each origin: https://app.example.com");
    }
    AuthConfig {
        cors_origins: origins.into_iter().filter(|origin| origin != ANY).collect(),
        trusted_proxies: from_env(top, start, "AUTH_TRUSTED_PROXIES", proxies, network),
        jwt_secret: secret(top, start, "AUTH_JWT_SECRET"),
        internal_token: secret(top, start, "DEER_FLOW_INTERNAL_AUTH_TOKEN"),
        disabled: disabled && !is_production(start),
        insecure_persistence: is_on(start, "DEER_FLOW_AUTH_ALLOW_INSECURE_PERSISTENT_COOKIE"),
        oidc: oidc::read(&auth),
        public_url,
        hides_docs: is_refused(start, "GATEWAY_ENABLE_DOCS"),
    }
}

/// Reads whether visitors may create an account. DeerFlow's default is yes; pudu's is no.
pub(super) fn registration(top: &Section<'_>) -> bool {
    let section = top.section("auth").section("local").about("Accounts with a password.");
    settings! { section =>
        /// Permits visitors to create an account.
        allow_registration = flag().or(false);
    }
    allow_registration
}

const ANY: &str = "*";
const ORIGIN: &str =
    "write an origin as browsers do: https://app.example.com, with the port if it is not the default";
const NETWORK: &str = "write an address or a network: 10.0.0.7 or 10.0.0.0/8";

fn origin(text: &str) -> Result<String, String> {
    if text.trim() == ANY {
        return Ok(ANY.to_owned());
    }
    let url = Url::parse(text.trim()).map_err(|_| ORIGIN.to_owned())?;
    let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let nameless = url.username().is_empty() && url.password().is_none();
    match url.origin() {
        found @ Origin::Tuple(..) if plain && nameless && matches!(url.scheme(), "http" | "https") => {
            Ok(found.ascii_serialization())
        }
        _ => Err(ORIGIN.to_owned()),
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let alone = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(alone).ok_or_else(|| NETWORK.to_owned())
}

/// Returns the comma-separated list in a variable if it is set, otherwise the list of the file.
fn from_env<T>(
    top: &Section<'_>,
    start: &Start,
    name: &str,
    listed: Vec<T>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let Some((name, text)) = start.env.first(&[name]) else { return listed };
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match parse(part) {
            Ok(one) => all.push(one),
            Err(help) => top.note(Problem::error(None, name, format!("invalid entry \"{part}\""), help)),
        }
    }
    all
}

fn secret(top: &Section<'_>, start: &Start, name: &str) -> Option<SecretString> {
    let (name, text) = start.env.first(&[name])?;
    let secret = SecretString::from(text.trim());
    if secret.expose_secret().len() < MIN_SECRET_BYTES {
        let what = format!("it is shorter than {MIN_SECRET_BYTES} characters and can be guessed");
        top.note(Problem::error(None, name, what, "generate 32 random bytes: openssl rand -hex 32"));
    }
    top.know_secret([&secret]);
    Some(secret)
}

fn is_on(start: &Start, name: &str) -> bool {
    let on = |text: &str| matches!(text.trim().to_lowercase().as_str(), "1" | "true" | "yes" | "on");
    start.env.get(name).is_some_and(on)
}

/// Returns whether a variable is set to anything that does not mean yes.
fn is_refused(start: &Start, name: &str) -> bool {
    start.env.get(name).is_some() && !is_on(start, name)
}

fn is_production(start: &Start) -> bool {
    let production = |text: &str| matches!(text.trim().to_lowercase().as_str(), "prod" | "production");
    ["DEER_FLOW_ENV", "ENVIRONMENT"].iter().any(|name| start.env.get(name).is_some_and(production))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_browsers_send() {
        for (text, expected) in [
            ("https://App.example.com", Some("https://app.example.com")),
            ("http://localhost:3000/", Some("http://localhost:3000")),
            ("https://app.example.com:443", Some("https://app.example.com")),
            ("https://app.example.com/path", None),
            ("https://ann@app.example.com", None),
            ("file:///etc", None),
            ("app.example.com", None),
            ("null", None),
        ] {
            assert_eq!(origin(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_network_is_an_address_or_more() {
        for (text, expected) in [
            ("10.0.0.7", Some("10.0.0.7/32")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("::1", Some("::1/128")),
            ("proxy", None),
        ] {
            assert_eq!(network(text).ok().map(|net| net.to_string()).as_deref(), expected, "{text}");
        }
    }
}
