//! Voice notes and videos, transcribed by a configured server.

use pudu_config::Transcription;
use pudu_net::{
    self as net, json,
    reqwest::{self, Body, multipart},
};
use secrecy::ExposeSecret;
use std::path::Path;

/// File extensions of recordings.
const RECORDINGS: [&str; 17] = [
    "3gp", "aac", "amr", "flac", "m4a", "mkv", "mov", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "opus",
    "wav", "weba", "webm",
];
/// Maximum size of a recording to transcribe, in bytes: the limit of OpenAI's API.
const MAX_RECORDING_BYTES: u64 = 25_000_000;
/// Maximum size of the server's response, in bytes.
const MAX_ANSWER_BYTES: usize = 1_000_000;

/// Outcome of a transcription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The transcript.
    Words(String),
    /// No server is configured.
    NoServer,
    /// Why the transcription failed.
    Failed(String),
}

/// Returns whether a file is a recording or a video, by its name.
pub(super) fn is_recording(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| RECORDINGS.contains(&extension.as_str()))
}

/// Transcribes a recording with the configured server.
pub(super) async fn listen(server: Option<&Transcription>, file: &Path, name: &str) -> Heard {
    let Some(server) = server else { return Heard::NoServer };
    match transcribe(server, file, name).await {
        Ok(words) if words.is_empty() => Heard::Failed("it contains no speech".to_owned()),
        Ok(words) => Heard::Words(words),
        Err(why) => Heard::Failed(why),
    }
}

async fn transcribe(server: &Transcription, file: &Path, name: &str) -> Result<String, String> {
    let unread = |error: std::io::Error| error.to_string();
    let recording = tokio::fs::File::open(file).await.map_err(unread)?;
    let size = recording.metadata().await.map_err(unread)?.len();
    if size > MAX_RECORDING_BYTES {
        return Err("it is too large".to_owned());
    }
    let recording =
        multipart::Part::stream_with_length(Body::from(recording), size).file_name(name.to_owned());
    let form = multipart::Form::new().part("file", recording);
    let form = form.text("model", server.model.clone()).text("response_format", "json");
    let form = match &server.language {
        Some(language) => form.text("language", language.clone()),
        None => form,
    };
    // The URL may contain a key, so errors omit it.
    let unreachable = |error: reqwest::Error| {
        tracing::warn!(error = %error.without_url(), "failed to transcribe a recording");
        "the transcription server cannot be reached".to_owned()
    };
    let request = net::client().map_err(unreachable)?.post(server.url.clone()).timeout(server.timeout);
    let request = match &server.api_key {
        Some(key) => request.bearer_auth(key.expose_secret()),
        None => request,
    };
    let mut response = request.multipart(form).send().await.map_err(unreachable)?;
    let (status, mut body) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err("the response of the transcription server is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    let answer = json::parse(&body).unwrap_or_default();
    match answer["text"].as_str().filter(|_| status.is_success()) {
        Some(words) => Ok(words.trim().to_owned()),
        None => {
            tracing::warn!(%status, "transcription server refused a recording");
            Err(format!("the transcription server refused it (HTTP {})", status.as_u16()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_recognised_by_their_extensions() {
        for name in ["voice.ogg", "a.b.MP4", "feishu-audio-1.opus", "audio.amr", "audio_message.m4a"] {
            assert!(is_recording(name), "{name}");
        }
        for name in ["ogg", "a.txt", "a.ogg.zip", "photo.jpg", ""] {
            assert!(!is_recording(name), "{name}");
        }
    }
}
