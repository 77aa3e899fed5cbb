use super::*;
use crate::{AcceptError, Accepted, Address, BoxFuture, EventKey, HealthState, InboundKind, Sender};
use std::sync::Mutex;

/// Stores incoming events, except while it is full.
#[derive(Default)]
struct RecordingSink {
    full: Mutex<bool>,
    /// Whether storing takes a second.
    slow: bool,
    kept: Mutex<Vec<String>>,
}

impl EventSink for RecordingSink {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        Box::pin(async move {
            if *self.full.lock().unwrap() {
                return Err(AcceptError::Full);
            }
            if self.slow {
                sleep(Duration::from_secs(1)).await;
            }
            self.kept.lock().unwrap().push(inbound.key.0);
            Ok(Accepted::New)
        })
    }

    crate::event_sink::knows_no_messages!();
}

fn event(id: &str) -> (Ticket, Inbound) {
    let inbound = Inbound {
        key: EventKey(id.to_owned()),
        address: Address { account: "dingtalk".into(), chat: "c".into(), topic: None },
        private: true,
        message: id.to_owned(),
        reply_to: None,
        sender: Sender { id: "u".into(), name: "Ada".into(), language: None },
        addressed: true,
        at: 1,
        pointed: Vec::new(),
        hint: None,
        kind: InboundKind::Message { text: "hi".into(), attachments: Vec::new(), album: None },
    };
    (Ticket { id: id.to_owned() }, inbound)
}

async fn keep(held: &UnstoredEvents<'_>, id: &str) -> bool {
    let (ticket, inbound) = event(id);
    held.keep(ticket, inbound).await.is_some()
}

/// Takes the pending acknowledgements.
fn answers(held: &UnstoredEvents<'_>) -> Vec<String> {
    held.queue().answers.drain(..).collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_not_acknowledged_before_it_is_stored() {
    let (chat_client, health) = (RecordingSink::default(), HealthCell::default());
    let held = UnstoredEvents::new(&chat_client, &health);
    assert!(keep(&held, "1").await);
    *chat_client.full.lock().unwrap() = true;
    health.ready();
    assert!(!keep(&held, "2").await);
    let account_health = health.get();
    assert_eq!(
        (account_health.state, account_health.last_error.is_some()),
        (HealthState::Degraded, true),
        "the error is visible in the state"
    );
    health.ready();
    assert!(!keep(&held, "3").await);
    assert!(!keep(&held, "2").await, "a redelivery is queued once");
    held.again().await;
    assert_eq!(answers(&held), Vec::<String>::new());
    assert_eq!(health.get().state, HealthState::Degraded, "also after a reconnection");
    *chat_client.full.lock().unwrap() = false;
    assert!(!keep(&held, "4").await, "waiting events go first");
    held.again().await;
    assert_eq!(answers(&held), ["2", "3", "4"].map(|id| Ticket { id: id.to_owned() }.ack()));
    assert_eq!(*chat_client.kept.lock().unwrap(), ["1", "2", "3", "4"]);
    assert_eq!(health.get().state, HealthState::Ready);
    assert!(keep(&held, "5").await);
}

#[tokio::test(start_paused = true)]
async fn waiting_events_are_bounded() {
    let chat_client = RecordingSink { full: Mutex::new(true), ..RecordingSink::default() };
    let health = HealthCell::default();
    let held = UnstoredEvents::new(&chat_client, &health);
    for n in 0..1000 {
        assert!(!keep(&held, &n.to_string()).await);
    }
    assert_eq!(held.queue().waiting.len(), HELD);
}

#[tokio::test(start_paused = true)]
async fn a_held_event_is_stored_without_any_connection() {
    let chat_client = RecordingSink { full: Mutex::new(true), ..RecordingSink::default() };
    let health = HealthCell::default();
    let (held, stop) = (UnstoredEvents::new(&chat_client, &health), CancellationToken::new());
    assert!(!keep(&held, "1").await && !keep(&held, "2").await);
    let channel = crate::dingtalk::loopback::channel("http://127.0.0.1:9", false);
    let room = async {
        sleep(2 * STORE_RETRY_DELAY).await;
        *chat_client.full.lock().unwrap() = false;
        sleep(2 * STORE_RETRY_DELAY).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(channel.attend(&held, &stop), room);
    assert_eq!(ended, Ok(()));
    assert_eq!(*chat_client.kept.lock().unwrap(), ["1", "2"]);
    assert_eq!(held.answer().await, Ticket { id: "1".into() }.ack(), "the next socket acknowledges it");
    assert_eq!(answers(&held), [Ticket { id: "2".into() }.ack()]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_loses_nothing() {
    let chat_client = RecordingSink { full: Mutex::new(true), slow: true, ..RecordingSink::default() };
    let health = HealthCell::default();
    let held = UnstoredEvents::new(&chat_client, &health);
    assert!(!keep(&held, "1").await && !keep(&held, "2").await);
    *chat_client.full.lock().unwrap() = false;
    // Each attempt takes a second: it is stopped after the first attempt and during the second.
    assert!(tokio::time::timeout(Duration::from_millis(1500), held.again()).await.is_err());
    assert_eq!(answers(&held), [Ticket { id: "1".into() }.ack()]);
    held.again().await;
    assert_eq!(answers(&held), [Ticket { id: "2".into() }.ack()]);
}

#[test]
fn only_invalid_credentials_end_listening() {
    let wait = Duration::from_secs(1);
    let cases = [
        (CallError::Auth("no".into()), ConnectionEnd::Fatal(ChannelError::Auth("no".into()))),
        (CallError::StaleToken("no".into()), ConnectionEnd::Fatal(ChannelError::Auth("no".into()))),
        (CallError::Wait(wait), ConnectionEnd::Later("DingTalk asks to wait".into(), wait)),
        (CallError::Special(DingTalkCase::Forbidden("no".into())), ConnectionEnd::Lost("no".into())),
        (CallError::Unknown("no".into()), ConnectionEnd::Lost("no".into())),
    ];
    for (failure, ended) in cases {
        assert_eq!(unopened(failure), ended);
    }
}
