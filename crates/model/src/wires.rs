//! The table of wires.

use crate::{
    WireKind, chat::CompletionsWire, gemini::GeminiWire, messages::MessagesWire, ollama::OllamaWire,
    responses::ResponsesWire, wire::Wire,
};

/// Returns the wire of a kind.
pub(crate) fn wire_of(kind: WireKind) -> &'static dyn Wire {
    match kind {
        WireKind::Chat => &CompletionsWire,
        WireKind::Messages => &MessagesWire,
        WireKind::Gemini => &GeminiWire,
        WireKind::Responses => &ResponsesWire,
        WireKind::Ollama => &OllamaWire,
    }
}
