//! The frames of the long connection, in protobuf (proto2).

/// Method of a control frame: ping or pong.
pub(super) const CONTROL: i32 = 0;
/// Method of a frame with an event or an acknowledgement.
pub(super) const DATA: i32 = 1;

/// A frame. Fields are `required` so that zeros are encoded, which strict readers expect.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FeishuFrame {
    #[prost(uint64, required, tag = "1")]
    pub(super) seq_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) log_id: u64,
    #[prost(int32, required, tag = "3")]
    pub(super) service: i32,
    #[prost(int32, required, tag = "4")]
    pub(super) method: i32,
    #[prost(message, repeated, tag = "5")]
    pub(super) headers: Vec<FrameHeader>,
    #[prost(string, optional, tag = "6")]
    pub(super) payload_encoding: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub(super) payload_type: Option<String>,
    #[prost(bytes = "vec", optional, tag = "8")]
    pub(super) payload: Option<Vec<u8>>,
    #[prost(string, optional, tag = "9")]
    pub(super) log_id_new: Option<String>,
}

/// A header of a frame.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FrameHeader {
    #[prost(string, required, tag = "1")]
    pub(super) key: String,
    #[prost(string, required, tag = "2")]
    pub(super) value: String,
}

impl FrameHeader {
    pub(super) fn new(key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into() }
    }
}

impl FeishuFrame {
    /// Returns the value of a header.
    pub(super) fn header(&self, key: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.key == key).map(|header| header.value.as_str())
    }
}
