//! Ollama's own chat API: JSON documents, one per line. Its server also supports the chat wire, but requests on that
//! wire cannot set the size of the context window.

mod decode;
mod encode;

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, Wire},
};
use pudu_base::Request;
use pudu_net::reqwest::header::{AUTHORIZATION, HeaderName};

pub(crate) struct OllamaWire;

impl Wire for OllamaWire {
    /// The base URL may be the one of the chat wire, or include the API's path.
    fn path(&self, settings: &ModelSettings) -> String {
        let base = settings.base_url.path().trim_end_matches('/');
        let path = match base.rsplit('/').next() {
            Some("api") => "/chat",
            Some("v1") => "/../api/chat",
            _ => "/api/chat",
        };
        path.to_owned()
    }

    fn list_path(&self, settings: &ModelSettings) -> String {
        self.path(settings).replace("/chat", "/tags")
    }

    fn key_header(&self) -> (HeaderName, &'static str) {
        (AUTHORIZATION, "Bearer ")
    }

    fn body(&self, settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
        encode::body(settings, request)
    }

    fn limit(&self, settings: &ModelSettings, request: &Request) -> Option<u64> {
        encode::limit(settings, request)
    }

    fn decoder(&self, _: &ModelSettings, habit: &ThinkHabit) -> Box<dyn EventDecoder> {
        Box::new(decode::DocumentDecoder::new(habit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;

    #[test]
    fn common_base_urls_are_accepted() {
        for (base, expect) in [
            ("http://127.0.0.1:11434", "/api/chat"),
            ("http://127.0.0.1:11434/", "/api/chat"),
            ("http://127.0.0.1:11434/api/", "/chat"),
            ("http://127.0.0.1:11434/v1", "/../api/chat"),
        ] {
            let base_url = base.parse().unwrap();
            let settings = ModelSettings { base_url, ..ModelSettings::plain("m", WireKind::Ollama) };
            assert_eq!(OllamaWire.path(&settings), expect, "{base}");
        }
    }
}
