use super::*;
use crate::BoxFuture;
use crate::{
    AcceptError, Accepted, Address, Inbound, KnownMessage, ReplyStoreError,
    discord::loopback::DiscordLoopback,
};
use tokio::sync::mpsc;

/// Keeps everything.
struct NullSink;

impl EventSink for NullSink {
    fn accept<'a>(&'a self, _: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        Box::pin(async { Ok(Accepted::New) })
    }

    fn known_messages<'a>(
        &'a self,
        _: &'a str,
        _: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn is_in_conversation<'a>(
        &'a self,
        _: &'a Address,
        _: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
        Box::pin(async { Ok(false) })
    }
}

#[tokio::test]
async fn what_is_answered_at_once_is_bounded_and_beyond_it_a_reply_does_not_wait() {
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
    assert!(!deferred.ready(&MAX_CONCURRENT_RESPONSES.to_string()).await, "there was no room for this one");
    let mut waiting = 0;
    while todos.try_recv().is_ok() {
        waiting += 1;
    }
    assert_eq!(waiting, MAX_CONCURRENT_RESPONSES);
}
