use super::*;
use crate::{Inbound, JournalError, Kept, Refusal, Sighting, discord::loopback::Loopback};

/// Keeps everything.
struct Desk;

impl Intake for Desk {
    fn accept<'a>(&'a self, _: Inbound) -> BoxFuture<'a, Result<Kept, Refusal>> {
        Box::pin(async { Ok(Kept::New) })
    }

    fn known<'a>(&'a self, _: &'a str, _: i64) -> BoxFuture<'a, Result<Vec<Sighting>, JournalError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[tokio::test]
async fn a_deferral_that_was_perhaps_taken_stays_so_whatever_the_next_try_meets() {
    let check = async |statuses: &'static [u16], taken: bool| {
        let left = Mutex::new(statuses.iter());
        let server = Loopback::start(move |_, _| {
            let status = left.lock().unwrap().next().copied().unwrap_or(204);
            (status, json!({"message": "m", "code": if status == 404 { 10_062 } else { 0 }}))
        })
        .await;
        assert_eq!(server.discord().answer("5", "tok", 5).await, taken, "{statuses:?}");
    };
    check(&[200], true).await;
    check(&[500, 200], true).await;
    check(&[500, 429], true).await;
    check(&[500, 404], true).await;
    check(&[429], false).await;
    check(&[404], false).await;
}

#[tokio::test]
async fn what_is_answered_at_once_is_bounded() {
    let server = Loopback::start(|_, _| (200, Value::Null)).await;
    let discord = server.discord();
    let (mut gateway, registered) = (Gateway::new(&"token".into()), AtomicBool::new(true));
    let mut talk = Talk {
        discord: &discord,
        intake: &Desk,
        gateway: &mut gateway,
        work: FuturesUnordered::new(),
        catch_up: None,
        flows: true,
        registered: &registered,
    };
    for n in 0..1000 {
        let (id, token) = (n.to_string(), n.to_string());
        talk.see_to(if n % 2 == 0 { Todo::Press { id, token } } else { Todo::Command { id, token } });
    }
    assert_eq!(talk.work.len(), AT_ONCE);
}
