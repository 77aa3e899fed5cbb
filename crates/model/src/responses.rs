//! OpenAI's Responses API: a reply is a list of items, and encrypted thoughts are sent back unchanged. By default, the
//! provider stores nothing.

mod decode;
mod encode;

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, Wire},
};
use pudu_base::Request;
use pudu_net::reqwest::header::{AUTHORIZATION, HeaderName};

pub(crate) struct ResponsesWire;

impl Wire for ResponsesWire {
    fn path(&self, _: &ModelSettings) -> String {
        "/responses".to_owned()
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

    fn decoder(&self, settings: &ModelSettings, _: &ThinkHabit) -> Box<dyn EventDecoder> {
        Box::new(decode::ItemDecoder::new(settings))
    }
}
