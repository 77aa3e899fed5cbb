//! Google's `generateContent` wire of the Gemini API.

mod decode;
mod encode;
mod options;

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, Wire},
};
use pudu_base::Request;
use pudu_net::reqwest::header::HeaderName;

pub(crate) struct GeminiWire;

impl Wire for GeminiWire {
    /// The base URL may or may not include the version, which Google's own clients omit.
    fn path(&self, settings: &ModelSettings) -> String {
        let model = settings.model.strip_prefix("models/").unwrap_or(&settings.model);
        format!("{}/models/{model}:streamGenerateContent?alt=sse", version(settings))
    }

    fn list_path(&self, settings: &ModelSettings) -> String {
        format!("{}/models", version(settings))
    }

    fn key_header(&self) -> (HeaderName, &'static str) {
        (HeaderName::from_static("x-goog-api-key"), "")
    }

    fn body(&self, settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
        encode::body(settings, request)
    }

    fn limit(&self, settings: &ModelSettings, request: &Request) -> Option<u64> {
        options::limit(settings, request)
    }

    fn decoder(&self, settings: &ModelSettings, _: &ThinkHabit) -> Box<dyn EventDecoder> {
        Box::new(decode::ContentDecoder::new(settings))
    }
}

/// Returns the path of the API's version; empty if the base URL includes it.
fn version(settings: &ModelSettings) -> &'static str {
    let last = settings.base_url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let has_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if has_version { "" } else { "/v1beta" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;
    use pudu_net::reqwest::Url;

    #[test]
    fn the_path_is_correct_with_and_without_a_version_in_the_base_url() {
        for (base, model, expect) in [
            ("https://generativelanguage.googleapis.com", "gemini-x", "/v1beta/models/gemini-x"),
            ("https://generativelanguage.googleapis.com/v1beta/", "gemini-x", "/models/gemini-x"),
            ("https://generativelanguage.googleapis.com/v1", "models/gemini-x", "/models/gemini-x"),
            ("https://gateway.example/vertex", "gemini-x", "/v1beta/models/gemini-x"),
        ] {
            let plain = ModelSettings::plain(model, WireKind::Gemini);
            let settings = ModelSettings { base_url: Url::parse(base).unwrap(), ..plain };
            let expect = format!("{expect}:streamGenerateContent?alt=sse");
            assert_eq!(GeminiWire.path(&settings), expect, "{base} {model}");
        }
        assert_eq!(GeminiWire.key_header(), (HeaderName::from_static("x-goog-api-key"), ""));
    }
}
