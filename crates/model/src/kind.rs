//! The wire protocols.

/// A protocol of model providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireKind {
    /// OpenAI's chat completions, which most other providers have adopted.
    Chat,
    /// Anthropic's Messages API.
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's Responses API.
    Responses,
    /// Ollama's own chat API.
    Ollama,
}

impl WireKind {
    /// All wires.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::Chat, Self::Messages, Self::Gemini, Self::Responses, Self::Ollama];

    /// Returns the wire's name in the origin of provider parts, which threads store.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
            Self::Responses => "responses",
            Self::Ollama => "ollama",
        }
    }
}
