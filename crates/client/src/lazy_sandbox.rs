//! A thread's sandbox as long as a run needs it: asked for by the first tool that does, and given back at the
//! end.

use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, SandboxProvider, ShellCommand, ThreadId};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A sandbox that is there when it is used.
pub(crate) struct LazySandbox {
    provider: Arc<dyn SandboxProvider>,
    thread: ThreadId,
    /// The folders of skills that it shows; all if not said.
    shelf: Option<Vec<String>>,
    place: OnceCell<Arc<dyn Sandbox>>,
}

impl LazySandbox {
    pub(crate) fn new(
        provider: Arc<dyn SandboxProvider>,
        thread: ThreadId,
        shelf: Option<Vec<String>>,
    ) -> Self {
        Self { provider, thread, shelf, place: OnceCell::new() }
    }

    /// Gives it back, if it was asked for.
    pub(crate) async fn give_back(&self) {
        if self.place.initialized() {
            self.provider.release(&self.thread).await;
        }
    }

    async fn place(&self) -> Result<&dyn Sandbox, SandboxError> {
        let ask = || match &self.shelf {
            Some(shelf) => self.provider.acquire_with(&self.thread, shelf),
            None => self.provider.acquire(&self.thread),
        };
        let place = self.place.get_or_try_init(ask).await?;
        Ok(&**place)
    }
}

impl Sandbox for LazySandbox {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move { self.place().await?.exec(command).await })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(async move { self.place().await?.read(path, limit).await })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move { self.place().await?.write(path, bytes, append).await })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(async move { self.place().await?.list(path, depth, limit).await })
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        Box::pin(async move { self.place().await?.measure(path).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Shell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts who comes and goes; the first time it has nothing to give.
    #[derive(Default)]
    struct Counter {
        asked: AtomicUsize,
        back: AtomicUsize,
    }

    struct Empty;

    impl Sandbox for Empty {
        fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
            Box::pin(std::future::pending())
        }
        fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
        fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
            Box::pin(async { Ok(()) })
        }
        fn list<'a>(
            &'a self,
            _: &'a str,
            _: usize,
            _: usize,
        ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    impl SandboxProvider for Counter {
        fn acquire<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
            let first = self.asked.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                match first {
                    true => Err(SandboxError::Refused("not yet".to_owned())),
                    false => Ok(Arc::new(Empty) as Arc<dyn Sandbox>),
                }
            })
        }
        fn release<'a>(&'a self, _: &'a ThreadId) -> BoxFuture<'a, ()> {
            self.back.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(()))
        }
        fn shell(&self) -> Option<Shell> {
            None
        }
    }

    #[tokio::test]
    async fn a_sandbox_is_asked_for_once_when_it_is_needed_and_given_back_if_it_was() {
        let provider = Arc::new(Counter::default());
        let counts = || (provider.asked.load(Ordering::Relaxed), provider.back.load(Ordering::Relaxed));
        let lazy = LazySandbox::new(provider.clone(), "t".into(), None);
        lazy.give_back().await;
        assert_eq!(counts(), (0, 0));
        // A failure is not kept.
        assert!(lazy.read("/mnt/user-data/a", 1).await.is_err());
        lazy.read("/mnt/user-data/a", 1).await.unwrap();
        lazy.list("/mnt/user-data", 1, 1).await.unwrap();
        assert_eq!(counts(), (2, 0));
        lazy.give_back().await;
        assert_eq!(counts(), (2, 1));
    }
}
