//! The server that transcribes voice notes and videos.

use super::reader::Section;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use url::Url;

/// A server that transcribes, in the form of OpenAI's `/audio/transcriptions`.
#[derive(Clone, Debug)]
pub struct Transcription {
    /// URL that takes a recording.
    pub url: Url,
    /// The key, where the server wants one.
    pub api_key: Option<SecretString>,
    /// Name of the model.
    pub model: String,
    /// Language of the recordings; the server finds it out if none.
    pub language: Option<String>,
    /// Maximum time for one recording.
    pub timeout: Duration,
}

impl PartialEq for Transcription {
    fn eq(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.url.clone(), one.model.clone(), one.language.clone(), one.timeout);
        let key = |one: &Self| one.api_key.as_ref().map(|key| key.expose_secret().to_owned());
        parts(self) == parts(other) && key(self) == key(other)
    }
}

impl Eq for Transcription {}

/// Reads the server; `None` where nothing transcribes.
pub(super) fn read(top: &Section<'_>) -> Option<Transcription> {
    let section = top.section("transcription");
    let url = section.url("url").optional("none: recordings are not listened to");
    let api_key = section.secret("api_key").optional("none");
    let model = section.text("model").or("whisper-1".to_owned());
    let language = section.text("language").optional("the server finds it out");
    let timeout = section.seconds("timeout", 1.0).or(Duration::from_secs(120));
    Some(Transcription { url: url?, api_key, model, language, timeout })
}
