use super::*;
use crate::{
    Attachment, Channel,
    telegram::loopback::{Do, TelegramLoopback},
};
use serde_json::json;

/// Fetches a file whose size is `declared` in the message, `found` according to Telegram, and actually `real`.
/// Returns the result and the stored content.
async fn fetched(
    declared: Option<u64>,
    found: Option<u64>,
    real: usize,
    limit: u64,
) -> (Result<u64, SendError>, Option<usize>) {
    let server = TelegramLoopback::start(move |method, _, _| match method {
        "getfile" => Do::Result(json!({"file_id": "F", "file_path": "docs/a b.pdf", "file_size": found})),
        "docs/a%20b.pdf" => Do::Bytes(vec![b'x'; real]),
        _ => Do::Error(400, "Bad Request"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("a.pdf");
    let attachment = Attachment { handle: "F".into(), name: "a.pdf".into(), size: declared };
    let result = Channel::download(&server.telegram(), &attachment, &to, limit).await;
    (result, std::fs::read(to).ok().map(|bytes| bytes.len()))
}

#[tokio::test]
async fn a_file_of_just_the_limit_is_fetched() {
    assert_eq!(fetched(Some(1000), Some(1000), 1000, 1000).await, (Ok(1000), Some(1000)));
    assert_eq!(fetched(None, None, 1000, 1000).await, (Ok(1000), Some(1000)));
}

#[tokio::test]
async fn a_larger_file_is_refused_at_every_stage_and_leaves_nothing() {
    let too_large = (Err(SendError::TooLarge { limit: 1000 }), None);
    assert_eq!(fetched(Some(1001), None, 1, 1000).await, too_large);
    assert_eq!(fetched(None, Some(1001), 1, 1000).await, too_large);
    assert_eq!(fetched(None, None, 1001, 1000).await, too_large);
    let most = fetched(Some(20_000_001), None, 1, u64::MAX).await;
    assert_eq!(most, (Err(SendError::TooLarge { limit: 20_000_000 }), None));
}

#[tokio::test]
async fn telegrams_own_limit_is_reported_as_too_large() {
    let server = TelegramLoopback::start(|_, _, _| Do::Error(400, "Bad Request: file is too big")).await;
    let attachment = Attachment { handle: "F".into(), name: "a".into(), size: None };
    let result = Channel::download(&server.telegram(), &attachment, Path::new("/nowhere/a"), u64::MAX).await;
    assert_eq!(result, Err(SendError::TooLarge { limit: CAPABILITIES.max_download_bytes }));
}
