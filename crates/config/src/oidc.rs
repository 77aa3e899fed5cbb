//! Sign-in by providers that speak OpenID Connect: DeerFlow's `auth.oidc`.
//!
//! Each setting is obeyed or stops the start: an address that leaves this machine without TLS, a client without any
//! authentication, or an answer that is not bound to its request is refused.

use super::{problem::Problem, reader::Section};
use indexmap::IndexMap;
use secrecy::SecretString;
use url::{Host, Url};

/// Maximum length of a provider's name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Default scopes.
const SCOPES: [&str; 3] = ["openid", "email", "profile"];
const HTTPS: &str = "begin it with https://; plain http:// is for this machine alone";

/// Sign-in by providers.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// The address of the pages to which people come back, without a slash at the end; pudu's own if it is empty.
    pub frontend: String,
    /// The providers by their names, in the file's order.
    pub providers: IndexMap<String, OidcProvider>,
}

/// A provider.
#[derive(Clone, Debug)]
pub struct OidcProvider {
    /// Its name on buttons.
    pub display_name: String,
    /// Its issuer, as its tokens name it.
    pub issuer: String,
    /// The name by which it knows pudu.
    pub client_id: String,
    /// How pudu proves to be that client.
    pub client_auth: ClientAuth,
    /// The address to which it sends browsers back, where that is not derived from the request.
    pub redirect_uri: Option<Url>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Whether people who come for the first time get an account.
    pub creates_users: bool,
    /// Whether an e-mail address counts only if the provider has verified it.
    pub requires_verified_email: bool,
    /// Whether only the client that requested a code can redeem it.
    pub has_pkce: bool,
    /// Whether a token is bound to the login that asked for it.
    pub has_nonce: bool,
    /// The domains of e-mail addresses that are let in, in lower case; all if it is empty.
    pub email_domains: Vec<String>,
    /// The addresses that become administrators, in lower case.
    pub admin_emails: Vec<String>,
    /// Addresses that count in place of those that the provider publishes.
    pub endpoints: OidcEndpoints,
}

/// Proof of a client at the token endpoint.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// A secret in the form.
    Post(SecretString),
    /// A secret in the header.
    Basic(SecretString),
    /// None: PKCE is all.
    Public,
}

/// Addresses of a provider.
#[derive(Clone, Debug, Default)]
pub struct OidcEndpoints {
    /// Where browsers are sent.
    pub authorization: Option<Url>,
    /// Where codes are redeemed.
    pub token: Option<Url>,
    /// Where facts about people are.
    pub userinfo: Option<Url>,
    /// Where its keys are.
    pub jwks: Option<Url>,
}

