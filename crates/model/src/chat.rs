//! OpenAI's chat completions wire, which most other providers have adopted.

mod decode;
mod encode;
mod text_calls;

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, Wire},
};
use pudu_base::Request;
use pudu_net::reqwest::header::{AUTHORIZATION, HeaderName};

pub(crate) struct CompletionsWire;

impl Wire for CompletionsWire {
    fn path(&self, _: &ModelSettings) -> String {
        "/chat/completions".to_owned()
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

    fn decoder(&self, settings: &ModelSettings, habit: &ThinkHabit) -> Box<dyn EventDecoder> {
        Box::new(decode::ChunkDecoder::new(settings, habit))
    }
}
