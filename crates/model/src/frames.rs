//! Frames of a reply: server-sent events, or consecutive JSON documents. The first byte determines the framing, because
//! some servers send the wrong content type.

use crate::{
    ModelSettings,
    media::MAX_IMAGE_BYTES,
    think::ThinkHabit,
    wire::{EventDecoder, cut, garbled},
    wires::wire_of,
};
use pudu_base::{Delta, ModelError};
use pudu_net::{
    json::{PairJoiner, Splitter},
    sse::{SseDecoder, SseEvent},
};
use serde::de::IgnoredAny;

/// Maximum size of one event or JSON document, in bytes: all images of a reply in base64, plus 8 MiB for everything
/// else.
const MAX_DOCUMENT_BYTES: usize = MAX_IMAGE_BYTES / 3 * 4 + 8 * 1024 * 1024;

/// Decodes the bytes of one reply, given in chunks of any size, without I/O.
pub struct ReplyDecoder {
    framing: Framing,
    /// Joins surrogate pairs that the server split between two events.
    pairs: PairJoiner<String>,
    events: Box<dyn EventDecoder>,
    /// Whether text or calls have arrived.
    has_content: bool,
}

enum Framing {
    /// Nothing but whitespace has arrived.
    Unknown,
    Sse(SseDecoder),
    Json(Splitter),
}

impl ReplyDecoder {
    /// Creates a decoder for a reply of this model.
    #[must_use]
    pub fn for_model(settings: &ModelSettings) -> Self {
        Self::with_habit(settings, &ThinkHabit::default())
    }

    /// Creates a decoder for a reply of this model, with the thinking habit of its earlier replies.
    pub(crate) fn with_habit(settings: &ModelSettings, habit: &ThinkHabit) -> Self {
        Self::new(wire_of(settings.wire).decoder(settings, habit))
    }

    fn new(events: Box<dyn EventDecoder>) -> Self {
        Self { framing: Framing::Unknown, pairs: PairJoiner::default(), events, has_content: false }
    }

    /// Adds bytes and appends the completed deltas to `out`. After an error, `out` ends with the usage reported so far.
    ///
    /// # Errors
    /// When the reply violates its protocol, or reports a provider error.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let before = out.len();
        let read = self.read(bytes, out);
        self.judge(read, before, out)
    }

    /// Ends the reply. After an error, `out` ends with the usage reported so far.
    ///
    /// # Errors
    /// When the reply is incomplete.
    pub fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let before = out.len();
        let ended = self.read_end(out);
        self.judge(ended, before, out)
    }

    /// Adds the usage to a failed reply, and fails a reply that contains only skipped media.
    fn judge(
        &mut self,
        read: Result<(), ModelError>,
        before: usize,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        for delta in out.iter().skip(before) {
            match delta {
                Delta::Text(text) => self.has_content |= !text.trim().is_empty(),
                Delta::Call(_) | Delta::Image(_) => self.has_content = true,
                Delta::Retract => self.has_content = false,
                _ => {}
            }
        }
        let media = self.events.media();
        let is_over = media > 0 && matches!(out.last(), Some(Delta::Finish(_)));
        if is_over {
            tracing::warn!(media, "left out media that the model generated");
        }
        if is_over && !self.has_content {
            out.pop();
            return Err(ModelError::OnlyMedia);
        }
        read.inspect_err(|_| out.extend(self.events.usage().map(Delta::Usage)))
    }

    fn read(&mut self, mut bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if matches!(self.framing, Framing::Unknown) {
            // Leading whitespace is skipped, however the bytes are split.
            bytes = bytes.trim_ascii_start();
            self.framing = match bytes.first() {
                None => return Ok(()),
                Some(b'{' | b'[') => Framing::Json(Splitter::default()),
                Some(_) => Framing::Sse(SseDecoder::with_limit(MAX_DOCUMENT_BYTES)),
            };
        }
        match &mut self.framing {
            Framing::Unknown => Ok(()),
            Framing::Sse(sse) => {
                let events = sse.push(bytes).map_err(|_| garbled("an event is too large"))?;
                events.iter().try_for_each(|event| self.event(&event.event, event.data.trim(), out))
            }
            Framing::Json(splitter) => {
                let documents = splitter.push(bytes);
                let is_large = splitter.open_bytes() > MAX_DOCUMENT_BYTES;
                for document in documents {
                    self.event("", &String::from_utf8_lossy(&document), out)?;
                }
                if is_large { Err(garbled("the answer is too large")) } else { Ok(()) }
            }
        }
    }

    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        // An event without data is a keep-alive.
        if data.is_empty() {
            return Ok(());
        }
        if self.pairs.may_pass(data) {
            return self.events.event(kind, data, out);
        }
        let ready = self.pairs.push(kind.to_owned(), data);
        ready.iter().try_for_each(|(kind, data)| self.events.event(kind, data, out))
    }

    fn read_end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Framing::Sse(sse) = &mut self.framing {
            let last = sse.end();
            // Checked before the last event, which may be an error that explains why the reply is incomplete.
            let is_cut = sse.is_in_document();
            // Some servers omit the blank line after the last event. A truncated event is dropped.
            for event in last.iter().filter(|event| is_whole(event)) {
                self.event(&event.event, event.data.trim(), out)?;
            }
            if is_cut {
                return Err(cut());
            }
        }
        let waiting = self.pairs.end();
        waiting.iter().try_for_each(|(kind, data)| self.events.event(kind, data, out))?;
        self.events.end(out)
    }
}

