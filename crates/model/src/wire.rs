//! The interface of the wire protocols, without I/O.

use crate::{ModelSettings, refusal, think::ThinkHabit};
use pudu_base::{Delta, ModelError, Request, Usage};
use pudu_net::{
    json::{self, Decoded},
    reqwest::header::{HeaderMap, HeaderName},
};
use serde::{Serialize, de::DeserializeOwned};

/// A wire protocol.
pub(crate) trait Wire: Send + Sync {
    /// Returns the suffix of the base URL: a path with a leading slash, and an optional query.
    fn path(&self, settings: &ModelSettings) -> String;

    /// Returns the suffix of the base URL for the list of models.
    fn list_path(&self, _: &ModelSettings) -> String {
        "/models".to_owned()
    }

    /// Returns the header for the key and the prefix of its value.
    fn key_header(&self) -> (HeaderName, &'static str);

    /// Returns additional headers of every request.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// Writes a request's body.
    fn body(&self, settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>>;

    /// Returns the maximum number of tokens of the reply, if the request's body sets one.
    fn limit(&self, settings: &ModelSettings, request: &Request) -> Option<u64>;

    /// Creates a decoder for one reply of a model with this thinking habit.
    fn decoder(&self, settings: &ModelSettings, habit: &ThinkHabit) -> Box<dyn EventDecoder>;
}

/// Decodes the events of one reply.
///
/// It emits text and thoughts as they arrive and, at the end, the provider's parts, the calls, the usage and the
/// finish, in this order. A reply that ends in any other way is an error and is discarded.
pub(crate) trait EventDecoder: Send {
    /// Decodes one event from its data and its kind, which is empty if the wire has none.
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Processes the end of the bytes.
    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError>;

    /// Takes the usage that was reported but not emitted, for a failed reply.
    fn usage(&mut self) -> Option<Usage>;

    /// Returns the number of skipped media in the reply.
    fn media(&self) -> usize {
        0
    }
}

/// Parses the data of an event. Fields that cannot be parsed are dropped and logged.
pub(crate) fn read<T: DeserializeOwned>(data: &str) -> Result<T, ModelError> {
    let Decoded { value, dropped } =
        json::decode(data.as_bytes()).map_err(|error| refusal::unreadable(data, &error))?;
    if !dropped.is_empty() {
        tracing::warn!(fields = ?dropped, "dropped unreadable fields of a model's reply");
    }
    Ok(value)
}

/// Typical size of a lead agent's request with prompt and tools, in bytes.
const USUAL_BODY_BYTES: usize = 32 * 1024;

/// Serializes a body as JSON.
pub(crate) fn written(body: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BODY_BYTES);
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

/// Returns the error for a reply that violates its protocol.
pub(crate) fn garbled(detail: impl Into<String>) -> ModelError {
    ModelError::Garbled(detail.into())
}

/// Returns the error for a truncated reply.
pub(crate) fn cut() -> ModelError {
    ModelError::Cut("the answer was truncated".to_owned())
}
