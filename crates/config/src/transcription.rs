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
    let section = top.section("transcription").about(
        "Voice notes and videos: a server that transcribes them, with OpenAI's `/audio/transcriptions` \
         (`whisper.cpp`'s server accepts the same at `/inference`). Without one users are asked to write.",
    );
    settings! { section =>
        /// URL that accepts a recording; if unset, recordings are not transcribed.
        url = url().eg("https://api.openai.com/v1/audio/transcriptions")
            .optional("none: recordings are not listened to");
        /// API key of the server.
        api_key = secret().eg("$OPENAI_API_KEY").optional("none");
        /// Name of the model.
        model = text().or("whisper-1".to_owned());
        /// Language of the recordings, such as `en`; if unset, the server detects it.
        language = text().eg("en").optional("the server finds it out");
        /// Maximum time for one recording, in seconds.
        timeout = seconds(1.0).or(Duration::from_secs(120));
    }
    Some(Transcription { url: url?, api_key, model, language, timeout })
}
