//! What a call asks for is bounded before anything is done for it.

use super::{bench, cx};
use crate::{ToolLimits, tool};
use pudu_base::{BoxFuture, DirEntry, Exec, Sandbox, SandboxError, ShellCommand, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;

const ROOT: &str = "/mnt/user-data/workspace";

/// Names with so many lists in braces, one in the other.
fn deep(lists: usize) -> String {
    format!("{}a{}", "{".repeat(lists), "}".repeat(lists))
}

#[tokio::test]
async fn a_pattern_that_is_too_long_or_too_deep_is_refused_before_it_is_read() {
    let bench = bench().await;
    let glob = |pattern: &str| json!({"pattern": pattern, "path": ROOT});
    let grep = |pattern: &str| json!({"pattern": "x", "glob": pattern, "path": ROOT});
    for (name, args) in [
        ("glob", glob(&deep(30_000))),
        ("glob", glob(&deep(3_000))),
        ("glob", glob(&deep(300))),
        ("glob", glob(&"[}]{".repeat(200))),
        ("glob", glob(&"*".repeat(1 << 20))),
        ("grep", grep(&deep(30_000))),
        ("grep", grep(&deep(3_000))),
        ("grep", glob(&"(a|".repeat(30_000))),
        ("grep", glob(&"\\pL{900}".repeat(1 << 17))),
        ("grep", json!({"pattern": "(".repeat(1 << 20), "path": ROOT, "literal": true})),
    ] {
        let Err(ToolError(said)) = bench.output(name, args).await else { panic!("{name} took it") };
        assert!(said.contains("pattern"), "{name}: {said}");
        assert!(said.len() < 300, "{name}: {} bytes are said", said.len());
    }
    // What people write is taken.
    bench.sandbox.write(&format!("{ROOT}/a.py"), b"x", false).await.unwrap();
    for pattern in ["**/*.{py,{rs,ts},md}", "{a,b}.{py,rs}", "[a-c].p?"] {
        bench.check("glob", glob(pattern), &format!("1. {ROOT}/a.py")).await;
    }
}

#[tokio::test]
async fn a_replacement_that_would_become_too_large_is_refused_before_it_is_made() {
    let bench = bench().await;
    let file = format!("{ROOT}/a.txt");
    bench.sandbox.write(&file, "a".repeat(1 << 20).as_bytes(), false).await.unwrap();
    bench.output("read_file", json!({"path": file})).await.unwrap();
    let replace = |new: &str| json!({"path": file, "old_str": "a", "new_str": new, "replace_all": true});
    let large = format!(
        "Error: {file} would have 4194304000 bytes, more than the limit of 16777216 for text files; \
         write less, or use bash"
    );
    bench.check("str_replace", replace(&"x".repeat(4_000)), &large).await;
    bench.check("str_replace", replace("xy"), "OK").await;
    bench.check("str_replace", replace(""), &format!("Error: old_str does not occur in {file}")).await;
    let write = json!({"path": format!("{ROOT}/b.txt"), "content": "x".repeat((16 << 20) + 1)});
    let large = "would have 16777217 bytes, more than the limit of 16777216";
    let Err(ToolError(said)) = bench.output("write_file", write).await else { panic!("it was written") };
    assert!(said.contains(large), "{said}");
}

/// A folder whose names take more room than a tool may.
struct Endless;

impl Sandbox for Endless {
    fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(std::future::pending())
    }
    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        Box::pin(async move { Err(SandboxError::TooLarge { path: path.to_owned(), size: u64::MAX, limit }) })
    }
    fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(std::future::pending())
    }
    fn list<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        Box::pin(std::future::pending())
    }
}

/// What a tool says of something endless.
async fn said(name: &str, args: Value) -> String {
    let cx = cx(Arc::new(Endless), Arc::default());
    tool(name, ToolLimits::default()).unwrap().call(args, &cx).await.unwrap_err().0
}

#[tokio::test]
async fn what_is_too_large_to_be_read_is_named_with_its_size() {
    let file = format!("{ROOT}/a");
    for (name, args) in [
        ("read_file", json!({"path": file})),
        ("view_image", json!({"image_path": file})),
        ("write_file", json!({"path": file, "content": "x"})),
        ("str_replace", json!({"path": file, "old_str": "a", "new_str": "b"})),
    ] {
        assert!(said(name, args).await.starts_with(&format!("{file} has ")), "{name}");
    }
}

#[tokio::test]
async fn what_people_are_asked_and_what_is_to_be_done_is_short() {
    let bench = bench().await;
    let args =
        json!({"question": "Which?", "clarification_type": "suggestion", "options": ["x".repeat(301)]});
    bench.check("ask_clarification", args, "Error: an option may have at most 300 characters").await;
    let todos = json!({"todos": [{"content": "x".repeat(1_001), "status": "pending"}]});
    bench.check("write_todos", todos, "Error: an entry has at most 1000 characters").await;
}
