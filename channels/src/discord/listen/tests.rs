use super::*;
use crate::BoxFuture;
use crate::{AcceptError, Accepted, Inbound, discord::loopback::DiscordLoopback};
use tokio::sync::mpsc;

/// Stores every event.
struct NullSink;

impl EventSink for NullSink {
    fn accept<'a>(&'a self, _: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        Box::pin(async { Ok(Accepted::New) })
    }

    crate::event_sink::knows_no_messages!();
}

#[tokio::test]
async fn concurrent_responses_are_limited_and_a_reply_does_not_wait_for_more() {
    let server = DiscordLoopback::start(|_, _| (200, Value::Null)).await;
    let discord = server.discord();
    let mut gateway = GatewayConnector::new(&"token".into());
    let (todo, mut todos) = mpsc::channel(MAX_CONCURRENT_RESPONSES);
    let talk = ActiveSession {
        discord: &discord,
        sink: &NullSink,
        gateway: &mut gateway,
        todo: &todo,
        catch_up: CatchUp::default(),
        flows: true,
        saved: None,
    };
    let deferred = &discord.handler.state.deferred;
    for n in 0..=MAX_CONCURRENT_RESPONSES {
        let (id, token) = (n.to_string(), n.to_string());
        deferred.expect(&token);
        talk.see_to(EventResponse::Nothing);
        talk.see_to(if n % 2 == 0 {
            EventResponse::Command { id, token }
        } else {
            EventResponse::Press { id, token }
        });
    }
    assert!(
        !deferred.ready(&MAX_CONCURRENT_RESPONSES.to_string()).await,
        "there was no space for this event"
    );
    let mut waiting = 0;
    while todos.try_recv().is_ok() {
        waiting += 1;
    }
    assert_eq!(waiting, MAX_CONCURRENT_RESPONSES);
}
