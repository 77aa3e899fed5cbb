//! A simulated OpenID Connect provider with one client: discovery, authorization with PKCE, tokens, keys, user info.
//! Its user signs in without interaction. Written from OpenID Connect Core 1.0 and Discovery 1.0, RFC 6749, 7636 and
//! 9207.
//!
//! A test sets the user, the claims and the signature of tokens, and failures of endpoints.

mod keys;

use crate::http::{Server, cut};
use axum::{
    Form, Json, Router,
    body::{Body, Bytes},
    extract::{Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures_util::stream;
use keys::SigningKey;
pub use keys::TokenSigning;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use url::{Url, form_urlencoded};

/// ID of its client.
pub const CLIENT_ID: &str = "pudu-simulated";
/// The client's secret, with characters that forms encode.
pub const CLIENT_SECRET: &str = "oidc/simulated+secret 0123456789";

/// A user who signs in.
#[derive(Clone, Debug)]
pub struct Person {
    /// Their subject.
    pub subject: String,
    /// Their e-mail address.
    pub email: String,
    /// Whether it is verified.
    pub is_verified: bool,
}

/// Failure of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OidcFault {
    /// It never responds.
    Hang,
    /// Its response is endless.
    Giant,
    /// Its response is not JSON.
    Garbage,
    /// It closes the connection.
    Cut,
    /// It responds with this status.
    Status(u16),
}

type Twist = Box<dyn Fn(&mut Value) + Send + Sync>;
type Pairs = BTreeMap<String, String>;

struct Grant {
    person: Person,
    asked: Pairs,
    is_used: bool,
}

#[derive(Default)]
struct Book {
    person: Option<Person>,
    denies: bool,
    next: u64,
    codes: HashMap<String, Grant>,
    access: HashMap<String, Person>,
    keys: Vec<SigningKey>,
    signing: TokenSigning,
    twist: Option<Twist>,
    faults: HashMap<String, OidcFault>,
    calls: Vec<String>,
}

struct World {
    issuer: Mutex<String>,
    book: Mutex<Book>,
}

/// A simulated provider. It stops with its last handle.
#[derive(Clone)]
pub struct Oidc {
    world: Arc<World>,
    server: Arc<Server>,
}

impl Oidc {
    /// Starts one on a free port; its user is Ada.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start() -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts one on a port.
    ///
    /// # Errors
    /// When the port is not available.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let book = Book { keys: vec![SigningKey::rsa("key-1")?], ..Book::default() };
        let world = Arc::new(World { issuer: Mutex::default(), book: Mutex::new(book) });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/jwks", get(jwks))
            .route("/userinfo", get(userinfo))
            .layer(middleware::from_fn_with_state(world.clone(), spoil))
            .with_state(world.clone());
        let server = Server::start(address, router).await?;
        *locked(&world.issuer) = format!("http://{}", server.address());
        let provider = Self { world, server: Arc::new(server) };
        provider.person("ada-1", "ada@example.org", true);
        Ok(provider)
    }

    /// Returns its issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Sets the user who signs in from now on.
    pub fn person(&self, subject: &str, email: &str, is_verified: bool) {
        let (subject, email) = (subject.to_owned(), email.to_owned());
        locked(&self.world.book).person = Some(Person { subject, email, is_verified });
    }

    /// Sets whether the user denies the sign-in.
    pub fn denies(&self, denies: bool) {
        locked(&self.world.book).denies = denies;
    }

    /// Modifies the claims of tokens from now on.
    pub fn twist(&self, twist: impl Fn(&mut Value) + Send + Sync + 'static) {
        locked(&self.world.book).twist = Some(Box::new(twist));
    }

    /// Stops modifying claims.
    pub fn untwist(&self) {
        locked(&self.world.book).twist = None;
    }

    /// Sets how tokens are signed from now on.
    pub fn sign(&self, signing: TokenSigning) {
        locked(&self.world.book).signing = signing;
    }

    /// Signs with a new P-256 key from now on; the old ones are no longer published.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn rotate(&self) -> io::Result<()> {
        let mut book = locked(&self.world.book);
        book.next += 1;
        let id = format!("key-of-{}", book.next);
        book.keys = vec![SigningKey::fresh(&id)?];
        Ok(())
    }

    /// Makes an endpoint fail from now on; `None` repairs it.
    pub fn spoil(&self, endpoint: &str, fault: Option<OidcFault>) {
        let mut book = locked(&self.world.book);
        match fault {
            Some(fault) => drop(book.faults.insert(endpoint.to_owned(), fault)),
            None => drop(book.faults.remove(endpoint)),
        }
    }

    /// Returns the number of requests to an endpoint.
    #[must_use]
    pub fn calls(&self, endpoint: &str) -> usize {
        locked(&self.world.book).calls.iter().filter(|call| *call == endpoint).count()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn spoil(State(world): State<Arc<World>>, request: Request, next: Next) -> Response {
    let endpoint = request.uri().path().to_owned();
    let fault = {
        let mut book = locked(&world.book);
        book.calls.push(endpoint.clone());
        book.faults.get(&endpoint).copied()
    };
    match fault {
        None => next.run(request).await,
        Some(OidcFault::Hang) => std::future::pending().await,
        Some(OidcFault::Cut) => cut(),
        Some(OidcFault::Garbage) => "<html>not what was asked for</html>".into_response(),
        Some(OidcFault::Status(code)) => {
            StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
        }
        Some(OidcFault::Giant) => {
            let spaces = Bytes::from(vec![b' '; 64 * 1024]);
            let endless = stream::repeat_with(move || Ok::<_, io::Error>(spaces.clone()));
            Body::from_stream(endless).into_response()
        }
    }
}

async fn discovery(State(world): State<Arc<World>>) -> Json<Value> {
    let issuer = locked(&world.issuer).clone();
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": ["openid", "email", "profile"],
    }))
}

