//! The protocols that providers speak, as ports that know bytes and no sockets.

use crate::{ModelSettings, refusal, think::ThinkHabit};
use pudu_base::{Delta, ModelError, Request, Usage};
use pudu_net::{
    json::{self, Decoded},
    reqwest::header::{HeaderMap, HeaderName},
};
use serde::{Serialize, de::DeserializeOwned};

/// One protocol.
pub(crate) trait Wire: Send + Sync {
    /// Returns the addition to the base URL: a path that begins with a slash, and a query if it has one.
    fn path(&self, settings: &ModelSettings) -> String;

    /// Returns the addition to the base URL for the list of models.
    fn list_path(&self, _: &ModelSettings) -> String {
        "/models".to_owned()
    }

    /// Returns the header that carries the key, and the text before the key in it.
    fn key_header(&self) -> (HeaderName, &'static str);

    /// Returns the headers that every request has besides.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// Writes a request's body.
    fn body(&self, settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>>;

    /// Returns the maximum number of tokens of the reply to such a request, if its body sets one.
    fn limit(&self, settings: &ModelSettings, request: &Request) -> Option<u64>;

    /// Makes the reader of one reply of a model with this habit.
    fn decoder(&self, settings: &ModelSettings, habit: &ThinkHabit) -> Box<dyn EventDecoder>;
}

/// Reads the events of one reply.
///
/// It emits, in this order: words and thoughts as they come; after the end parts for the provider, calls, the usage
/// once, and the finish. A reply that ends in any other way is an error, so that none of its parts counts.
pub(crate) trait EventDecoder: Send {
    /// Reads one event: its kind, which is empty where the wire has none, and its data.
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Reads the end of the bytes.
    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Takes the usage that the provider has reported and that was not emitted, for a reply that fails.
    fn usage(&mut self) -> Option<Usage>;

    /// Returns the number of media in the reply that are left out.
    fn media(&self) -> usize {
        0
    }
}

/// Reads the data of an event. Fields that cannot be read are left out and logged.
pub(crate) fn read<T: DeserializeOwned>(data: &str) -> Result<T, ModelError> {
    let Decoded { value, dropped } =
        json::decode(data.as_bytes()).map_err(|error| refusal::unreadable(data, &error))?;
    if !dropped.is_empty() {
        tracing::warn!(fields = ?dropped, "dropped unreadable fields of a model's reply");
    }
    Ok(value)
}

/// Usual size of a lead agent's request with its prompt and tools, in bytes.
const USUAL_BODY_BYTES: usize = 32 * 1024;

/// Writes a body as JSON.
pub(crate) fn written(body: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BODY_BYTES);
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

/// Returns the error of a reply that breaks its protocol.
pub(crate) fn garbled(detail: impl Into<String>) -> ModelError {
    ModelError::Garbled(detail.into())
}

/// Returns the error of a reply that ended before its end.
pub(crate) fn cut() -> ModelError {
    ModelError::Cut("the answer was cut".to_owned())
}