/// Returns whether an event is complete although no blank line follows it.
fn is_whole(event: &SseEvent) -> bool {
    let data = event.data.trim();
    data == "[DONE]" || (data.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(data).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireKind;
    use pudu_base::Usage;
    use serde_json::json;

    /// Records the events.
    struct EventNotes;

    impl EventDecoder for EventNotes {
        fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
            out.push(Delta::Text(format!("{kind}|{data}")));
            Ok(())
        }

        fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
            Ok(())
        }

        fn usage(&mut self) -> Option<Usage> {
            Some(Usage::plain(1, 0))
        }
    }

    #[test]
    fn row_14_the_first_byte_distinguishes_documents_from_events_for_any_chunking() {
        for (text, expect) in [
            ("\r\n\ndata: {}\n\nevent: a\ndata: 1\n\n", vec!["|{}", "a|1"]),
            (" \n data: {}\n\n", vec!["|{}"]),
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
                let mut out = Vec::new();
                text.as_bytes().chunks(size).for_each(|piece| decoder.push(piece, &mut out).unwrap());
                decoder.end(&mut out).unwrap();
                let expect: Vec<_> = expect.iter().map(|&text| Delta::Text(text.to_owned())).collect();
                assert_eq!(out, expect, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn an_endless_document_is_refused() {
        let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
        let mut out = Vec::new();
        decoder.push(b"{\"a\": \"", &mut out).unwrap();
        let error = decoder.push(&vec![b'x'; MAX_DOCUMENT_BYTES], &mut out).unwrap_err();
        assert!(matches!(error, ModelError::Garbled(_)), "{error}");
        assert_eq!(out, [Delta::Usage(Usage::plain(1, 0))], "its usage is known");
    }

    #[test]
    fn one_event_may_contain_all_images_of_a_reply() {
        let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
        let mut out = Vec::new();
        decoder.push(b"data: ", &mut out).unwrap();
        decoder.push(&vec![b'x'; MAX_IMAGE_BYTES / 3 * 4], &mut out).unwrap();
        decoder.push(b"\n\n", &mut out).unwrap();
        assert!(matches!(&out[..], [Delta::Text(text)] if text.len() > MAX_IMAGE_BYTES), "{}", out.len());
    }

    #[test]
    fn the_last_event_needs_no_blank_line_unless_it_is_truncated() {
        let read = |stream: &str| {
            let mut decoder = ReplyDecoder::new(Box::new(EventNotes));
            let mut out = Vec::new();
            decoder.push(stream.as_bytes(), &mut out).unwrap();
            decoder.end(&mut out).unwrap();
            out.into_iter()
                .map(|delta| match delta {
                    Delta::Text(text) => text,
                    other => format!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        let events = ["|{\"a\":1}", "|{\"b\":2}"];
        for end in ["", "\n", "\r\n", "\n\n"] {
            assert_eq!(read(&format!("data: {{\"a\":1}}\n\ndata: {{\"b\":2}}{end}")), events, "{end:?}");
        }
        assert_eq!(read("data: {\"a\":1}\n\ndata: {\"b\":"), events[..1]);
    }

    /// Returns a stream for each wire with these words, thoughts and arguments, given as the contents of JSON strings.
    fn each_wire(words: &[&str], thoughts: &[&str], arguments: &[&str]) -> Vec<(WireKind, String)> {
        let chat = |delta: String| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        let call = |piece: &&str| {
            chat(format!(
                "{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":{{\"name\":\"f\",\"arguments\":\"{piece}\"}}}}]}}"
            ))
        };
        let chat_stream = [
            thoughts
                .iter()
                .map(|text| chat(format!("{{\"reasoning_content\":\"{text}\"}}")))
                .collect::<String>(),
            words.iter().map(|text| chat(format!("{{\"content\":\"{text}\"}}"))).collect(),
            arguments.iter().map(call).collect(),
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
                .to_owned(),
        ];
        let block = |index: usize, begin: &str, kind: &str, name: &str, pieces: &[&str]| {
            let begin = format!(
                "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{begin}}}\n\n"
            );
            let pieces = pieces.iter().map(|text| {
                format!("data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"{name}\":\"{text}\"}}}}\n\ndata: {{\"type\":\"ping\"}}\n\n")
            });
            begin
                + &pieces.collect::<String>()
                + &format!("data: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n")
        };
        let messages_stream = [
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n".to_owned(),
            block(0, "{\"type\":\"thinking\",\"thinking\":\"\"}", "thinking_delta", "thinking", thoughts),
            block(1, "{\"type\":\"text\",\"text\":\"\"}", "text_delta", "text", words),
            block(2, "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}", "input_json_delta", "partial_json", arguments),
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n".to_owned(),
        ];
        let part =
            |part: String| format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}}}}]}}\n\n");
        let gemini_stream = [
            thoughts
                .iter()
                .map(|text| part(format!("{{\"text\":\"{text}\",\"thought\":true}}")))
                .collect::<String>(),
            words.iter().map(|text| part(format!("{{\"text\":\"{text}\"}}"))).collect(),
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n".to_owned(),
        ];
        let item = |kind: &str, at: usize, pieces: &[&str]| {
            let event = |text: &&str| {
                format!(
                    "data: {{\"type\":\"response.{kind}.delta\",\"output_index\":{at},\"delta\":\"{text}\"}}\n\n"
                )
            };
            pieces.iter().map(event).collect::<String>()
        };
        let responses_stream = [
            item("reasoning_summary_text", 0, thoughts),
            item("output_text", 1, words),
            "data: {\"type\":\"response.output_item.added\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"\"}}\n\n".to_owned(),
            item("function_call_arguments", 2, arguments),
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n".to_owned(),
        ];
        let line =
            |name: &str, text: &&str| format!("{{\"message\":{{\"{name}\":\"{text}\"}},\"done\":false}}\n");
        let ollama_stream = [
            thoughts.iter().map(|text| line("thinking", text)).collect::<String>(),
            words.iter().map(|text| line("content", text)).collect(),
            "{\"done\":true,\"done_reason\":\"stop\"}\n".to_owned(),
        ];
        vec![
            (WireKind::Chat, chat_stream.concat()),
            (WireKind::Messages, messages_stream.concat()),
            (WireKind::Gemini, gemini_stream.concat()),
            (WireKind::Responses, responses_stream.concat()),
            (WireKind::Ollama, ollama_stream.concat()),
        ]
    }

    #[test]
    fn split_surrogate_pairs_are_joined_or_replaced_on_every_wire() {
        for (pieces, expect) in [
            (&[r"Good morning \ud83d", r"\ude00 everybody"][..], "Good morning 😀 everybody"),
            (&[r"Good \ud83d\ude00 morning"], "Good 😀 morning"),
            (&[r"現\ud99c ", r"보유현황 42"], "現\u{fffd} 보유현황 42"),
            (&[r"a\ud83d"], "a\u{fffd}"),
            (&[r"a", r"\ude00b"], "a\u{fffd}b"),
            (&[r"a\u0000b", "c\u{0}d"], "a\u{fffd}bc\u{fffd}d"),
        ] {
            // The escape may come from the provider or, within the arguments, from the model.
            let quoted = |escape: &str| {
                let inner: Vec<String> = pieces.iter().map(|text| text.replace('\\', escape)).collect();
                let last = inner.len() - 1;
                let quote = |(at, text): (usize, &String)| {
                    let begin = if at == 0 { r#"{\"t\":\""# } else { "" };
                    format!("{begin}{text}{}", if at == last { r#"\"}"# } else { "" })
                };
                inner.iter().enumerate().map(quote).collect::<Vec<_>>()
            };
            for arguments in [quoted("\\"), quoted("\\\\")] {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                for (wire, stream) in each_wire(pieces, pieces, &arguments) {
                    let settings = ModelSettings::plain("m", wire);
                    let reply = crate::testing::read_open(&settings, stream.as_bytes()).unwrap();
                    let case = format!("{wire:?}: {stream}");
                    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), (expect, expect), "{case}");
                    for call in &reply.calls {
                        assert_eq!((&call.args, &call.garbled), (&json!({"t": expect}), &None), "{case}");
                    }
                    let has_calls = !matches!(wire, WireKind::Gemini | WireKind::Ollama);
                    assert_eq!(reply.calls.len(), usize::from(has_calls), "{case}");
                }
            }
        }
    }

    #[test]
    fn a_joined_pair_keeps_the_position_of_signed_thoughts() {
        let stream = &each_wire(&[r"Hi \ud83d", r"\ude00!"], &[r"Hm \ud83d", r"\ude00"], &["{}"])[1].1;
        let settings = ModelSettings::plain("m", WireKind::Messages);
        let reply = crate::testing::read_open(&settings, stream.as_bytes()).unwrap();
        let order = &reply.parts.unwrap().parts["order"];
        assert_eq!(order[0]["part"]["thinking"], "Hm 😀");
        assert_eq!(order[1]["words"], "Hi 😀!".len());
    }
}
