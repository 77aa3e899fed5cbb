//! Checks of properties that hold for any input, for the fuzzers, which see only public items, and for tests.

use crate::{
    json::{self, PairJoiner},
    sse::SseDecoder,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads any bytes as foreign JSON: no panic, no NUL, no half pair, and valid JSON is unchanged.
pub fn foreign_json(bytes: &[u8]) {
    let typed = json::decode::<BTreeMap<String, Vec<u32>>>(bytes);
    let Ok(value) = json::parse(bytes) else {
        assert!(typed.is_err(), "a type needs JSON");
        return;
    };
    let written = value.to_string();
    assert!(!written.contains("\\u0000"), "{written}");
    assert_eq!(json::parse(written.as_bytes()).ok().as_ref(), Some(&value), "the result is valid");
    let strict = serde_json::from_slice::<Value>(bytes).ok();
    if let Some(strict) = strict.filter(|strict| !strict.to_string().contains("\\u0000")) {
        assert_eq!(strict, value, "valid JSON is unchanged");
    }
    let mut joiner = PairJoiner::default();
    let text = String::from_utf8_lossy(bytes);
    let mut joined = joiner.push((), &text);
    joined.extend(joiner.end());
    assert_eq!(joined.len(), 1, "each document comes out once");
}

/// Reads any bytes as server-sent events: no panic, and it does not matter where the bytes were cut.
pub fn events(bytes: &[u8]) {
    let read = |size: usize| {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in bytes.chunks(size.max(1)) {
            let Ok(more) = decoder.push(chunk) else { return None };
            events.extend(more);
        }
        events.extend(decoder.end());
        Some((events, decoder.is_in_document()))
    };
    let whole = read(bytes.len());
    for size in [1, 2, 7] {
        assert_eq!(read(size), whole, "by {size}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    fn each_in_corpus(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() > 3, "{} is nearly empty", folder.display());
        files.iter().for_each(|file| check(&fs::read(file).unwrap()));
    }

    #[test]
    fn the_corpora_of_the_fuzzers_are_read() {
        each_in_corpus("foreign_json", foreign_json);
        each_in_corpus("events", events);
    }
}
