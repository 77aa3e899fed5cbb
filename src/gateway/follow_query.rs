//! Query of a request that follows a run, which may stop it too.

use super::query::flag;

/// How a run is followed, and stopped before that.
#[derive(Default)]
pub(super) struct FollowQuery {
    pub(super) stream_modes: Vec<String>,
    cancel_on_disconnect: Option<String>,
    pub(super) action: Option<String>,
    wait: Option<String>,
}

impl FollowQuery {
    /// Reads a query, in which a mode may stand several times.
    pub(super) fn read(query: Option<&str>) -> Self {
        let mut asked = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*key {
                "stream_mode" | "stream_mode[]" => asked.stream_modes.push(value.into_owned()),
                "cancel_on_disconnect" => asked.cancel_on_disconnect = Some(value.into_owned()),
                "action" => asked.action = Some(value.into_owned()),
                "wait" => asked.wait = Some(value.into_owned()),
                _ => {}
            }
        }
        asked
    }

    /// Returns whether the run is stopped when its reader goes away.
    pub(super) fn cancels(&self) -> bool {
        is_set(self.cancel_on_disconnect.as_ref())
    }

    /// Returns whether the run has stopped when the answer comes.
    pub(super) fn waits(&self) -> bool {
        is_set(self.wait.as_ref())
    }

    /// Returns whether a run is stopped, now or later.
    pub(super) fn stops(&self) -> bool {
        self.action.is_some() || self.cancels()
    }
}

fn is_set(text: Option<&String>) -> bool {
    text.and_then(|text| flag(text)).unwrap_or(false)
}
