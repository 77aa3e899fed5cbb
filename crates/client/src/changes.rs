//! Records a run's changes to the files of its thread. A run without calls that may write costs nothing.

use crate::{AgentSetup, Client};
use pudu_base::{RunId, SandboxError, ThreadFolder, ThreadId};
use pudu_sandbox::ChangeRecords;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Recorder of one run.
pub(crate) struct ChangeRecorder {
    records: ChangeRecords,
    run: RunId,
    /// Folder of the outputs with long results, which the daemon writes.
    results: Arc<str>,
    begun: OnceCell<()>,
}

impl ChangeRecorder {
    /// Makes the recorder of a run, if its sandbox works on files of this machine.
    pub(crate) fn for_run(
        client: &Client,
        setup: &AgentSetup,
        folder: &ThreadFolder,
        run: &RunId,
    ) -> Option<Self> {
        setup.sandboxes.keeps_files_here().then(|| Self {
            records: client.0.folders.changes(folder),
            run: run.clone(),
            results: setup.results_folder.clone(),
            begun: OnceCell::new(),
        })
    }

    /// Records the state of the files at the first call; all calls wait for that. If it fails, the run continues
    /// without a record of its changes.
    pub(crate) async fn begin(&self) {
        let begin = async || {
            if let Err(error) = self.records.begin(&self.run, &self.results).await {
                tracing::warn!(run = %self.run, %error, "failed to look at files before a run changes them");
            }
        };
        self.begun.get_or_init(begin).await;
    }

    /// Records the changes, if something may have been changed.
    pub(crate) async fn finish(&self, goes_on: bool) {
        if !goes_on && !self.begun.initialized() {
            return;
        }
        if let Err(error) = self.records.finish(&self.run, &self.results).await {
            tracing::warn!(run = %self.run, %error, "failed to record changes of files");
        }
    }
}

impl Client {
    /// Returns the records of runs' changes to a thread's files; `None` where sandboxes keep their files elsewhere.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn change_records(&self, thread: &ThreadId) -> Result<Option<ChangeRecords>, SandboxError> {
        if !self.setup().sandboxes.keeps_files_here() {
            return Ok(None);
        }
        Ok(Some(self.0.folders.changes(&self.files_folder(thread).await?)))
    }

    /// Removes the record of a run's changes. A failure is logged: retention removes the record later.
    pub async fn forget_changes(&self, thread: &ThreadId, run: &RunId) {
        let forget = async {
            match self.change_records(thread).await? {
                Some(records) => records.remove(run).await,
                None => Ok(()),
            }
        };
        if let Err(error) = forget.await {
            tracing::warn!(%run, %error, "failed to remove the changes of a run");
        }
    }
}
