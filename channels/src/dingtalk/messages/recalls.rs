//! Messages to recall. Each recall is repeated until DingTalk confirms it, also after a restart, up to a limit.

use super::DingMessages;
use crate::{
    SendError,
    dingtalk::facts::{DingTalkCase, DingTalkError},
    transport::CallError,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum number of attempts to recall one message: about ten minutes, including the pauses.
const TRIES: u8 = 15;

/// A message to recall. Stored: later versions must still read this format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recall {
    key: String,
    tries: u8,
    /// Whether an attempt was just made. The next round then skips it.
    #[serde(skip)]
    fresh: bool,
}

impl Recall {
    pub(super) fn failed_once(key: &str) -> Self {
        Self { key: key.to_owned(), tries: 1, fresh: true }
    }
}

impl DingMessages {
    pub(super) async fn recall(&self, key: &str) -> Result<(), DingTalkError> {
        let recalled = self.robot.recall(key).await;
        if matches!(recalled, Err(CallError::Refused(_) | CallError::Special(DingTalkCase::Forbidden(_)))) {
            self.state.record_no_recall();
        }
        recalled
    }

    /// Recalls the listed messages: placeholders and questions. Fails while any message remains.
    pub(super) async fn recall_all(&mut self) -> Result<(), SendError> {
        let mut left: Option<Duration> = None;
        for mut recall in std::mem::take(&mut self.recalls) {
            if !std::mem::take(&mut recall.fresh) {
                match self.recall(&recall.key).await {
                    Ok(()) => continue,
                    Err(error) if recall.tries >= TRIES => {
                        tracing::warn!(%error, "gave up recalling message");
                        continue;
                    }
                    Err(error) => {
                        recall.tries += 1;
                        left = left.max(error.wait());
                    }
                }
            }
            self.recalls.push(recall);
        }
        if self.recalls.is_empty() { Ok(()) } else { Err(SendError::Untidy { after: left }) }
    }
}
