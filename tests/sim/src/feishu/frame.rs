//! Frames of the long connection, encoded as protobuf (proto2).

use super::world::World;
use serde_json::{Value, json};

/// A control frame: ping or pong.
pub(crate) const CONTROL: i32 = 0;
/// A frame with an event, or its acknowledgement.
pub(crate) const DATA: i32 = 1;

/// A frame. `required` fields are written even if zero: strict readers need them.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Frame {
    #[prost(uint64, required, tag = "1")]
    pub(crate) seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(crate) log_id: u64,
    #[prost(int32, required, tag = "3")]
    pub(crate) service: i32,
    #[prost(int32, required, tag = "4")]
    pub(crate) method: i32,
    #[prost(message, repeated, tag = "5")]
    pub(crate) headers: Vec<Header>,
    #[prost(string, optional, tag = "6")]
    pub(crate) payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(crate) payload_type: Option<String>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(crate) payload: Option<Vec<u8>>,
    #[prost(string, optional, tag = "9")]
    pub(crate) log_id_new: Option<String>,
}

/// A header of a frame.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Header {
    #[prost(string, required, tag = "1")]
    pub(crate) key: String,
    #[prost(string, required, tag = "2")]
    pub(crate) value: String,
}

impl Frame {
    /// Returns the value of a header.
    pub(crate) fn header(&self, key: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.key == key).map(|header| header.value.as_str())
    }

    fn new(service: i32, method: i32, headers: &[(&str, String)], payload: Vec<u8>) -> Self {
        let headers = headers.iter();
        Self {
            service,
            method,
            headers: headers
                .map(|(key, value)| Header { key: (*key).to_owned(), value: value.clone() })
                .collect(),
            payload: Some(payload),
            ..Self::default()
        }
    }

    /// Returns the answer to a ping, with the client's new configuration.
    pub(crate) fn pong(world: &World, service: i32) -> Self {
        let config = client_config(world).to_string().into_bytes();
        Self::new(service, CONTROL, &[("type", "pong".to_owned())], config)
    }

    /// One fragment of an event.
    pub(crate) fn event(
        id: &str,
        number: u64,
        service: i32,
        (sum, seq): (usize, usize),
        payload: &[u8],
    ) -> Self {
        let headers = [
            ("type", "event".to_owned()),
            ("message_id", id.to_owned()),
            ("sum", sum.to_string()),
            ("seq", seq.to_string()),
            ("trace_id", format!("trace-{id}")),
        ];
        let seq_id = number * 1000 + u64::try_from(seq).unwrap_or(0);
        let frame = Self::new(service, DATA, &headers, payload.to_vec());
        Self { seq_id, log_id: number, log_id_new: Some(format!("log-{id}")), ..frame }
    }
}

/// Returns the configuration of a client's connection.
pub(crate) fn client_config(world: &World) -> Value {
    let (nonce, interval) = world.options.reconnect;
    json!({
        "ReconnectCount": -1, "ReconnectInterval": interval, "ReconnectNonce": nonce,
        "PingInterval": world.options.ping_interval,
    })
}
