//! Checks of properties that hold for any input. They are public because fuzzers cannot access private items; tests use
//! them too.

use crate::{CacheRules, Dialect, ModelSettings, ReplyDecoder, ThinkingRules, WireKind};
use pudu_base::{Delta, ModelError};
use pudu_net::reqwest::Url;
use serde_json::Map;
use std::time::Duration;

/// A decoded reply: text, thoughts, other deltas, and the error that ended it.
type Understood = (String, String, Vec<Delta>, Option<ModelError>);

/// Decodes arbitrary bytes as a reply of the wire that the first byte selects. Checks that nothing panics and that the
/// result does not depend on the chunking.
pub fn reply(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else { return };
    let wires = [WireKind::Chat, WireKind::Messages, WireKind::Gemini, WireKind::Responses, WireKind::Ollama];
    let Some(wire) = wires.get(usize::from(first % 5)) else { return };
    let Ok(base_url) = Url::parse("http://localhost/v1") else { return };
    let settings = settings(*wire, base_url, first & 0x80 != 0);
    let at_once = read(&settings, stream, stream.len());
    for size in [1, 3] {
        let cut = read(&settings, stream, size);
        assert_eq!(cut, at_once, "{wire:?} by {size}: {}", String::from_utf8_lossy(stream));
    }
}

fn read(settings: &ModelSettings, stream: &[u8], size: usize) -> Understood {
    let (mut decoder, mut deltas, mut error) = (ReplyDecoder::for_model(settings), Vec::new(), None);
    for chunk in stream.chunks(size.max(1)) {
        error = decoder.push(chunk, &mut deltas).err();
        if error.is_some() {
            break;
        }
    }
    if error.is_none() {
        error = decoder.end(&mut deltas).err();
    }
    let (mut words, mut thoughts, mut rest) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => words.push_str(&text),
            Delta::Reasoning(text) => thoughts.push_str(&text),
            Delta::Retract => words.clear(),
            other => rest.push(other),
        }
    }
    assert!(!words.contains('\0') && !thoughts.contains('\0'), "no NUL");
    (words, thoughts, rest, error)
}

fn settings(wire: WireKind, base_url: Url, text_calls: bool) -> ModelSettings {
    ModelSettings {
        name: "m".to_owned(),
        model: "m".to_owned(),
        wire,
        dialect: Dialect { text_calls, ..Dialect::PLAIN },
        base_url,
        api_key: None,
        headers: Vec::new(),
        body: Map::new(),
        thinking: ThinkingRules::default(),
        cache: CacheRules::default(),
        max_tokens: None,
        temperature: None,
        window: 128_000,
        sees: false,
        gap: Duration::from_secs(1),
        total: Duration::from_secs(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzzing_corpus_and_its_mutants_are_decoded() {
        assert!(pudu_net::fuzzing::check_corpus("replies", reply).unwrap() >= 10);
    }
}
