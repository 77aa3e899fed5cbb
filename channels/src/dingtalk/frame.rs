//! Stream frames and their acknowledgements.

use serde_json::{Value, json};

/// Topic of bot messages.
pub(super) const MESSAGES: &str = "/v1.0/im/bot/messages/get";
/// Topic of card button presses.
pub(super) const CARDS: &str = "/v1.0/card/instances/callback";

/// A decoded frame of the stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StreamFrame {
    /// A user sent the bot a message.
    Message(Ticket, Value),
    /// A user pressed a button of a card.
    Press(Ticket, Value),
    /// A frame that is acknowledged at once and otherwise ignored, such as a ping. Contains the acknowledgement.
    Answer(String),
    /// DingTalk is about to close this socket and delivers nothing more on it.
    Disconnect,
    /// Not a valid frame, or a frame that needs no acknowledgement.
    Ignored,
}

/// Identifies the frame to acknowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The frame's id. A redelivery has the same id.
    pub(super) id: String,
}

impl Ticket {
    /// Returns the acknowledgement of a stored event.
    pub(super) fn ack(&self) -> String {
        ack(200, "OK", &self.id, &json!({"response": {}}).to_string())
    }
}

/// Parses a frame. Any input is allowed; an invalid frame becomes [`StreamFrame::Ignored`].
pub(super) fn read(text: &str) -> StreamFrame {
    let frame: Value = crate::lenient::from_bytes(text.as_bytes()).unwrap_or_default();
    let word = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let headers = &frame["headers"];
    let (kind, topic, id) = (word(&frame, "type"), word(headers, "topic"), word(headers, "messageId"));
    let data = word(&frame, "data");
    let content = || crate::lenient::from_bytes(data.as_bytes()).unwrap_or(Value::Null);
    match (kind.as_str(), topic.as_str()) {
        ("SYSTEM", "disconnect") => StreamFrame::Disconnect,
        // The acknowledgement of a ping echoes the ping's data.
        ("SYSTEM", _) if !id.is_empty() => StreamFrame::Answer(ack(200, "OK", &id, &data)),
        (_, _) if id.is_empty() => StreamFrame::Ignored,
        ("CALLBACK", MESSAGES) => StreamFrame::Message(Ticket { id }, content()),
        ("CALLBACK", CARDS) => StreamFrame::Press(Ticket { id }, content()),
        ("CALLBACK", _) => StreamFrame::Answer(ack(404, "not handled here", &id, "{}")),
        ("EVENT", _) => StreamFrame::Answer(ack(
            200,
            "OK",
            &id,
            &json!({"status": "SUCCESS", "message": "ok"}).to_string(),
        )),
        _ => StreamFrame::Ignored,
    }
}

fn ack(code: u16, message: &str, id: &str, data: &str) -> String {
    let headers = json!({"messageId": id, "contentType": "application/json"});
    json!({"code": code, "headers": headers, "message": message, "data": data}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: &str, topic: &str, id: Option<&str>, data: &Value) -> String {
        let mut headers = json!({"topic": topic, "contentType": "application/json", "time": "1690362102194"});
        if let Some(id) = id {
            headers["messageId"] = id.into();
        }
        json!({"specVersion": "1.0", "type": kind, "headers": headers, "data": data.to_string()}).to_string()
    }

    fn answer(code: u16, message: &str, id: &str, data: &str) -> StreamFrame {
        let headers = json!({"messageId": id, "contentType": "application/json"});
        StreamFrame::Answer(
            json!({"code": code, "headers": headers, "message": message, "data": data}).to_string(),
        )
    }

    #[test]
    fn each_kind_of_frame_is_parsed() {
        let ping = json!({"opaque": "3a1b"});
        let ticket = Ticket { id: "m1".into() };
        let said = json!({"msgId": "x"});
        let cases = [
            (frame("SYSTEM", "ping", Some("p1"), &ping), answer(200, "OK", "p1", &ping.to_string())),
            (frame("SYSTEM", "KEEPALIVE", None, &json!({})), StreamFrame::Ignored),
            (frame("SYSTEM", "disconnect", None, &json!({"reason": "x"})), StreamFrame::Disconnect),
            (
                frame("CALLBACK", MESSAGES, Some("m1"), &said),
                StreamFrame::Message(ticket.clone(), said.clone()),
            ),
            (frame("CALLBACK", CARDS, Some("m1"), &said), StreamFrame::Press(ticket, said)),
            (
                frame("CALLBACK", "/other", Some("m1"), &json!({})),
                answer(404, "not handled here", "m1", "{}"),
            ),
            (
                frame("EVENT", "user_add_org", Some("e1"), &json!({})),
                answer(200, "OK", "e1", "{\"message\":\"ok\",\"status\":\"SUCCESS\"}"),
            ),
            (frame("CALLBACK", MESSAGES, None, &json!({})), StreamFrame::Ignored),
            ("{\"type\":\"CALLBACK\"".to_owned(), StreamFrame::Ignored),
            ("[1,2]".to_owned(), StreamFrame::Ignored),
            (String::new(), StreamFrame::Ignored),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_with_unreadable_content_can_still_be_acknowledged() {
        let text = json!({
            "type": "CALLBACK", "headers": {"topic": MESSAGES, "messageId": "m1"}, "data": "{\"cut",
        });
        assert_eq!(read(&text.to_string()), StreamFrame::Message(Ticket { id: "m1".into() }, Value::Null));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn arbitrary_input_never_panics(text in ".{0,400}", kind in "SYSTEM|CALLBACK|EVENT|x", data in ".{0,80}") {
            read(&text);
            let headers = json!({"topic": MESSAGES, "messageId": text});
            read(&json!({"type": kind, "headers": headers, "data": data}).to_string());
        }
    }
}
