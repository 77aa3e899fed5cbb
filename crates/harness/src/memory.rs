//! Memory budget of the files that tools read and of the images that models see: bounded per run and for all runs of
//! the process. A call that finds no room waits for others to finish.
//!
//! Deliberately absent: the memory of commands and servers. Those are processes with limits of their own, and each tool
//! bounds how much of their output it reads.

use crate::scale::{ImageProblem, ScaledImage, scale};
use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand, Variable};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of bytes that the calls of one run hold at once; at least the cost of the largest readable file.
const MAX_RUN_BYTES: usize = 64 << 20;
/// Maximum number of bytes that the calls of all runs hold at once.
const MAX_ALL_BYTES: usize = 192 << 20;
/// Maximum number of bytes that the images of all requests in progress hold.
const MAX_IMAGE_BYTES: usize = 192 << 20;
/// Number of copies of a file that a call holds at once: as read, as text, as changed text, and as written.
const FILE_COPIES: usize = 4;
/// Number of copies of an image that a request holds at once: as read, as scaled, and as written.
const IMAGE_COPIES: usize = 3;
/// Number of bytes requested before a file's size is known.
const FIRST_BYTES: u64 = 256 << 10;

/// Memory budget of one run's calls, which is part of the budget of all runs.
#[derive(Clone, Debug)]
pub struct Memory {
    all: Arc<Semaphore>,
    run: Arc<Semaphore>,
    /// Budget of the images in model requests: separate, because a model call takes long.
    images: Arc<Semaphore>,
    /// One permit: scaling an image takes many times its file's bytes.
    scaling: Arc<Semaphore>,
}

impl Default for Memory {
    fn default() -> Self {
        let pool = |bytes| Arc::new(Semaphore::new(bytes));
        Self {
            all: pool(MAX_ALL_BYTES),
            run: pool(MAX_RUN_BYTES),
            images: pool(MAX_IMAGE_BYTES),
            scaling: pool(1),
        }
    }
}

impl Memory {
    /// Returns the budget of another run, out of the same total.
    #[must_use]
    pub fn for_run(&self) -> Self {
        Self { run: Arc::new(Semaphore::new(MAX_RUN_BYTES)), ..self.clone() }
    }

    /// Waits until there is room for a file.
    async fn hold(&self, bytes: u64) -> ReservedMemory {
        let bytes = copies(bytes, FILE_COPIES, MAX_RUN_BYTES);
        // Takes the run's own budget first, so that waiting for it holds nothing that other runs need.
        let run = self.run.clone().acquire_many_owned(bytes).await.ok();
        ReservedMemory { _run: run, _all: self.all.clone().acquire_many_owned(bytes).await.ok() }
    }

    /// Scales an image for a model on a blocking thread, one at a time.
    pub(crate) async fn scale(&self, bytes: Vec<u8>) -> Result<ScaledImage, ImageProblem> {
        let permit = self.scaling.clone().acquire_owned().await;
        // The permit moves into the task, which cannot be cancelled.
        let work = tokio::task::spawn_blocking(move || {
            let scaled = scale(bytes);
            drop(permit);
            scaled
        });
        // A decoder panics only on a file that is not an image.
        work.await.unwrap_or(Err(ImageProblem::Damaged))
    }

    /// Waits until there is room for the images of a request.
    pub(crate) async fn hold_images(&self, bytes: u64) -> ReservedMemory {
        let bytes = copies(bytes, IMAGE_COPIES, MAX_IMAGE_BYTES);
        ReservedMemory { _run: None, _all: self.images.clone().acquire_many_owned(bytes).await.ok() }
    }
}

