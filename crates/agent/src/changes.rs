//! Records a run's changes to the files of its thread. Runs without calls that may write have no overhead.

use crate::{Agent, AgentSetup};
use pudu_base::{RunId, SandboxError, ThreadFolder, ThreadId};
use pudu_sandbox::ChangeRecords;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Recorder of one run.
pub(crate) struct ChangeRecorder {
    records: ChangeRecords,
    run: RunId,
    /// Subfolder of the outputs for long results, which are written by the daemon.
    results: Arc<str>,
    begun: OnceCell<()>,
}

impl ChangeRecorder {
    /// Creates the recorder of a run, if its sandbox uses files on the host.
    pub(crate) fn for_run(
        agent: &Agent,
        setup: &AgentSetup,
        folder: &ThreadFolder,
        run: &RunId,
    ) -> Option<Self> {
        setup.sandboxes.keeps_files_here().then(|| Self {
            records: agent.0.folders.changes(folder),
            run: run.clone(),
            results: setup.results_folder.clone(),
            begun: OnceCell::new(),
        })
    }

    /// Records the state of the files before the first call; all calls wait for this. If it fails, the run continues
    /// without a record of its changes.
    pub(crate) async fn begin(&self) {
        let begin = async || {
            if let Err(error) = self.records.begin(&self.run, &self.results).await {
                tracing::warn!(run = %self.run, %error, "failed to record the state of files before a run changes them");
            }
        };
        self.begun.get_or_init(begin).await;
    }

    /// Records the changes, if there may be any.
    pub(crate) async fn finish(&self, resumed: bool) {
        if !resumed && !self.begun.initialized() {
            return;
        }
        if let Err(error) = self.records.finish(&self.run, &self.results).await {
            tracing::warn!(run = %self.run, %error, "failed to record file changes");
        }
    }
}

impl Agent {
    /// Returns the records of runs' changes to a thread's files; `None` if sandboxes keep their files elsewhere.
    ///
    /// # Errors
    /// If the store fails.
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
