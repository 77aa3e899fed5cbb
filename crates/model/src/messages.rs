//! Anthropic's Messages wire, which other providers also support.

mod decode;
mod encode;
mod options;

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, Wire},
};
use pudu_base::Request;
use pudu_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) struct MessagesWire;

impl Wire for MessagesWire {
    /// The base URL may or may not include the version, which Anthropic's own clients omit.
    fn path(&self, settings: &ModelSettings) -> String {
        let has_version = settings.base_url.path().trim_end_matches('/').ends_with("/v1");
        if has_version { "/messages".to_owned() } else { "/v1/messages".to_owned() }
    }

    fn list_path(&self, settings: &ModelSettings) -> String {
        self.path(settings).replace("/messages", "/models")
    }

    fn key_header(&self) -> (HeaderName, &'static str) {
        (HeaderName::from_static("x-api-key"), "")
    }

    fn headers(&self) -> HeaderMap {
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        HeaderMap::from_iter([version])
    }

    fn body(&self, settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
        encode::body(settings, request)
    }

    fn limit(&self, settings: &ModelSettings, request: &Request) -> Option<u64> {
        options::limit(settings, request)
    }

    fn decoder(&self, settings: &ModelSettings, _: &ThinkHabit) -> Box<dyn EventDecoder> {
        Box::new(decode::MessageDecoder::new(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;
    use pudu_net::reqwest::Url;

    #[test]
    fn the_path_is_correct_with_and_without_a_version_in_the_base_url() {
        for (base, expect) in [
            ("https://api.anthropic.com", "/v1/messages"),
            ("https://api.anthropic.com/", "/v1/messages"),
            ("https://api.anthropic.com/v1", "/messages"),
            ("https://api.anthropic.com/v1/", "/messages"),
            ("https://api.deepseek.com/anthropic", "/v1/messages"),
        ] {
            let plain = ModelSettings::plain("claude", WireKind::Messages);
            let settings = ModelSettings { base_url: Url::parse(base).unwrap(), ..plain };
            assert_eq!(MessagesWire.path(&settings), expect, "{base}");
        }
        assert_eq!(MessagesWire.headers()["anthropic-version"], "2023-06-01");
        assert_eq!(MessagesWire.key_header(), (HeaderName::from_static("x-api-key"), ""));
    }
}
