//! Transfers threads to another user, with their files and rows.
//!
//! The files move first. After a crash in between, they are already where the thread's row will point. No run uses the
//! thread before its row is updated, because the daemon repeats the transfer before it resumes other work.

use crate::{RunManager, run_registry::LiveRun};
use pudu_base::{ThreadFolder, ThreadId, UserId};
use pudu_store::{Adoption, StoreError, crash};

impl RunManager {
    /// Transfers all threads that are due to change owner. Threads that a run is using are left for the next call.
    pub async fn adopt_threads(&self) {
        if let Err(error) = self.adopt_left().await {
            tracing::warn!(%error, "failed to transfer threads to another user; trying again later");
        }
    }

    async fn adopt_left(&self) -> Result<(), StoreError> {
        for adoption in self.0.agent.db().adoptions().await? {
            let (mut given, mut left) = (0, 0);
            for thread in self.0.agent.db().threads_to_adopt(&adoption).await? {
                let is_given = match self.open_alone(&thread) {
                    Ok(live) => self.adopt_thread(live, adoption.clone()).await?,
                    Err(_) => false,
                };
                if is_given { given += 1 } else { left += 1 }
            }
            if left == 0 {
                self.0.agent.db().adopted(&adoption).await?;
            }
            if given > 0 || left == 0 {
                tracing::info!(source = %adoption.source, target = %adoption.target, given, left, "transferred threads to another user");
            }
        }
        Ok(())
    }

    /// Transfers one thread. Returns `false` if that has to wait.
    async fn adopt_thread(&self, live: LiveRun, adoption: Adoption) -> Result<bool, StoreError> {
        let (client, thread) = (self.clone(), live.thread.clone());
        let work = async move {
            // Block uploads between moving the files and updating the row.
            let _still = client.0.agent.folders().hold_uploads().await;
            if !client.0.agent.db().is_unused(&thread, i64::MAX).await? {
                // A crash may have left the files with the other user. The thread's runs need them.
                client.move_files(&thread, &adoption.target, &adoption.source).await;
                return Ok(false);
            }
            if !client.move_files(&thread, &adoption.source, &adoption.target).await {
                return Ok(false);
            }
            crash::point("adoption.files");
            let adopted = client.0.agent.db().adopt_thread(&adoption, &thread).await;
            // After a failed write its result is unknown. The next attempt finds the files here.
            if matches!(adopted, Ok(false)) {
                client.move_files(&thread, &adoption.target, &adoption.source).await;
            }
            adopted
        };
        self.in_turn(live, work).await?
    }

    async fn move_files(&self, thread: &ThreadId, from: &UserId, to: &UserId) -> bool {
        let folder = ThreadFolder { owner: from.clone(), thread: thread.clone() };
        let (folders, target) = (self.0.agent.folders().clone(), to.clone());
        let moved = pudu_kit::blocking::run(move || folders.hand_over(&folder, &target)).await;
        let failed = moved.map_err(std::io::Error::other).flatten().err();
        if let Some(error) = &failed {
            tracing::warn!(%thread, %error, "failed to move the files of a thread to another user; trying again later");
        }
        failed.is_none()
    }
}
