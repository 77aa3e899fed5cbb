//! Events as POST requests: encrypted with the app's key, and signed.

use super::{Core, events::Event, world::unix_ms};
use aes::cipher::{BlockModeEncrypt, KeyIvInit, block_padding::Pkcs7};
use base64::{Engine, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpStream, time::timeout};

/// A posted event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encrypted {
    /// The body.
    pub body: String,
    /// The headers: timestamp, nonce, signature.
    pub headers: [(&'static str, String); 3],
}

/// Encrypts and signs an event with a key.
#[must_use]
pub fn seal(key: &str, event: &Value, seconds: i64, nonce: &str) -> Encrypted {
    let hashed: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let digest: [u8; 32] = Sha256::digest(nonce.as_bytes()).into();
    let mut iv = [0; 16];
    iv.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    let text = event.to_string();
    let sealed = cbc::Encryptor::<aes::Aes256>::new(&hashed.into(), &iv.into())
        .encrypt_padded_vec::<Pkcs7>(text.as_bytes());
    let whole: Vec<u8> = iv.iter().copied().chain(sealed).collect();
    let body = json!({"encrypt": BASE64_STANDARD.encode(whole)}).to_string();
    let time = seconds.to_string();
    let signed = signature(&time, nonce, key, &body);
    let headers = [
        ("x-lark-request-timestamp", time),
        ("x-lark-request-nonce", nonce.to_owned()),
        ("x-lark-signature", signed),
    ];
    Encrypted { body, headers }
}

/// Returns the signature of a body: a plain hash that includes the key.
#[must_use]
pub fn signature(timestamp: &str, nonce: &str, key: &str, body: &str) -> String {
    let hash = Sha256::digest(format!("{timestamp}{nonce}{key}{body}").as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Posts an event and uses the response as its acknowledgement.
pub(crate) async fn post(core: Arc<Core>, url: String, event: Event) {
    let key = core.look(|world| world.options.encrypt_key.clone());
    let sealed = seal(&key, &event.body, unix_ms() / 1000, &event.id);
    let answer = timeout(Duration::from_secs(3), send(&url, &sealed)).await.ok().flatten();
    let (code, data) = match answer {
        Some((200, body)) => (200, serde_json::from_str(&body).ok()),
        Some((status, _)) => (i64::from(status), None),
        None => (500, None),
    };
    core.act(|world| world.acknowledged(&event.id, code, data));
}

async fn send(url: &str, sealed: &Encrypted) -> Option<(u16, String)> {
    let url = url::Url::parse(url).ok()?;
    let host = format!("{}:{}", url.host_str()?, url.port_or_known_default()?);
    let stream = TcpStream::connect(&host).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let mut request = hyper::Request::post(url.path()).header("host", &host);
    request = request.header("content-type", "application/json; charset=utf-8");
    for (name, value) in &sealed.headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(bytes::Bytes::from(sealed.body.clone()))).ok()?;
    let answer = async {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::select! {
        answer = answer => answer,
        _ = connection => None,
    }
}