fn no(status: StatusCode, error: &str, why: &str) -> Response {
    (status, Json(json!({ "error": error, "error_description": why }))).into_response()
}

async fn authorize(State(world): State<Arc<World>>, Query(asked): Query<Pairs>) -> Response {
    let wrong = |why: &str| no(StatusCode::BAD_REQUEST, "invalid_request", why);
    let is = |key: &str, value: &str| asked.get(key).is_some_and(|told| told == value);
    if !is("client_id", CLIENT_ID) {
        return wrong("there is no such client");
    }
    let Some(Ok(mut back)) = asked.get("redirect_uri").map(|uri| Url::parse(uri)) else {
        return wrong("redirect_uri is missing");
    };
    if !is("response_type", "code")
        || !asked.get("scope").is_some_and(|scope| scope.split(' ').any(|one| one == "openid"))
    {
        return wrong("this is no login by OpenID Connect");
    }
    if asked.contains_key("code_challenge") && !is("code_challenge_method", "S256") {
        return wrong("the challenge has to be of S256");
    }
    let issuer = locked(&world.issuer).clone();
    let mut book = locked(&world.book);
    let mut pairs = back.query_pairs_mut();
    match (book.person.clone(), book.denies) {
        (Some(person), false) => {
            book.next += 1;
            let code = format!("code/{}+{}", book.next, "x".repeat(20));
            pairs.append_pair("code", &code);
            book.codes.insert(code, Grant { person, asked: asked.clone(), is_used: false });
        }
        _ => drop(pairs.append_pair("error", "access_denied")),
    }
    if let Some(state) = asked.get("state") {
        pairs.append_pair("state", state);
    }
    pairs.append_pair("iss", &issuer);
    drop(pairs);
    (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
}

/// Returns the client ID and the secret in a request.
fn shown(headers: &HeaderMap, form: &Pairs) -> (String, String) {
    let decode = |text: &str| {
        let text = format!("x={text}");
        form_urlencoded::parse(text.as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    let basic =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let basic = basic.and_then(|text| String::from_utf8(STANDARD.decode(text).ok()?).ok());
    match basic.as_deref().and_then(|pair| pair.split_once(':')) {
        Some((id, secret)) => (decode(id), decode(secret)),
        None => {
            let of = |key: &str| form.get(key).cloned().unwrap_or_default();
            (of("client_id"), of("client_secret"))
        }
    }
}

async fn token(State(world): State<Arc<World>>, headers: HeaderMap, Form(form): Form<Pairs>) -> Response {
    if shown(&headers, &form) != (CLIENT_ID.to_owned(), CLIENT_SECRET.to_owned()) {
        return no(StatusCode::UNAUTHORIZED, "invalid_client", "the secret is wrong");
    }
    if form.get("grant_type").is_none_or(|kind| kind != "authorization_code") {
        return no(StatusCode::BAD_REQUEST, "unsupported_grant_type", "only codes are redeemed");
    }
    let issuer = locked(&world.issuer).clone();
    let mut book = locked(&world.book);
    let bad = |why: &str| no(StatusCode::BAD_REQUEST, "invalid_grant", why);
    let Some(grant) = form.get("code").and_then(|code| book.codes.get_mut(code)) else {
        return bad("there is no such code");
    };
    if std::mem::replace(&mut grant.is_used, true) {
        return bad("the code was used before");
    }
    if form.get("redirect_uri") != grant.asked.get("redirect_uri") {
        return bad("the code was for another redirect_uri");
    }
    let challenge =
        form.get("code_verifier").map(|verifier| URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)));
    if challenge.as_ref() != grant.asked.get("code_challenge") {
        return bad("the verifier does not fit the challenge");
    }
    let (person, nonce) = (grant.person.clone(), grant.asked.get("nonce").cloned());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut claims = json!({
        "iss": issuer, "sub": person.subject, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "email": person.email,
        "email_verified": person.is_verified,
    });
    if let Some(nonce) = nonce {
        claims["nonce"] = nonce.into();
    }
    if let Some(twist) = &book.twist {
        twist(&mut claims);
    }
    let signed = book.keys.last().map(|key| key.token(&claims, book.signing));
    let Some(Ok(signed)) = signed else {
        return no(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "there is no key");
    };
    book.next += 1;
    let access = format!("access-{}", book.next);
    book.access.insert(access.clone(), person);
    let fixed = [(header::CACHE_CONTROL, "no-store")];
    let told =
        json!({ "access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": signed });
    (fixed, Json(told)).into_response()
}

async fn jwks(State(world): State<Arc<World>>) -> Json<Value> {
    let mut keys: Vec<Value> = locked(&world.book).keys.iter().map(SigningKey::public).collect();
    // Providers also publish keys of unknown kinds.
    keys.push(json!({ "kty": "AKP", "alg": "ML-DSA-44", "kid": "of-tomorrow", "pub": "AAAA" }));
    Json(json!({ "keys": keys }))
}

async fn userinfo(State(world): State<Arc<World>>, headers: HeaderMap) -> Response {
    let token =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let person = token.and_then(|token| locked(&world.book).access.get(token).cloned());
    match person {
        Some(Person { subject, email, is_verified }) => {
            Json(json!({ "sub": subject, "email": email, "email_verified": is_verified })).into_response()
        }
        None => no(StatusCode::UNAUTHORIZED, "invalid_token", "there is no such token"),
    }
}
