use super::*;
use crate::{
    Address, BoxFuture, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError, ReplyTarget,
    reply::{Capabilities, EditOutcome, MessageDraft, MessageRef, SendIntent},
    split::{Limit, Unit},
    transport::CallError,
};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// Behaviour of an upload: its duration and its result.
type Way = fn(start: Instant) -> (Duration, Result<(), CallError>);

const NO_DELAY: Duration = Duration::ZERO;
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// A platform that accepts text, and files with a scripted behaviour.
#[derive(Clone)]
struct Fake {
    way: Way,
    /// The search result for a file that may have been sent.
    tells: FoundFile,
    start: Instant,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    text: String,
    /// Whether its messages can no longer be changed.
    unchangeable: bool,
    files: Vec<String>,
    /// The start times of uploads, in seconds.
    uploads: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Message(String);

impl MessageRef for Message {
    fn id(&self) -> String {
        self.0.clone()
    }

    fn from_id(id: &str) -> Option<Self> {
        Some(Self(id.to_owned()))
    }
}

impl PlatformMessages for Fake {
    type Page = String;
    type Ref = Message;
    type DedupKey = ();

    const CAPABILITIES: Capabilities = Capabilities {
        platform: "Fake",
        text: Limit { unit: Unit::Chars, max: 4000, columns: 60 },
        max_upload_bytes: 50_000_000,
        max_download_bytes: 0,
        edits: true,
        deletes: true,
        buttons: true,
        form_fields: 0,
        idempotent_send: false,
    };

    fn page(&self, draft: &MessageDraft) -> String {
        draft.rich.text.clone()
    }

    async fn ready(&mut self) {}

    fn check_rate_limit(&self) -> Result<(), CallError> {
        Ok(())
    }

    async fn dedup_key(&mut self, _: Option<()>, _: i64, _: &MessageHistory<'_>) -> Result<(), SendError> {
        Ok(())
    }

    async fn find(
        &mut self,
        _: &SendIntent<()>,
        _: &MessageHistory<'_>,
    ) -> Result<Option<Message>, SendError> {
        Ok(None)
    }

    async fn post(&mut self, intent: &SendIntent<()>, page: &String) -> Result<Message, CallError> {
        self.seen.lock().unwrap().text.clone_from(page);
        Ok(Message(intent.n.to_string()))
    }

    async fn edit(&mut self, _: &mut Message, page: &String) -> Result<EditOutcome, CallError> {
        let mut seen = self.seen.lock().unwrap();
        if seen.unchangeable {
            return Err(CallError::Refused("too old".into()));
        }
        seen.text.clone_from(page);
        Ok(EditOutcome::Shown)
    }

    async fn delete(&mut self, _: &Message) -> Result<(), CallError> {
        Ok(())
    }

    async fn find_file(&mut self, _: &UncertainFile<'_>) -> Result<FoundFile, SendError> {
        Ok(self.tells.clone())
    }