/// The ways in which a client proves itself, by their names.
const AUTH_METHODS: &[(&str, AuthMethod)] = &[
    ("client_secret_post", AuthMethod::Post),
    ("client_secret_basic", AuthMethod::Basic),
    ("none", AuthMethod::None),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AuthMethod {
    Post,
    Basic,
    None,
}

/// Reads them; `None` if they are off.
pub(super) fn read(auth: &Section<'_>) -> Option<OidcConfig> {
    let section = auth.section("oidc");
    let enabled = section.flag("enabled").or(false);
    let section = section.needed(enabled);
    let frontend =
        safe_url(&section, "frontend_base_url").map(|url| url.as_str().trim_end_matches('/').to_owned());
    let listed = section.section("providers");
    let named = listed.present().filter_map(|entry| {
        let provider = provider(&listed.section_like(&entry.key, "company"), &entry.key)?;
        Some((entry.key.clone(), provider))
    });
    let providers: IndexMap<String, OidcProvider> = named.collect();
    if enabled && listed.present().next().is_none() {
        section.refuse(
            "providers",
            "nobody can sign in: there is no provider",
            "name one, with its issuer and client_id",
        );
    }
    enabled.then(|| OidcConfig { frontend: frontend.unwrap_or_default(), providers })
}

fn provider(section: &Section<'_>, name: &str) -> Option<OidcProvider> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
        let help = format!("write up to {MAX_NAME_CHARS} letters, digits, _ and -");
        section.refuse_here(format!("no provider can be called \"{name}\""), help);
    }
    let display_name = section.text("display_name").or_told(name.to_owned(), "the provider's name");
    let issuer = issuer(section);
    let client_id = section.text("client_id").required("write the id that the provider gave this client");
    let scopes = section.names("scopes");
    let scopes = scopes.or_told(SCOPES.map(str::to_owned).to_vec(), &SCOPES.join(", "));
    if section.is_needed() && !scopes.iter().any(|scope| scope == "openid") {
        section.refuse("scopes", "without `openid` the provider tells nobody who somebody is", "add openid");
    }
    let has_pkce = section.flag("pkce_enabled").or(true);
    let has_nonce = section.flag("nonce_enabled").or(true);
    if section.is_needed() && !has_pkce && !has_nonce {
        let what = "without PKCE and without a nonce somebody's answer signs another one in";
        section.refuse("nonce_enabled", what, "leave at least one of them on");
    }
    Some(OidcProvider {
        display_name,
        client_auth: client_auth(section, has_pkce),
        redirect_uri: safe_url(section, "redirect_uri"),
        scopes,
        creates_users: section.flag("auto_create_users").or(true),
        requires_verified_email: section.flag("require_verified_email").or(true),
        has_pkce,
        has_nonce,
        email_domains: lower(section, "allowed_email_domains", "all"),
        admin_emails: lower(section, "admin_emails", "none"),
        endpoints: OidcEndpoints {
            authorization: safe_url(section, "authorization_endpoint"),
            token: safe_url(section, "token_endpoint"),
            userinfo: safe_url(section, "userinfo_endpoint"),
            jwks: safe_url(section, "jwks_uri"),
        },
        // Last, so that every key has been read before one that is missing ends this.
        issuer: issuer?,
        client_id: client_id?,
    })
}

/// Reads the issuer as it is written: tokens repeat it letter by letter.
fn issuer(section: &Section<'_>) -> Option<String> {
    let text = section
        .text("issuer")
        .required("write the provider's issuer: https://login.example.com/realms/team")?;
    let plain = |url: &Url| is_safe(url) && url.query().is_none() && url.fragment().is_none();
    match Url::parse(&text).ok().filter(plain) {
        Some(_) => Some(text),
        None => {
            section.refuse("issuer", format!("\"{text}\" is no issuer"), HTTPS);
            None
        }
    }
}

fn client_auth(section: &Section<'_>, has_pkce: bool) -> ClientAuth {
    let secret = section.secret("client_secret").optional("none");
    let method = section.choice("token_endpoint_auth_method", AUTH_METHODS);
    let usual = if secret.is_some() { AuthMethod::Post } else { AuthMethod::None };
    let method = method.or_told(usual, "client_secret_post; none without a client_secret");
    match (method, secret) {
        (AuthMethod::Post, Some(secret)) => ClientAuth::Post(secret),
        (AuthMethod::Basic, Some(secret)) => ClientAuth::Basic(secret),
        (AuthMethod::Post | AuthMethod::Basic, None) => {
            if section.is_needed() {
                section.refuse(
                    "client_secret",
                    "this is missing or empty",
                    "write it, or token_endpoint_auth_method: none",
                );
            }
            ClientAuth::Public
        }
        (AuthMethod::None, _) => {
            if section.is_needed() && !has_pkce {
                let what = "a client without a secret proves itself by PKCE alone";
                section.refuse("pkce_enabled", what, "write true, or a client_secret");
            }
            ClientAuth::Public
        }
    }
}

fn lower(section: &Section<'_>, key: &str, told: &str) -> Vec<String> {
    let names = section.names(key).or_told(Vec::new(), told);
    names.iter().map(|name| name.trim_start_matches('@').to_lowercase()).collect()
}

fn safe_url(section: &Section<'_>, key: &str) -> Option<Url> {
    let url = section.url(key).optional("none")?;
    if section.is_needed() && !is_safe(&url) {
        section.note(Problem::error(
            None,
            &format!("{}.{key}", section.path),
            "this leaves the machine without TLS, or names somebody",
            HTTPS,
        ));
    }
    Some(url)
}

/// Returns whether data sent to an address cannot be read on the way.
pub fn is_safe(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    let is_nameless = url.username().is_empty() && url.password().is_none();
    is_nameless && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
}
