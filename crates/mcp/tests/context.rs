//! The context of calls in tests, which have no sandbox.

use pudu_base::{BoxFuture, DirEntry, Exec, NoCallHost, Sandbox, SandboxError, ShellCommand, ToolCx};
use std::sync::Arc;

pub(crate) fn cx() -> ToolCx {
    ToolCx {
        allowed_tools: None,
        thread: "t".into(),
        run: "r".into(),
        call: "c".into(),
        sandbox: Arc::new(NoSandbox),
        marks: Arc::default(),
        events: Arc::new(|_| {}),
        host: Arc::new(NoCallHost),
    }
}

/// MCP servers do not use the thread's sandbox.
struct NoSandbox;

impl Sandbox for NoSandbox {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        unreachable!()
    }

    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        unreachable!()
    }

    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        unreachable!()
    }

    fn list<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        unreachable!()
    }
}
