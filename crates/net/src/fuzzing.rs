//! Checks of properties that hold for any input, for fuzzers, which see only public items, and for tests.

use crate::{
    json::{self, PairJoiner},
    sse::SseDecoder,
};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

/// Parses any bytes as foreign JSON: no panic, no NUL, no lone surrogate, and valid JSON is unchanged.
pub fn foreign_json(bytes: &[u8]) {
    let typed = json::decode::<BTreeMap<String, Vec<u32>>>(bytes);
    let Ok(value) = json::parse(bytes) else {
        assert!(typed.is_err(), "a type needs JSON");
        return;
    };
    let written = value.to_string();
    assert!(!has_nul(&value), "{written}");
    assert_eq!(json::parse(written.as_bytes()).ok().as_ref(), Some(&value), "the result is valid");
    let strict = serde_json::from_slice::<Value>(bytes).ok();
    if let Some(strict) = strict.filter(|strict| !has_nul(strict)) {
        assert_eq!(strict, value, "valid JSON is unchanged");
    }
    let mut joiner = PairJoiner::default();
    let text = String::from_utf8_lossy(bytes);
    let mut joined = joiner.push((), &text);
    joined.extend(joiner.end());
    assert_eq!(joined.len(), 1, "each document comes out once");
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(list) => list.iter().any(has_nul),
        Value::Object(map) => map.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Parses any bytes as server-sent events: no panic, and the result does not depend on the chunks.
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
    let at_once = read(bytes.len());
    for size in [1, 2, 7] {
        assert_eq!(read(size), at_once, "by {size}");
    }
}

/// Checks each file of a fuzzer's corpus and its mutants: `PUDU_FUZZ_ROUNDS` mutants per file, 50 by default.
/// Returns the number of files.
///
/// # Errors
/// When the corpus cannot be read.
pub fn check_corpus(target: &str, check: fn(&[u8])) -> std::io::Result<usize> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let rounds = std::env::var("PUDU_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
    let mut files = 0;
    for entry in std::fs::read_dir(folder)? {
        let bytes = std::fs::read(entry?.path())?;
        check(&bytes);
        (0..rounds).for_each(|seed| check(&mutant(&bytes, seed)));
        files += 1;
    }
    Ok(files)
}

/// Returns bytes with some changed, removed or repeated. The same seed gives the same mutant.
fn mutant(bytes: &[u8], seed: u64) -> Vec<u8> {
    const SIGNS: &[u8] = b"{}[]\":,\\u0dN-\n\r\xff\xed\0 ";
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or(0) % most.max(1)
    };
    let mut mutant = bytes.to_vec();
    for _ in 0..=below(6) {
        let (at, other) = (below(mutant.len()), below(mutant.len()));
        match below(4) {
            0 => mutant.insert(at, SIGNS.get(below(SIGNS.len())).copied().unwrap_or_default()),
            1 => mutant.truncate(at.max(1)),
            2 => drop(mutant.drain(at.min(other)..at.max(other).min(at.min(other) + 40))),
            _ => {
                let piece =
                    mutant.get(at.min(other)..at.max(other).min(at.min(other) + 60)).unwrap_or_default();
                let piece = piece.to_vec();
                let to = below(mutant.len());
                drop(mutant.splice(to..to, piece));
            }
        }
    }
    mutant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzzing_corpora_and_their_mutants_are_parsed() {
        assert!(check_corpus("foreign_json", foreign_json).unwrap() > 5);
        assert!(check_corpus("events", events).unwrap() > 3);
    }
}
