//! Sign-in through OpenID Connect providers: DeerFlow's `auth.oidc`.
//!
//! Each setting is enforced or prevents the start. pudu refuses addresses on other machines without TLS, clients
//! without any authentication, and answers that are not bound to their request.

use super::{declare::Setting, problem::Problem, reader::Section};
use indexmap::IndexMap;
use secrecy::SecretString;
use url::{Host, Url};

/// Maximum length of a provider's name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// Default scopes.
const SCOPES: [&str; 3] = ["openid", "email", "profile"];
const HTTPS: &str = "begin it with https://; plain http:// is only for this machine";

/// Sign-in through providers.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// Base URL of the pages to which browsers return, without a trailing slash; pudu's own if empty.
    pub frontend: String,
    /// The providers by their names, in the file's order.
    pub providers: IndexMap<String, OidcProvider>,
}

/// A provider.
#[derive(Clone, Debug)]
pub struct OidcProvider {
    /// Its displayed name.
    pub display_name: String,
    /// Its issuer, exactly as in its tokens.
    pub issuer: String,
    /// The id of pudu at the provider.
    pub client_id: String,
    /// Client authentication of pudu.
    pub client_auth: ClientAuth,
    /// The callback URL, if it is not derived from the request.
    pub redirect_uri: Option<Url>,
    /// Requested scopes.
    pub scopes: Vec<String>,
    /// Whether an account is created at a user's first sign-in.
    pub creates_users: bool,
    /// Whether an e-mail address is accepted only if the provider has verified it.
    pub requires_verified_email: bool,
    /// Whether only the client that requested a code can redeem it.
    pub has_pkce: bool,
    /// Whether a token is bound by a nonce to the login that requested it.
    pub has_nonce: bool,
    /// The allowed domains of e-mail addresses, in lower case; all if empty.
    pub email_domains: Vec<String>,
    /// The e-mail addresses of new administrators, in lower case.
    pub admin_emails: Vec<String>,
    /// Overrides of the endpoints that the provider publishes.
    pub endpoints: OidcEndpoints,
}

/// Client authentication at the token endpoint.
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// A secret in the request body.
    Post(SecretString),
    /// A secret in the `Authorization` header.
    Basic(SecretString),
    /// No secret, only PKCE.
    Public,
}

/// Endpoints of a provider.
#[derive(Clone, Debug, Default)]
pub struct OidcEndpoints {
    /// Authorization endpoint, to which browsers are sent.
    pub authorization: Option<Url>,
    /// Token endpoint, at which codes are redeemed.
    pub token: Option<Url>,
    /// Endpoint with claims about the user.
    pub userinfo: Option<Url>,
    /// URL of its signing keys.
    pub jwks: Option<Url>,
}

/// The methods of client authentication by their names.
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

/// Reads the section. Returns `None` if it is off.
pub(super) fn read(auth: &Section<'_>) -> Option<OidcConfig> {
    let section = auth.section("oidc").about("Sign-in through OpenID Connect providers.");
    settings! { section =>
        /// Enables the section.
        enabled = flag().or(false);
    }
    let section = section.needed(enabled);
    settings! { section =>
        /// Base URL of DeerFlow's frontend, if it is on another host than pudu's gateway.
        frontend as "frontend_base_url" = safe_url().eg("https://app.example.com").optional("none");
    }
    let frontend = frontend.map(|url| url.as_str().trim_end_matches('/').to_owned());
    let listed = section.section("providers").about("Providers.");
    let entries = listed.present().filter_map(|entry| {
        let provider = provider(&open(&listed, &entry.key), &entry.key)?;
        Some((entry.key.clone(), provider))
    });
    let providers: IndexMap<String, OidcProvider> = entries.collect();
    if enabled && listed.present().next().is_none() {
        section.refuse(
            "providers",
            "sign-in is impossible: there is no provider",
            "add one, with its issuer and client_id",
        );
    }
    enabled.then(|| OidcConfig { frontend: frontend.unwrap_or_default(), providers })
}

fn open<'r>(listed: &Section<'r>, name: &str) -> Section<'r> {
    listed.section_named(name, "company").about("Name of the provider in routes, cookies and accounts.")
}