/// Returns the size of a number of copies, at most `max`.
fn copies(bytes: u64, count: usize, max: usize) -> u32 {
    let bytes = usize::try_from(bytes).unwrap_or(max).saturating_mul(count).min(max);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Reserved memory, released when this is dropped.
pub(crate) struct ReservedMemory {
    _run: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// A sandbox for one call, whose reads wait for memory and whose commands get variables. Until it is dropped, a call
/// holds the memory of the largest file that it has read: no tool keeps one file while it reads the next.
pub(crate) struct CallSandbox {
    sandbox: Arc<dyn Sandbox>,
    variables: Vec<Variable>,
    memory: Memory,
    held: Mutex<Option<(u64, ReservedMemory)>>,
}

impl CallSandbox {
    pub(crate) fn new(sandbox: Arc<dyn Sandbox>, variables: Vec<Variable>, memory: Memory) -> Self {
        Self { sandbox, variables, memory, held: Mutex::default() }
    }

    /// Reserves memory for `bytes`. A smaller reservation is released before waiting for more: two calls that each held
    /// a part and waited for the remainder would deadlock.
    async fn hold(&self, bytes: u64) {
        let held = |_: ()| self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held(()).as_ref().is_some_and(|(enough, _)| *enough >= bytes) {
            return;
        }
        drop(held(()).take());
        let more = self.memory.hold(bytes).await;
        *held(()) = Some((bytes, more));
    }
}

impl Sandbox for CallSandbox {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        let variables = command.variables.iter().chain(&self.variables).cloned().collect();
        let command = ShellCommand { variables, ..command.clone() };
        Box::pin(async move { self.sandbox.exec(&command).await })
    }

    /// Most files are small, and a larger one reports its size: so memory is reserved for the actual size instead of
    /// the limit.
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(async move {
            let mut max_bytes = limit.min(FIRST_BYTES);
            loop {
                self.hold(max_bytes).await;
                match self.sandbox.read(path, max_bytes).await {
                    Err(SandboxError::TooLarge { size, .. }) if size <= limit && max_bytes < limit => {
                        // If the file grows in the meantime, memory for it is requested again, each time twice as much.
                        max_bytes = size.max(max_bytes.saturating_mul(2)).min(limit);
                    }
                    Err(SandboxError::TooLarge { path, size, .. }) => {
                        return Err(SandboxError::TooLarge { path, size, limit });
                    }
                    read => return read,
                }
            }
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        self.sandbox.write(path, bytes, append)
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        self.sandbox.list(path, depth, limit)
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        self.sandbox.measure(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::SizedFiles;
    use std::sync::atomic::Ordering;

    /// Starts `calls` concurrent reads of a file of `mib` MiB in each of `runs` runs, and holds all that succeed.
    /// Returns how many did at once.
    async fn at_once(runs: usize, calls: usize, mib: u64) -> u64 {
        let (files, all) = (Arc::new(SizedFiles::default()), Memory::default());
        let name = mib.to_string();
        let sandboxes: Vec<CallSandbox> = (0..runs)
            .flat_map(|_| {
                let (memory, files) = (all.for_run(), files.clone());
                (0..calls).map(move |_| CallSandbox::new(files.clone(), Vec::new(), memory.clone()))
            })
            .collect();
        let reads = sandboxes.iter().map(|sandbox| sandbox.read(&name, 20 << 20));
        let reads = futures_util::future::join_all(reads);
        tokio::time::timeout(std::time::Duration::from_secs(1), reads).await.ok();
        files.0.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn memory_of_read_files_is_bounded_per_run_and_for_all_runs() {
        for (runs, calls, mib, expect) in
            [(1, 40, 16, 1), (1, 40, 0, 40), (1, 40, 4, 4), (10, 1, 16, 3), (10, 40, 16, 3), (1, 1, 20, 1)]
        {
            assert_eq!(at_once(runs, calls, mib).await, expect, "{runs} runs, {calls} calls, {mib} MiB");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn held_memory_is_released_and_two_growing_calls_do_not_deadlock() {
        let (files, all) = (Arc::new(SizedFiles::default()), Memory::default());
        let two: Vec<CallSandbox> =
            (0..2).map(|_| CallSandbox::new(files.clone(), Vec::new(), all.clone())).collect();
        for sandbox in &two {
            sandbox.read("8", 20 << 20).await.unwrap();
        }
        let [first, second] = &two[..] else { unreachable!() };
        let (one, _) = tokio::join!(first.read("16", 20 << 20), async {
            let second = second.read("16", 20 << 20);
            tokio::time::timeout(std::time::Duration::from_secs(1), second).await.ok();
        });
        assert!(one.is_ok());
        drop(two);
        assert_eq!(
            (all.run.available_permits(), all.all.available_permits()),
            (MAX_RUN_BYTES, MAX_ALL_BYTES)
        );
        let late = CallSandbox::new(files, Vec::new(), all);
        let error = late.read("30", 20 << 20).await.unwrap_err().to_string();
        assert_eq!(error, "30 has 31457280 bytes, more than the 20971520 that can be read at once");
    }
}
