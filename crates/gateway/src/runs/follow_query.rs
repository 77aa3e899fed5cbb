//! Query of a request that follows a run, which may stop it too.

use crate::http::urlencoded::flag_of;

/// How a run is followed, and stopped before that.
#[derive(Default)]
pub(crate) struct FollowQuery {
    pub(crate) stream_modes: Vec<String>,
    /// Whether the run is stopped when its reader goes away.
    pub(crate) cancels: bool,
    pub(crate) action: Option<String>,
    /// Whether the run has stopped when the answer comes.
    pub(crate) waits: bool,
}

impl FollowQuery {
    /// Reads a query, in which a mode may occur several times.
    pub(crate) fn read(query: Option<&str>) -> Result<Self, String> {
        let mut asked = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*key {
                "stream_mode" | "stream_mode[]" => asked.stream_modes.push(value.into_owned()),
                "cancel_on_disconnect" => asked.cancels = flag_of(&key, &value)?,
                "action" => asked.action = Some(value.into_owned()),
                "wait" => asked.waits = flag_of(&key, &value)?,
                _ => {}
            }
        }
        Ok(asked)
    }

    /// Returns whether a run is stopped, now or later.
    pub(crate) fn stops(&self) -> bool {
        self.action.is_some() || self.cancels
    }
}
