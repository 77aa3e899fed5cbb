//! The server that transcribes voice notes and videos.

use super::reader::Section;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use url::Url;

/// A transcription server with OpenAI's `/audio/transcriptions` API.
#[derive(Clone, Debug)]
pub struct Transcription {
    /// URL that accepts a recording.
    pub url: Url,
    /// The API key, if the server requires one.
    pub api_key: Option<SecretString>,
    /// Name of the model.
    pub model: String,
    /// Language of the recordings; detected by the server if `None`.
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

/// Reads the server. Returns `None` if there is none.
pub(super) fn read(top: &Section<'_>) -> Option<Transcription> {
    let section = top.section("transcription").about(
        "Voice notes and videos: a server that transcribes them, with OpenAI's `/audio/transcriptions` \
         (`whisper.cpp`'s server accepts the same at `/inference`). Without one users are asked to write.",
    );
    settings! { section =>
        /// URL that accepts a recording; if unset, recordings are not transcribed.
        url = url().eg("https://api.openai.com/v1/audio/transcriptions")
            .optional("none: recordings are not transcribed");
        /// API key of the server.
        api_key = secret().eg("$OPENAI_API_KEY").optional("none");
        /// Name of the model.
        model = text().or("whisper-1".to_owned());
        /// Language of the recordings, such as `en`; if unset, the server detects it.
        language = text().eg("en").optional("detected by the server");
        /// Maximum time for one recording, in seconds.
        timeout = seconds(1.0).or(Duration::from_secs(120));
    }
    Some(Transcription { url: url?, api_key, model, language, timeout })
}
