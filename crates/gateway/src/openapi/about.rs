//! The description of an operation: a sentence, its responses, and the statuses of its errors.

/// A description of an operation.
pub(crate) struct RouteAbout {
    pub(super) summary: &'static str,
    pub(super) answers: Vec<(u16, Content)>,
    pub(super) errors: Vec<u16>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
}

/// Content of a response.
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
    /// Adds a 200 response with JSON of this type, in the notation of `shapes.rs`.
    pub(crate) fn gives(self, shape: &'static str) -> Self {
        self.with(200, Content::Json(shape))
    }

    /// Adds a response with this status and JSON of this type.
    pub(crate) fn gives_with(self, status: u16, shape: &'static str) -> Self {
        self.with(status, Content::Json(shape))
    }

    /// Adds a response with this status and no body.
    pub(crate) fn gives_nothing(self, status: u16) -> Self {
        self.with(status, Content::Nothing)
    }

    /// Adds a 200 response with server-sent events.
    pub(crate) fn streams(self) -> Self {
        self.with(200, Content::Events)
    }

    /// Adds a response with this status and bytes.
    pub(crate) fn sends(self, status: u16, media_type: &'static str) -> Self {
        self.with(status, Content::Bytes(media_type))
    }

    /// Adds 200 and 206 responses with a file, and 304, with the headers about ranges and versions.
    pub(crate) fn sends_file(self) -> Self {
        self.sends(200, "*/*")
            .sends(206, "*/*")
            .gives_nothing(304)
            .fails(&[416])
            .reads("Range", "The requested bytes, one range.")
            .reads("If-None-Match", "The `ETag` of the client's copy.")
    }

    /// Adds an optional request header.
    pub(crate) fn reads(mut self, header: &'static str, meaning: &'static str) -> Self {
        self.headers.push((header, meaning));
        self
    }

    /// Adds error statuses, in addition to those of authentication and parameters.
    pub(crate) fn fails(mut self, statuses: &[u16]) -> Self {
        self.errors.extend(statuses);
        self
    }

    fn with(mut self, status: u16, content: Content) -> Self {
        self.answers.push((status, content));
        self
    }
}
