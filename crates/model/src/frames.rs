//! Frames of a reply: server-sent events, or JSON documents one behind the other. What it is tells the first byte, not
//! the header: servers send either under the name of the other.

use crate::{
    ModelSettings,
    think::ThinkHabit,
    wire::{EventDecoder, garbled},
    wires::wire_of,
};
use pudu_base::{Delta, ModelError};
use pudu_net::sse::{SseDecoder, SseEvent};
use serde::de::IgnoredAny;

/// Maximum size of one JSON document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// Reads the bytes of one reply, without a socket: as they come, cut anywhere.
pub struct ReplyDecoder {
    framing: Framing,
    events: Box<dyn EventDecoder>,
}

enum Framing {
    /// Nothing but white space has come.
    Unknown(SseDecoder),
    Sse(SseDecoder),
    Json(DocumentSplitter),
}

impl ReplyDecoder {
    /// Makes what reads a reply of this model.
    #[must_use]
    pub fn of(settings: &ModelSettings) -> Self {
        Self::with_habit(settings, &ThinkHabit::default())
    }

    /// Makes what reads a reply of this model, whose replies before were like this.
    pub(crate) fn with_habit(settings: &ModelSettings, habit: &ThinkHabit) -> Self {
        Self::new(wire_of(settings.wire).decoder(settings, habit))
    }

    fn new(events: Box<dyn EventDecoder>) -> Self {
        Self { framing: Framing::Unknown(SseDecoder::default()), events }
    }

    /// Feeds bytes.
    ///
    /// # Errors
    /// When the reply breaks its protocol, or carries an error of the provider.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, ModelError> {
        if let Framing::Unknown(sse) = &mut self.framing {
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            self.framing = match first {
                None => return Ok(Vec::new()),
                Some(b'{' | b'[') => Framing::Json(DocumentSplitter::default()),
                Some(_) => Framing::Sse(std::mem::take(sse)),
            };
        }
        let mut out = Vec::new();
        match &mut self.framing {
            Framing::Unknown(_) => {}
            Framing::Sse(sse) => {
                for event in sse.push(bytes).map_err(|_| garbled("an event is too large"))? {
                    let data = event.data.trim();
                    // Without data it is a sign of life.
                    if !data.is_empty() {
                        self.events.event(&event.event, data, &mut out)?;
                    }
                }
            }
            Framing::Json(splitter) => {
                for document in splitter.push(bytes)? {
                    self.events.event("", &String::from_utf8_lossy(&document), &mut out)?;
                }
            }
        }
        Ok(out)
    }

    /// Ends the reply: no more bytes come.
    ///
    /// # Errors
    /// When the reply is not whole.
    pub fn end(&mut self) -> Result<Vec<Delta>, ModelError> {
        let mut out = Vec::new();
        let last = if let Framing::Sse(sse) = &mut self.framing { sse.end() } else { None };
        // Some servers leave out the blank line behind the last event; one that was cut is none.
        if let Some(event) = last.filter(is_whole) {
            self.events.event(&event.event, event.data.trim(), &mut out)?;
        }
        self.events.end(&mut out)?;
        Ok(out)
    }
}

/// Returns whether an event that nothing ended is there to its end.
fn is_whole(event: &SseEvent) -> bool {
    let data = event.data.trim();
    data == "[DONE]" || (data.starts_with('{') && serde_json::from_str::<IgnoredAny>(data).is_ok())
}

/// Splits JSON documents that stand one behind the other, whatever lies between them.
#[derive(Debug, Default)]
struct DocumentSplitter {
    document: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl DocumentSplitter {
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ModelError> {
        let mut whole = Vec::new();
        for &byte in bytes {
            if self.depth == 0 && !matches!(byte, b'{' | b'[') {
                continue;
            }
            self.document.push(byte);
            if self.is_end(byte) {
                whole.push(std::mem::take(&mut self.document));
            }
        }
        if self.document.len() > MAX_DOCUMENT_BYTES {
            return Err(garbled("the answer is too large"));
        }
        Ok(whole)
    }

    /// Follows the structure by one byte; whether the document ends with it.
    fn is_end(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the events that it gets.
    struct EventNotes;

    impl EventDecoder for EventNotes {
        fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
            out.push(Delta::Text(format!("{kind}|{data}")));
            Ok(())
        }

        fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
            Ok(())
        }
    }

    #[test]
    fn row_14_the_first_byte_tells_documents_from_events_however_they_are_cut() {
        for (text, expect) in [
            ("\r\n\ndata: {}\n\nevent: a\ndata: 1\n\n", vec!["|{}", "a|1"]),
            (" {\"a\": \"}\\\"]{\"}\n{}\n", vec!["|{\"a\": \"}\\\"]{\"}", "|{}"]),
            ("[{\"error\":\n 1}]", vec!["|[{\"error\":\n 1}]"]),
            ("{\"a\": [", vec![]),
            ("error: {\"code\": 400}\n\n", vec!["error|{\"code\": 400}"]),
            ("data: {}\n\ndata:\n\nevent: ping\ndata: \n\n", vec!["|{}"]),
            ("data: {}\n\nevent: a\ndata: {\"b\": 1}", vec!["|{}", "a|{\"b\": 1}"]),
            ("data: {}\n\ndata: [DONE]\n", vec!["|{}", "|[DONE]"]),
            ("data: {}\n\ndata: {\"a\":", vec!["|{}"]),
        ] {
            for size in 1..=text.len() {
                let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
                let pieces = text.as_bytes().chunks(size);
                let mut out: Vec<Delta> = pieces.flat_map(|piece| decoder.push(piece).unwrap()).collect();
                out.extend(decoder.end().unwrap());
                let expect: Vec<_> = expect.iter().map(|&text| Delta::Text(text.to_owned())).collect();
                assert_eq!(out, expect, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_document_without_end_is_refused() {
        let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
        decoder.push(b"{\"a\": \"").unwrap();
        let error = decoder.push(&vec![b'x'; MAX_DOCUMENT_BYTES]).unwrap_err();
        assert!(matches!(error, ModelError::Garbled(_)), "{error}");
    }

    #[test]
    fn the_last_event_counts_without_its_blank_line_unless_it_was_cut() {
        let read = |stream: &str| {
            let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
            let mut out = decoder.push(stream.as_bytes()).unwrap();
            out.extend(decoder.end().unwrap());
            out.into_iter()
                .map(|delta| match delta {
                    Delta::Text(text) => text,
                    other => format!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        let whole = ["|{\"a\":1}", "|{\"b\":2}"];
        for end in ["", "\n", "\r\n", "\n\n"] {
            assert_eq!(read(&format!("data: {{\"a\":1}}\n\ndata: {{\"b\":2}}{end}")), whole, "{end:?}");
        }
        assert_eq!(read("data: {\"a\":1}\n\ndata: {\"b\":"), whole[..1]);
    }
}
