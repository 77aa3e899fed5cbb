//! Receives events: one connection to the gateway at a time.
//!
//! Discord wants no acknowledgement of an event but in one way: a session that is resumed tells what came
//! behind the number that we name. That is the last one that was kept. Where a session cannot be resumed the
//! history is read.

use super::{
    Discord,
    answers::AT_ONCE,
    ears::{NotKept, Todo},
    failure::{ApiError, mend_token},
    gateway::{Event, Gateway, Heard, Link, Parted},
    office::{Lane, Me},
    wire::Ready,
};
use crate::{BoxFuture, ChannelError, HealthState, Intake, supervise::Ended, supervise::supervise};
use futures_util::future::OptionFuture;
use serde::Deserialize;
use serde_json::Value;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How long the servers may take to tell of themselves before the history is read without them.
const SERVERS: Duration = Duration::from_secs(5);
/// After how long what could not be kept is looked for in the history.
const LATER: Duration = Duration::from_secs(30);

/// Where the gateway is, and how often a session may still begin.
#[derive(Deserialize)]
struct Where {
    url: String,
    session_start_limit: Option<Starts>,
}

#[derive(Deserialize)]
struct Starts {
    remaining: u64,
    /// In milliseconds.
    reset_after: u64,
}

impl Discord {
    pub(super) async fn run(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), ChannelError> {
        // Taken out by the connection that is open.
        let kept = Mutex::new(Some(Gateway::new(self.ears.office.client.token())));
        let take = || kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (todo, todos) = mpsc::channel(AT_ONCE);
        let connect = || async {
            let mut gateway = take().unwrap_or_else(|| Gateway::new(self.ears.office.client.token()));
            let ended = self.session(&mut gateway, intake, &todo, &stop).await;
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
            ended
        };
        tokio::select! {
            result = supervise(&self.ears.health, &stop, connect) => result,
            // Never before: there is one who says what is to be done.
            () = self.work(todos) => Ok(()),
        }
    }

    async fn session(
        &self,
        gateway: &mut Gateway,
        intake: &dyn Intake,
        todo: &mpsc::Sender<Todo>,
        stop: &CancellationToken,
    ) -> Ended {
        let url = match gateway.address() {
            Some(url) => Ok(url),
            None => tokio::select! {
                url = self.address(gateway.resumes()) => url,
                () = stop.cancelled() => return Ended::Renew,
            },
        };
        let link = match url.and_then(|url| gateway.connect(&url)) {
            Ok(link) => link,
            Err(ended) => return ended,
        };
        let session = Talk { discord: self, intake, gateway, todo, catch_up: None, flows: false };
        session.run(link, stop).await
    }

    /// Asks where the gateway is, and whether the token is good: a session that begins in vain counts.
    async fn address(&self, resumes: bool) -> Result<String, Ended> {
        let told = self.ears.office.client.get::<Where>(&["gateway", "bot"], &[]).await;
        let told = self.ears.office.heed(Lane::Read, "gateway", told).map_err(ended)?;
        match told.session_start_limit {
            Some(Starts { remaining: 0, reset_after }) if !resumes => Err(Ended::Later(
                "the bot has connected too often today".to_owned(),
                Duration::from_millis(reset_after),
            )),
            _ => Ok(told.url),
        }
    }
}

/// One connection and what is worked on beside it.
struct Talk<'a> {
    discord: &'a Discord,
    intake: &'a dyn Intake,
    gateway: &'a mut Gateway,
    /// What is to be done that nothing here waits for.
    todo: &'a mpsc::Sender<Todo>,
    catch_up: Option<BoxFuture<'a, bool>>,
    /// Whether events flow: the session began, or told all that it had to tell.
    flows: bool,
}

impl Talk<'_> {
    async fn run(mut self, mut link: Link, stop: &CancellationToken) -> Ended {
        loop {
            let heard = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    link.leave().await;
                    return Ended::Renew;
                }
                heard = link.next() => heard,
                Some(complete) = OptionFuture::from(self.catch_up.as_mut()) => {
                    self.catch_up = None;
                    if !complete {
                        self.look(LATER);
                    }
                    continue;
                }
            };
            let taken = match heard {
                Ok(Heard::Event(event)) => self.take(event).await,
                Ok(Heard::Nothing) => {
                    self.alive();
                    Ok(())
                }
                Err(parted) => Err(parted),
            };
            if let Err(parted) = taken {
                self.gateway.parted(&parted);
                return parted.ended;
            }
        }
    }

    /// Takes an event; an error ends the connection.
    async fn take(&mut self, event: Event) -> Result<(), Parted> {
        let Event { seq, kind, data } = event;
        let todo = match kind.as_str() {
            "READY" => {
                self.ready(data, seq)?;
                Todo::Register
            }
            "RESUMED" => {
                self.flows = true;
                self.discord.ears.health.ready();
                if self.discord.is_behind() {
                    self.look(Duration::ZERO);
                }
                Todo::Nothing
            }
            _ => match self.discord.ears.hear(&kind, data, self.intake).await {
                Ok(todo) => todo,
                Err(error) => return Err(self.not_kept(&error)),
            },
        };
        self.gateway.kept(seq);
        self.alive();
        self.see_to(todo);
        Ok(())
    }

    fn alive(&self) {
        if self.flows {
            self.discord.alive();
        }
    }

    /// The session goes on before this event, over another connection.
    fn not_kept(&self, error: &NotKept) -> Parted {
        tracing::warn!(account = self.discord.ears.account, %error, "an event is left with Discord");
        self.discord.ears.health.failed(HealthState::Degraded, error.to_string());
        Parted::lost(&error.to_string())
    }

    fn ready(&mut self, data: Value, seq: u64) -> Result<(), Parted> {
        let ready: Ready =
            serde_json::from_value(data).map_err(|_| Parted::lost("Discord does not say who the bot is"))?;
        let office = &self.discord.ears.office;
        let application = ready.application.clone().map(|application| application.id);
        let application = application.filter(|id| !id.is_empty()).unwrap_or_else(|| ready.user.id.clone());
        let me = Me { user: ready.user.id.clone(), application, name: ready.user.username.clone() };
        tracing::info!(account = self.discord.ears.account, bot = me.name, "connected to Discord");
        // A token's bot does not change.
        office.me.set(me).ok();
        office.places.expect(ready.guilds.len());
        self.gateway.began(&ready, seq);
        self.discord.ears.health.ready();
        self.discord.falls_behind();
        self.flows = true;
        self.look(Duration::ZERO);
        Ok(())
    }

    /// Reads in the history what was missed, after a while.
    fn look(&mut self, after: Duration) {
        let (discord, intake) = (self.discord, self.intake);
        self.catch_up = Some(Box::pin(async move {
            sleep(after).await;
            // What the servers do not tell by then is looked for by what is known otherwise.
            timeout(SERVERS, discord.ears.office.places.complete()).await.ok();
            discord.catch_up(intake).await
        }));
    }

    fn see_to(&self, todo: Todo) {
        if todo == Todo::Nothing {
            return;
        }
        if let Err(error) = self.todo.try_send(todo)
            && let Todo::Command { token, .. } = error.into_inner()
        {
            // Its reply is an ordinary message then.
            self.discord.ears.office.deferred.taken(&token, false);
        }
    }
}

fn ended(error: ApiError) -> Ended {
    match error {
        ApiError::Auth(why) => Ended::Fatal(ChannelError::Auth(mend_token(&why))),
        ApiError::Wait(after, _) => Ended::Later("Discord has too many calls of this bot".to_owned(), after),
        other => Ended::Lost(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