    async fn upload(&mut self, _: &str, file: &OutFile, _: u64) -> Result<String, CallError> {
        self.seen.lock().unwrap().uploads.push(self.start.elapsed().as_secs());
        let (takes, result) = (self.way)(self.start);
        sleep(takes).await;
        result?;
        self.seen.lock().unwrap().files.push(file.name.clone());
        Ok(file.name.clone())
    }
}

struct Nothing;

impl ReplyStore for Nothing {
    fn save<'a>(&'a self, _: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn known_messages(&self, _: i64) -> BoxFuture<'_, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// Outcome of a reply with files.
struct Outcome {
    text: String,
    files: usize,
    /// The start times of uploads, in seconds.
    uploads: Vec<u64>,
    /// The duration, in seconds.
    took: u64,
}

/// Creates a file of `bytes` bytes.
fn file(folder: &std::path::Path, n: usize, bytes: u64) -> OutFile {
    let path = folder.join(n.to_string());
    std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    OutFile { name: n.to_string(), path }
}

fn open(fake: &Fake) -> PlatformReply<Fake> {
    let address = Address { account: "a".into(), chat: "1".into(), topic: None };
    let (sender, private) = (String::new(), true);
    let target = ReplyTarget {
        address,
        private,
        reply_to: None,
        sender,
        language: Language::English,
        hint: None,
        saved: None,
    };
    PlatformReply::open(fake.clone(), &target, Box::new(Nothing))
}

/// Delivers a reply with `files.0` files of `files.1` bytes each, with the outbox's pauses; `hurry` signals whether its
/// end is waited for.
async fn deliver(way: Way, tells: FoundFile, files: (usize, u64), hurry: Hurry) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let files = (0..files.0).map(|n| file(folder.path(), n, files.1)).collect();
    let view = FinalView { text: "see".into(), files, ..FinalView::default() };
    let start = Instant::now();
    let fake = Fake { way, tells, start, seen: Arc::default() };
    let mut reply = open(&fake);
    reply.set_hurry(hurry);
    let mut attempt = 0;
    while let Err(error) = reply.finish(&view).await {
        let wait = Duration::from_secs(2u64.saturating_pow(attempt).min(60));
        sleep(if let SendError::Later { after } = error { after } else { wait }).await;
        attempt += 1;
    }
    let mut seen = fake.seen.lock().unwrap();
    Outcome {
        text: std::mem::take(&mut seen.text),
        files: seen.files.len(),
        uploads: std::mem::take(&mut seen.uploads),
        took: start.elapsed().as_secs(),
    }
}

/// Fails this way for two minutes.
fn until_well(start: Instant, error: CallError) -> (Duration, Result<(), CallError>) {
    (NO_DELAY, if start.elapsed() < Duration::from_secs(120) { Err(error) } else { Ok(()) })
}

fn unconnected() -> CallError {
    CallError::Unconnected("x".into())
}

fn unknown() -> CallError {
    CallError::Unknown("x".into())
}

#[tokio::test(start_paused = true)]
async fn uploads_that_fail_for_two_minutes_lose_no_file() {
    let ways: [(Way, FoundFile); 3] = [
        (|start| until_well(start, unconnected()), FoundFile::Perhaps),
        (|start| until_well(start, CallError::Wait(Duration::from_secs(7))), FoundFile::Perhaps),
        (|start| until_well(start, unknown()), FoundFile::Repeatable),
    ];
    for (way, tells) in ways {
        let outcome = deliver(way, tells, (2, 10), Hurry::default()).await;
        assert_eq!((outcome.text.as_str(), outcome.files), ("see", 2), "{:?}", outcome.uploads);
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_with_an_unknown_outcome_is_sent_again_after_a_minute() {
    let outcome =
        deliver(|_| (NO_DELAY, Err(unknown())), FoundFile::Perhaps, (1, 10), Hurry::default()).await;
    assert_eq!(outcome.uploads, [0, 60]);
    assert_eq!(outcome.text, "see\n\n📎 0 (it may not have arrived)");
    let well = |start: Instant| match start.elapsed() < Duration::from_secs(45) {
        true => (NO_DELAY, Err(unknown())),
        false => (NO_DELAY, Ok(())),
    };
    let outcome = deliver(well, FoundFile::Perhaps, (1, 10), Hurry::default()).await;
    assert_eq!((outcome.text.as_str(), outcome.files), ("see", 1));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_found_is_not_sent_again() {
    let found = FoundFile::There("f".into());
    let outcome = deliver(|_| (NO_DELAY, Err(unknown())), found, (1, 10), Hurry::default()).await;
    assert_eq!((outcome.text.as_str(), outcome.uploads.len()), ("see", 1));
}

#[tokio::test(start_paused = true)]
async fn a_large_file_is_sent_although_a_user_waits() {
    let way: Way = |_| (Duration::from_secs(20), Ok(()));
    let outcome = deliver(way, FoundFile::Perhaps, (1, 30_000_000), Hurry::waiting()).await;
    assert_eq!((outcome.text.as_str(), outcome.uploads.len(), outcome.took), ("see", 1, 20));
}

#[tokio::test(start_paused = true)]
async fn files_sent_in_sequence_all_arrive_although_a_user_waits() {
    let way: Way = |_| (Duration::from_secs(2), Ok(()));
    let outcome = deliver(way, FoundFile::Perhaps, (20, 10), Hurry::waiting()).await;
    assert_eq!((outcome.text.as_str(), outcome.files), ("see", 20));
}

#[tokio::test(start_paused = true)]
async fn twenty_files_on_a_dead_platform_take_no_longer_than_one() {
    let ways: [Way; 4] = [
        |_| (FOR_EVER, Ok(())),
        |_| (NO_DELAY, Err(unknown())),
        |_| (NO_DELAY, Err(unconnected())),
        |_| (NO_DELAY, Err(CallError::Wait(Duration::from_secs(5)))),
    ];
    for (n, way) in ways.into_iter().enumerate() {
        let outcome = deliver(way, FoundFile::Perhaps, (20, 10), Hurry::waiting()).await;
        assert!(outcome.took <= RETRY_TIMEOUT.as_secs(), "way {n} took {} s", outcome.took);
        assert_eq!(outcome.text.matches("📎").count(), 20, "way {n}: {}", outcome.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_upload_is_retried_when_a_user_waits() {
    let way: Way = |start| match start.elapsed() < Duration::from_secs(1) {
        true => (FOR_EVER, Ok(())),
        false => (NO_DELAY, Ok(())),
    };
    let hurry = Hurry::default();
    let comes = async {
        sleep(Duration::from_secs(20)).await;
        hurry.wait();
    };
    let (outcome, ()) = tokio::join!(deliver(way, FoundFile::Perhaps, (1, 10), hurry.clone()), comes);
    assert_eq!((outcome.text.as_str(), outcome.uploads), ("see", vec![0, 23]));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_files() {
    let hurry = Hurry::default();
    let comes = async {
        sleep(Duration::from_secs(3)).await;
        hurry.stop();
    };
    let way: Way = |_| (FOR_EVER, Ok(()));
    let delivered = deliver(way, FoundFile::Perhaps, (3, 50_000_000), hurry.clone());
    let (outcome, ()) = tokio::join!(delivered, comes);
    assert_eq!((outcome.took, outcome.text.matches("📎").count()), (3, 3), "{}", outcome.text);
}

#[tokio::test(start_paused = true)]
async fn a_late_file_is_sent_again_after_a_minute_or_once_when_a_user_waits() {
    let way: Way = |start| until_well(start, unknown());
    let outcome = deliver(way, FoundFile::Absent, (1, 10), Hurry::default()).await;
    assert_eq!((outcome.uploads, outcome.files), (vec![0, 60, 120], 1));
    let outcome = deliver(way, FoundFile::Absent, (1, 10), Hurry::waiting()).await;
    assert_eq!(outcome.uploads.len(), 2);
    assert_eq!(outcome.text, "see\n\n📎 0 (it may not have arrived)");
}

#[tokio::test(start_paused = true)]
async fn a_separate_note_loses_no_file() {
    let ways: [(Way, usize, &str); 2] = [
        (|_| (NO_DELAY, Ok(())), 1, "chosen"),
        (|_| (NO_DELAY, Err(CallError::Refused("x".into()))), 0, "📎 0 (it could not be sent)"),
    ];
    for (way, files, text) in ways {
        let (folder, seen) = (tempfile::tempdir().unwrap(), Arc::default());
        let fake = Fake { way, tells: FoundFile::Perhaps, start: Instant::now(), seen };
        let mut reply = open(&fake);
        reply.finish(&FinalView { text: "see".into(), ..FinalView::default() }).await.unwrap();
        fake.seen.lock().unwrap().unchangeable = true;
        let view = FinalView {
            text: "see\n\nchosen".into(),
            note: Some("chosen".into()),
            files: vec![file(folder.path(), 0, 10)],
            ..FinalView::default()
        };
        reply.finish(&view).await.unwrap();
        let seen = fake.seen.lock().unwrap();
        assert_eq!((seen.files.len(), seen.text.as_str()), (files, text));
    }
}
