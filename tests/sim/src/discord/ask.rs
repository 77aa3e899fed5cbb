//! A parsed request: path, query, JSON or form with files.

use super::error::{Answer, Refusal};
use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, Multipart, Request},
    http::header,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::form_urlencoded;

/// Maximum size of a request, as documented: 25 MiB.
const MAX_BODY_BYTES: usize = 25 * 1024 * 1024;

/// A request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) verb: String,
    /// Parts of the path after the version, decoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// Fields, names and contents.
    pub(crate) files: Vec<(String, String, Bytes)>,
    pub(crate) token: Option<String>,
    /// User agent of the client.
    pub(crate) agent: String,
}

impl Ask {
    pub(crate) async fn read(path: &str, request: Request) -> Answer<Self> {
        let mut ask = Self { verb: request.method().as_str().to_owned(), ..Self::default() };
        let part = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        ask.path = path.split('/').filter(|part| !part.is_empty()).map(part).collect();
        let query = request.uri().query().unwrap_or_default().as_bytes();
        ask.query = form_urlencoded::parse(query).into_owned().collect();
        ask.token = text(&request, &header::AUTHORIZATION);
        ask.agent = text(&request, &header::USER_AGENT).unwrap_or_default();
        let content = text(&request, &header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        if content.starts_with("multipart/form-data") {
            ask.form(request).await?;
            return Ok(ask);
        }
        let too_large = |_| Refusal::new(413, 40005, "Request entity too large");
        let body = to_bytes(request.into_body(), MAX_BODY_BYTES).await.map_err(too_large)?;
        if !body.is_empty() {
            ask.json(&body)?;
        }
        Ok(ask)
    }

    fn json(&mut self, body: &[u8]) -> Answer<()> {
        let broken = |_| Refusal::new(400, 50109, "The request body contains invalid JSON.");
        self.body = serde_json::from_slice(body).map_err(broken)?;
        Ok(())
    }

    async fn form(&mut self, request: Request) -> Answer<()> {
        let broken = || Refusal::new(400, 50035, "Invalid Form Body");
        let mut parts = Multipart::from_request(request, &()).await.map_err(|_| broken())?;
        let mut size = 0;
        while let Some(part) = parts.next_field().await.map_err(|_| broken())? {
            let field = part.name().unwrap_or_default().to_owned();
            let name = part.file_name().map(str::to_owned);
            let bytes = part.bytes().await.map_err(|_| broken())?;
            size += bytes.len();
            if size > MAX_BODY_BYTES {
                return Err(Refusal::new(413, 40005, "Request entity too large"));
            }
            match name {
                Some(name) if field.starts_with("file") => self.files.push((field, name, bytes)),
                _ if field == "payload_json" => self.json(&bytes)?,
                _ => return Err(broken()),
            }
        }
        Ok(())
    }

    /// Returns a part of the path.
    pub(crate) fn part(&self, n: usize) -> &str {
        self.path.get(n).map_or("", String::as_str)
    }

    /// Returns all parameters for the record. A file is recorded as its name and size.
    pub(crate) fn record(&self) -> Map<String, Value> {
        let mut record = match &self.body {
            Value::Object(fields) => fields.clone(),
            Value::Null => Map::new(),
            other => [("body".to_owned(), other.clone())].into_iter().collect(),
        };
        // Paths contain tokens of interactions.
        let shown = self.path.iter().map(|part| if part.len() > 60 { "[token]" } else { part });
        record.insert("path".to_owned(), shown.collect::<Vec<_>>().join("/").into());
        if !self.query.is_empty() {
            record.insert("query".to_owned(), json!(self.query));
        }
        if !self.files.is_empty() {
            let file = |(_, name, bytes): &(String, String, Bytes)| json!([name, bytes.len()]);
            record.insert("files".to_owned(), self.files.iter().map(file).collect());
        }
        record
    }
}

fn text(request: &Request, name: &header::HeaderName) -> Option<String> {
    request.headers().get(name)?.to_str().ok().map(str::to_owned)
}
