//! Decodes server-sent events from bytes, without I/O.
//!
//! A JSON document between the events, without a field name, is also an event: Google's servers report errors in a
//! stream this way.

use crate::json::Splitter;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Type of the event; empty means `message`.
    pub event: String,
    /// Data, with lines joined by newlines.
    pub data: String,
    /// ID of the event, if it has one.
    pub id: Option<String>,
}

/// An event exceeds the decoder's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Default maximum size of an event, in bytes.
const LIMIT: usize = 8 * 1024 * 1024;

/// Decodes bytes into events. Chunks may be split anywhere, even inside a character.
#[derive(Debug)]
pub struct SseDecoder {
    /// Maximum size of an event, in bytes.
    limit: usize,
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    started: bool,
    /// The incomplete document without a field name.
    document: Splitter,
}

impl Default for SseDecoder {
    /// Creates a decoder with the default limit of 8 MiB per event.
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl SseDecoder {
    /// Creates a decoder with a limit per event, in bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            after_cr: false,
            started: false,
            document: Splitter::default(),
        }
    }

    /// Adds a chunk and returns the completed events.
    ///
    /// # Errors
    /// When an event exceeds the limit.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|&b| b == b'\n' || b == b'\r') {
            let (line, tail) = rest.split_at(end);
            self.line.extend_from_slice(line);
            rest = match tail {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.end_line(&mut events);
        }
        self.line.extend_from_slice(rest);
        if self.line.len() + self.event.data.len() + self.document.open_bytes() > self.limit {
            return Err(TooLarge);
        }
        Ok(events)
    }

    /// Ends the stream and returns the completed events. The last one may lack its blank line. The standard drops it
    /// because it may be truncated, so the caller has to check that it is complete.
    pub fn end(&mut self) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events);
        }
        events.extend(self.end_event());
        events
    }

    /// Returns whether a document without a field name is incomplete.
    #[must_use]
    pub fn is_in_document(&self) -> bool {
        self.document.open_bytes() > 0
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let line = std::mem::take(&mut self.line);
        let begins_document = !self.has_data && matches!(line.trim_ascii_start().first(), Some(b'{' | b'['));
        if self.is_in_document() || begins_document {
            self.started = true;
            for document in self.document.push(&[&line, &b"\n"[..]].concat()) {
                let event = std::mem::take(&mut self.event.event);
                let data = String::from_utf8_lossy(&document).into_owned();
                events.push(SseEvent { event, data, id: None });
            }
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let mut line = &*line;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            events.extend(self.end_event());
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.field(field, value.strip_prefix(' ').unwrap_or(value));
    }

    fn field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.event.event),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            // Not part of the standard: some servers put their data into this field.
            "error" => {
                "error".clone_into(&mut self.event.event);
                self.field("data", value);
            }
            // Comments, `retry` and unknown fields.
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::default();
        chunks.iter().flat_map(|chunk| decoder.push(chunk).unwrap()).collect()
    }

    fn event(event: &str, data: &str, id: Option<&str>) -> SseEvent {
        SseEvent { event: event.into(), data: data.into(), id: id.map(Into::into) }
    }

    #[test]
    fn fields_comments_and_line_ends_follow_the_standard() {
        let check =
            |text: &str, expect: &[SseEvent]| assert_eq!(decode(&[text.as_bytes()]), expect, "{text:?}");
        check("data: a\n\n", &[event("", "a", None)]);
        check("\u{feff}data:a\r\ndata: b\r\rdata: c\n\n", &[event("", "a\nb", None), event("", "c", None)]);
        check(": heartbeat\n\nevent: end\ndata\nid: 7\n\n", &[event("end", "", Some("7"))]);
        check("event: lonely\n\n", &[]);
        check("data: cut", &[]);
        check("error: {\"code\": 400}\n\n", &[event("error", "{\"code\": 400}", None)]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        for (text, expect) in [
            ("data: a\n\n", None),
            ("", None),
            ("event: lonely", None),
            ("data: a\n\nevent: b\ndata: c", Some(event("b", "c", None))),
            ("data: a\r\n", Some(event("", "a", None))),
        ] {
            let mut decoder = SseDecoder::default();
            decoder.push(text.as_bytes()).unwrap();
            assert_eq!(decoder.end(), Vec::from_iter(expect), "{text:?}");
            assert_eq!(decoder.end(), [], "{text:?}");
        }
    }

    #[test]
    fn a_document_without_a_field_name_is_an_event() {
        let text = "data: a\n\n{\n \"error\": {\n\n  \"code: \": [\"}\"]\n }\n}\n\ndata: b\n\n{\"c\":1} {\"d\":2}\nevent: e\n[\n]\n{";
        let documents = ["{\n \"error\": {\n\n  \"code: \": [\"}\"]\n }\n}", "{\"c\":1}", "{\"d\":2}"];
        let [error, c, d] = documents.map(|data| event("", data, None));
        let expect = [event("", "a", None), error, event("", "b", None), c, d, event("e", "[\n]", None)];
        for size in 1..text.len() {
            let mut decoder = SseDecoder::default();
            let events: Vec<_> =
                text.as_bytes().chunks(size).flat_map(|chunk| decoder.push(chunk).unwrap()).collect();
            assert_eq!(events, expect, "by {size}");
            assert_eq!((decoder.end(), decoder.is_in_document()), (vec![], true), "the last is truncated");
        }
        let mut decoder = SseDecoder::default();
        decoder.push(b"{\n").unwrap();
        let mut pieces = std::iter::repeat_n(vec![b'\n'; 1024 * 1024], 9);
        assert!(pieces.any(|piece| decoder.push(&piece).is_err()), "its size is limited");
    }

    #[test]
    fn a_giant_event_is_refused() {
        let mut decoder = SseDecoder::default();
        assert_eq!(decoder.push(&vec![b'x'; LIMIT + 1]), Err(TooLarge));
        let mut decoder = SseDecoder::with_limit(LIMIT + 1);
        assert_eq!(decoder.push(&vec![b'x'; LIMIT + 1]), Ok(Vec::new()));
        assert_eq!(decoder.push(b"x"), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(text in "(data: [a-zäé\u{1F98C}]{0,9}|id: 1|:|)(\n|\r|\r\n){1,2}(data:x|event: e)?(\n\n|\r\n\r\n)?", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&chunks), decode(&[bytes]));
        }

        #[test]
        fn garbage_never_panics(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..8)) {
            let mut decoder = SseDecoder::default();
            for chunk in chunks {
                decoder.push(&chunk).unwrap();
            }
        }
    }
}
