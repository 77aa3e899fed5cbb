//! Query of a request that follows a run and may also stop it.

use crate::http::urlencoded::flag_of;

/// How to follow a run, and whether to stop it.
#[derive(Default)]
pub(crate) struct FollowQuery {
    pub(crate) stream_modes: Vec<String>,
    /// Whether the run stops when its reader disconnects.
    pub(crate) cancels: bool,
    pub(crate) action: Option<String>,
    /// Whether the response waits until the run has stopped.
    pub(crate) waits: bool,
}

impl FollowQuery {
    /// Parses a query, which may contain several modes.
    pub(crate) fn read(query: Option<&str>) -> Result<Self, String> {
        let mut parsed = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*key {
                "stream_mode" | "stream_mode[]" => parsed.stream_modes.push(value.into_owned()),
                "cancel_on_disconnect" => parsed.cancels = flag_of(&key, &value)?,
                "action" => parsed.action = Some(value.into_owned()),
                "wait" => parsed.waits = flag_of(&key, &value)?,
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Returns whether the request stops the run, now or when its reader disconnects.
    pub(crate) fn stops(&self) -> bool {
        self.action.is_some() || self.cancels
    }
}