fn provider(section: &Section<'_>, name: &str) -> Option<OidcProvider> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
        let help = format!("write up to {MAX_NAME_CHARS} letters, digits, _ and -");
        section.refuse_here(format!("\"{name}\" is not a valid provider name"), help);
    }
    settings! { section =>
        /// Name on buttons.
        display_name = text().eg("Company").or_described(name.to_owned(), "the provider's name");
        /// Issuer, exactly as in the provider's tokens.
        issuer = text().eg("https://login.example.com/realms/team")
            .required("write the provider's issuer: https://login.example.com/realms/team");
        /// Id of pudu at the provider.
        client_id = text().eg("pudu").required("write the client id from the provider");
        /// Secret of pudu at the provider.
        secret as "client_secret" = secret().eg("$OIDC_CLIENT_SECRET").optional("none");
        /// Client authentication at the token endpoint.
        method as "token_endpoint_auth_method" = choice(AUTH_METHODS).eg("client_secret_post").or_described(
            if secret.is_some() { AuthMethod::Post } else { AuthMethod::None },
            "client_secret_post; none without a client_secret",
        );
        /// Callback registered at the provider; if unset, derived from `gateway.public_url`, or else from the request.
        redirect_uri = safe_url().eg("https://pudu.example.com/api/v1/auth/callback/company").optional("none");
        /// Requested scopes; must include `openid`.
        scopes = names().or(SCOPES.map(str::to_owned).to_vec());
        /// Creates an account at a user's first sign-in.
        creates_users as "auto_create_users" = flag().or(true);
        /// Accepts an e-mail address only if the provider has verified it.
        requires_verified_email as "require_verified_email" = flag().or(true);
        /// Domains of e-mail addresses that may sign in.
        email_domains as "allowed_email_domains" = names().eg("[example.com]").or_described(Vec::new(), "all");
        /// Verified e-mail addresses whose new accounts are administrators.
        admin_emails = names().eg("[ada@example.com]").or_described(Vec::new(), "none");
        /// Binds a code to the login by PKCE.
        has_pkce as "pkce_enabled" = flag().or(true);
        /// Binds a token to the login by a nonce.
        has_nonce as "nonce_enabled" = flag().or(true);
        /// Override of the provider's discovery document.
        authorization as "authorization_endpoint" = safe_url()
            .eg("https://login.example.com/authorize").optional("none");
        /// Override of the provider's discovery document.
        token as "token_endpoint" = safe_url().eg("https://login.example.com/token").optional("none");
        /// Override of the provider's discovery document.
        userinfo as "userinfo_endpoint" = safe_url().eg("https://login.example.com/userinfo").optional("none");
        /// Override of the provider's discovery document.
        jwks as "jwks_uri" = safe_url().eg("https://login.example.com/keys").optional("none");
    }
    if section.is_needed() && !scopes.iter().any(|scope| scope == "openid") {
        section.refuse("scopes", "without `openid` the provider does not identify users", "add openid");
    }
    if section.is_needed() && !has_pkce && !has_nonce {
        let what = "without PKCE and a nonce, one user's response can sign in another user";
        section.refuse("nonce_enabled", what, "enable at least one of them");
    }
    let issuer = issuer.filter(|text| is_issuer(section, text));
    Some(OidcProvider {
        display_name,
        client_auth: client_auth(section, method, secret, has_pkce),
        redirect_uri,
        scopes,
        creates_users,
        requires_verified_email,
        has_pkce,
        has_nonce,
        email_domains: lower(&email_domains),
        admin_emails: lower(&admin_emails),
        endpoints: OidcEndpoints { authorization, token, userinfo, jwks },
        issuer: issuer?,
        client_id: client_id?,
    })
}

/// Checks the issuer, which must be identical to the one in tokens.
fn is_issuer(section: &Section<'_>, text: &str) -> bool {
    let plain = |url: Url| is_safe(&url) && url.query().is_none() && url.fragment().is_none();
    let fits = Url::parse(text).is_ok_and(plain);
    if !fits {
        section.refuse("issuer", format!("\"{text}\" is not an issuer"), HTTPS);
    }
    fits
}

fn client_auth(
    section: &Section<'_>,
    method: AuthMethod,
    secret: Option<SecretString>,
    has_pkce: bool,
) -> ClientAuth {
    match (method, secret) {
        (AuthMethod::Post, Some(secret)) => ClientAuth::Post(secret),
        (AuthMethod::Basic, Some(secret)) => ClientAuth::Basic(secret),
        (AuthMethod::Post | AuthMethod::Basic, None) => {
            if section.is_needed() {
                section.refuse(
                    "client_secret",
                    "this is missing or empty",
                    "set it, or set `token_endpoint_auth_method: none`",
                );
            }
            ClientAuth::Public
        }
        (AuthMethod::None, _) => {
            if section.is_needed() && !has_pkce {
                let what = "a client without a secret needs PKCE";
                section.refuse("pkce_enabled", what, "write true, or set client_secret");
            }
            ClientAuth::Public
        }
    }
}

fn lower(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.trim_start_matches('@').to_lowercase()).collect()
}

impl<'r> Section<'r> {
    /// Reads a URL to which secrets are sent.
    fn safe_url<'s>(&'s self, key: &'s str) -> Setting<'s, 'r, Url> {
        let url = self.url(key);
        if self.is_needed() && url.value.as_ref().is_some_and(|url| !is_safe(url)) {
            let what = "this is sent without TLS, or contains a user name";
            self.note(Problem::error(None, &format!("{}.{key}", self.path), what, HTTPS));
        }
        url
    }
}

/// Returns whether data sent to a URL is protected in transit: it uses TLS or stays on this machine.
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
