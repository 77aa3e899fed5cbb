//! Reads and writes files over the API, by the agent's paths. Decides which paths are valid and writable.
//! Symlinks are resolved inside the container, which contains only the mounts.

use super::{Aio, CALL_TIMEOUT, api_gone, exec, refused, wire};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use pudu_base::{DirEntry, SandboxError, ShellCommand};
use pudu_net::{read_body, reqwest::StatusCode};
use pudu_sandbox::Mount;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Component, Path},
};

/// Creates the parent folders of a file. The path is passed in the environment, so no character needs quoting.
const MAKE_FOLDER: &str = "mkdir -p -- \"$PUDU_FOLDER\"";

pub(super) async fn read(aio: &Aio, path: &str, limit: u64) -> Result<Vec<u8>, SandboxError> {
    find(aio, path)?;
    let mut url = aio.url("/v1/file/download");
    url.query_pairs_mut().append_pair("path", path);
    let answer = aio.0.http.get(url).timeout(CALL_TIMEOUT).send().await.map_err(api_gone)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(SandboxError::Missing { path: path.to_owned() }),
        status => return Err(refused(path, status, "cannot read the file")),
    }
    let size = answer.content_length().unwrap_or_default();
    let too_large = |size| SandboxError::TooLarge { path: path.to_owned(), size, limit };
    if size > limit {
        return Err(too_large(size));
    }
    let max = usize::try_from(limit).unwrap_or(usize::MAX);
    read_body(answer, max, api_gone, |size| too_large(size as u64)).await
}

pub(super) async fn write(aio: &Aio, path: &str, bytes: &[u8], append: bool) -> Result<(), SandboxError> {
    if find(aio, path)?.read_only {
        return Err(SandboxError::ReadOnly { path: path.to_owned() });
    }
    make_folder(aio, path).await?;
    let content = BASE64_STANDARD.encode(bytes);
    let request = wire::WriteRequest { file: path, content: &content, encoding: "base64", append };
    aio.call::<Value>("/v1/file/write", &request, CALL_TIMEOUT).await.map(drop)
}

/// Creates the parent folder of a file, because the API is not documented to do so.
async fn make_folder(aio: &Aio, path: &str) -> Result<(), SandboxError> {
    let Some(folder) = Path::new(path).parent().and_then(Path::to_str) else { return Ok(()) };
    let command = ShellCommand::new(MAKE_FOLDER.to_owned(), CALL_TIMEOUT);
    let done = exec::run_with(aio, &command, BTreeMap::from([("PUDU_FOLDER", folder)])).await?;
    match done.code {
        Some(0) => Ok(()),
        _ => Err(SandboxError::Refused(format!("cannot create {folder}: {}", done.stderr.trim()))),
    }
}

pub(super) async fn list(
    aio: &Aio,
    path: &str,
    depth: usize,
    limit: usize,
) -> Result<Vec<DirEntry>, SandboxError> {
    find(aio, path)?;
    let path = path.trim_end_matches('/');
    let request = wire::ListRequest {
        path,
        recursive: depth > 1,
        show_hidden: true,
        max_depth: depth,
        include_size: true,
    };
    let listed: wire::ListResult = aio.call("/v1/file/list", &request, CALL_TIMEOUT).await?;
    let levels =
        |entry: &DirEntry| Path::new(&entry.path).strip_prefix(path).map_or(0, |rest| rest.iter().count());
    let mut entries: Vec<DirEntry> = listed
        .files
        .into_iter()
        .map(|file| DirEntry {
            path: file.path.trim_end_matches('/').to_owned(),
            folder: file.is_directory,
            size: if file.is_directory { 0 } else { file.size.unwrap_or_default() },
        })
        .filter(|entry| (1..=depth).contains(&levels(entry)))
        .collect();
    entries.sort();
    entries.truncate(limit);
    Ok(entries)
}

/// Finds the mount of a path. Paths outside of all mounts are refused.
fn find<'a>(aio: &'a Aio, path: &str) -> Result<&'a Mount, SandboxError> {
    let parts = |part| matches!(part, Component::RootDir | Component::Normal(_) | Component::CurDir);
    let plain = path.starts_with('/') && Path::new(path).components().all(parts) && !path.contains('\0');
    let inside = |mount: &&Mount| Path::new(path).starts_with(&mount.agent);
    let found = aio.0.mounts.iter().filter(inside).max_by_key(|mount| mount.agent.len());
    found.filter(|_| plain).ok_or_else(|| SandboxError::Outside { path: path.to_owned() })
}
