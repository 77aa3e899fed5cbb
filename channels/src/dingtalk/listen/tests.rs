use super::*;
use crate::{Address, BoxFuture, EventKey, JournalError, Kept, Kind, Refusal, Sender, Sighting};
use std::sync::Mutex;

/// Keeps what comes, except while it is full.
#[derive(Default)]
struct Desk {
    full: Mutex<bool>,
    kept: Mutex<Vec<String>>,
}

impl Intake for Desk {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Kept, Refusal>> {
        Box::pin(async move {
            if *self.full.lock().unwrap() {
                return Err(Refusal::Full);
            }
            self.kept.lock().unwrap().push(inbound.key.0);
            Ok(Kept::New)
        })
    }

    fn known<'a>(&'a self, _: &'a str, _: i64) -> BoxFuture<'a, Result<Vec<Sighting>, JournalError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn knows<'a>(&'a self, _: &'a Address, _: &'a str) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

fn event(id: &str) -> (Ticket, Inbound) {
    let inbound = Inbound {
        key: EventKey(id.to_owned()),
        address: Address { account: "dingtalk".into(), chat: "c".into(), topic: None },
        private: true,
        message: id.to_owned(),
        reply_to: None,
        sender: Sender { id: "u".into(), name: "Ada".into() },
        addressed: true,
        at: 1,
        hint: None,
        kind: Kind::Message { text: "hi".into(), attachments: Vec::new(), album: None },
    };
    (Ticket { id: id.to_owned() }, inbound)
}

async fn keep(held: &mut Held<'_>, id: &str) -> bool {
    let (ticket, inbound) = event(id);
    held.keep(ticket, inbound).await.is_some()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_not_acknowledged_until_it_is() {
    let desk = Desk::default();
    let mut held = Held::new(&desk);
    assert!(keep(&mut held, "1").await);
    *desk.full.lock().unwrap() = true;
    assert!(!keep(&mut held, "2").await);
    assert!(!keep(&mut held, "3").await);
    assert!(!keep(&mut held, "2").await, "a repetition waits once");
    assert_eq!(held.again().await, Vec::<String>::new());
    *desk.full.lock().unwrap() = false;
    assert!(!keep(&mut held, "4").await, "what waits goes first");
    let answers = held.again().await;
    assert_eq!(answers, ["2", "3", "4"].map(|id| Ticket { id: id.to_owned() }.taken()));
    assert_eq!(*desk.kept.lock().unwrap(), ["1", "2", "3", "4"]);
    assert!(keep(&mut held, "5").await);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded() {
    let desk = Desk { full: Mutex::new(true), ..Desk::default() };
    let mut held = Held::new(&desk);
    for n in 0..1000 {
        assert!(!keep(&mut held, &n.to_string()).await);
    }
    assert_eq!(held.waiting.len(), HELD);
}

#[test]
fn only_credentials_end_it_for_good() {
    let wait = Duration::from_secs(1);
    let cases = [
        (Failure::Credentials("no".into()), Ended::Fatal(ChannelError::Auth("no".into()))),
        (Failure::Token("no".into()), Ended::Fatal(ChannelError::Auth("no".into()))),
        (Failure::Wait(wait), Ended::Later("DingTalk asks to wait".into(), wait)),
        (Failure::Forbidden("no".into()), Ended::Lost("no".into())),
        (Failure::Unknown("no".into()), Ended::Lost("no".into())),
    ];
    for (failure, ended) in cases {
        assert_eq!(unopened(failure), ended);
    }
}
