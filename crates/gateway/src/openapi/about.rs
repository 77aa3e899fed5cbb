//! The description of one operation: a sentence, its answers, and the statuses of its errors.

/// A description of an operation.
pub(crate) struct RouteAbout {
    pub(super) summary: &'static str,
    pub(super) answers: Vec<(u16, Content)>,
    pub(super) errors: Vec<u16>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// Content of an answer.
pub(super) enum Content {
    /// No body.
    Nothing,
    /// JSON of a type in the notation of `shapes.rs`.
    Json(&'static str),
    /// Server-sent events.
    Events,
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// Begins a description with a sentence.
pub(crate) const fn about(summary: &'static str) -> RouteAbout {
    RouteAbout { summary, answers: Vec::new(), errors: Vec::new(), headers: Vec::new() }
}

impl From<&'static str> for RouteAbout {
    fn from(summary: &'static str) -> Self {
        about(summary)
    }
}

impl RouteAbout {
    /// The operation answers 200 with JSON of this type, in the notation of `shapes.rs`.
    pub(crate) fn gives(self, shape: &'static str) -> Self {
        self.with(200, Content::Json(shape))
    }

    /// The operation answers this status with JSON of this type.
    pub(crate) fn gives_with(self, status: u16, shape: &'static str) -> Self {
        self.with(status, Content::Json(shape))
    }

    /// The operation answers this status without a body.
    pub(crate) fn gives_nothing(self, status: u16) -> Self {
        self.with(status, Content::Nothing)
    }

    /// The operation answers 200 with server-sent events.
    pub(crate) fn streams(self) -> Self {
        self.with(200, Content::Events)
    }

    /// The operation answers this status with bytes.
    pub(crate) fn sends(self, status: u16, media_type: &'static str) -> Self {
        self.with(status, Content::Bytes(media_type))
    }

    /// The operation answers 200 or 206 with a file, or 304, as the headers about ranges and versions say.
    pub(crate) fn sends_file(self) -> Self {
        self.sends(200, "*/*")
            .sends(206, "*/*")
            .gives_nothing(304)
            .fails(&[416])
            .reads("Range", "The wanted bytes, one range.")
            .reads("If-None-Match", "The `ETag` of what the client has.")
    }

    /// The operation reads this header, which may be left out.
    pub(crate) fn reads(mut self, header: &'static str, meaning: &'static str) -> Self {
        self.headers.push((header, meaning));
        self
    }

    /// The operation may refuse with these statuses, besides those of its proof and of its parameters.
    pub(crate) fn fails(mut self, statuses: &[u16]) -> Self {
        self.errors.extend(statuses);
        self
    }

    fn with(mut self, status: u16, content: Content) -> Self {
        self.answers.push((status, content));
        self
    }
}
