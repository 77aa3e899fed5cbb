//! Receives events: one connection to the gateway at a time.
//!
//! Discord wants no acknowledgement of an event but in one way: a session that is resumed tells what came
//! behind the number that we name. That is the last one that was kept. Where a session cannot be resumed the
//! history is read.

use super::{
    Discord,
    deferred::given,
    ears::{NotKept, Todo},
    failure::{ApiError, mend_token},
    gateway::{Event, Gateway, Heard, Link, Parted},
    messages::now,
    office::{Lane, Me},
    wire::Ready,
};
use crate::{BoxFuture, ChannelError, Command, HealthState, Intake, supervise::Ended, supervise::supervise};
use futures_util::{StreamExt, future::OptionFuture, stream::FuturesUnordered};
use pudu_net::reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long the servers may take to tell of themselves before the history is read without them.
const SERVERS: Duration = Duration::from_secs(5);
/// After how long what could not be kept is looked for in the history.
const LATER: Duration = Duration::from_secs(30);
/// A command to which no reply has begun for so long gets none: what says "thinking…" is taken away.
const UNANSWERED: Duration = Duration::from_secs(15);
/// Answers to interactions that are under way at once.
const AT_ONCE: usize = 256;
/// Longest description of a command, in characters.
const DESCRIPTION: usize = 100;

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
        let (registered, take) =
            (AtomicBool::new(false), || kept.lock().unwrap_or_else(PoisonError::into_inner).take());
        let connect = || async {
            let mut gateway = take().unwrap_or_else(|| Gateway::new(self.ears.office.client.token()));
            let ended = self.session(&mut gateway, intake, &registered, &stop).await;
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
            ended
        };
        supervise(&self.ears.health, &stop, connect).await
    }

    async fn session(
        &self,
        gateway: &mut Gateway,
        intake: &dyn Intake,
        registered: &AtomicBool,
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
        let session = Talk {
            discord: self,
            intake,
            gateway,
            work: FuturesUnordered::new(),
            catch_up: None,
            flows: false,
            registered,
        };
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

    /// Answers a pressed button, so that it is not shown as pending.
    async fn end_press(&self, id: String, token: String) {
        self.answer(&id, &token, 6).await;
    }

    /// Shows "thinking…", and takes it away if no reply comes.
    async fn defer(&self, id: String, token: String) {
        let office = &self.ears.office;
        let taken = self.answer(&id, &token, 5).await;
        office.deferred.taken(&token, taken);
        sleep(UNANSWERED).await;
        let (Some(me), false) = (office.me.get(), office.deferred.is_answered(&token) || !taken) else {
            return;
        };
        let path = ["webhooks", &me.application, &token, "messages", "@original"];
        let gone = office.call::<Value>(Lane::Delete, Method::DELETE, &path, &Value::Null).await;
        tracing::debug!(?gone, age = now() - given(&id, now()), "a command gets no answer");
    }

    /// Answers an interaction; tells whether Discord took it, now or before.
    async fn answer(&self, id: &str, token: &str, kind: u64) -> bool {
        let path = ["interactions", id, token, "callback"];
        let mut perhaps = false;
        for _ in 0..2 {
            let body = json!({"type": kind});
            match self.ears.office.call::<Value>(Lane::Sign, Method::POST, &path, &body).await {
                Ok(_) | Err(ApiError::Done(_)) => return true,
                // It may have been taken or not. Saying it again does no harm, and the reply finds out.
                Err(ApiError::Unknown(_)) => perhaps = true,
                Err(ApiError::Unconnected(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, perhaps, "an interaction could not be answered");
                    return perhaps;
                }
            }
        }
        true
    }

    /// Tells Discord which commands there are. The same list again changes nothing.
    async fn register(&self, registered: &AtomicBool) {
        if self.config.commands.is_empty() || registered.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(me) = self.ears.office.me.get() else { return };
        let commands: Vec<Value> = self.config.commands.iter().map(command).collect();
        let path = ["applications", &me.application, "commands"];
        if let Err(error) =
            self.ears.office.call::<Value>(Lane::Sign, Method::PUT, &path, &commands.into()).await
        {
            tracing::warn!(%error, "the commands could not be registered; they can be typed all the same");
            registered.store(false, Ordering::Relaxed);
        }
    }
}

fn command(Command { name, argument, help }: &Command) -> Value {
    let cut = |text: &str| text.chars().take(DESCRIPTION).collect::<String>();
    let words = argument.trim_matches(['[', ']']);
    let option = json!({"type": 3, "name": "words", "description": cut(words), "required": false});
    let options: Vec<Value> = (!words.is_empty()).then_some(option).into_iter().collect();
    json!({"type": 1, "name": name, "description": cut(help), "options": options})
}

/// One connection and what is worked on beside it.
struct Talk<'a> {
    discord: &'a Discord,
    intake: &'a dyn Intake,
    gateway: &'a mut Gateway,
    /// Answers to interactions, which nothing waits for.
    work: FuturesUnordered<BoxFuture<'a, ()>>,
    catch_up: Option<BoxFuture<'a, bool>>,
    /// Whether events flow: the session began, or told all that it had to tell.
    flows: bool,
    registered: &'a AtomicBool,
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
                Some(()) = self.work.next() => continue,
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
                Todo::Nothing
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
        let (discord, registered) = (self.discord, self.registered);
        self.work.push(Box::pin(discord.register(registered)));
        discord.falls_behind();
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

    fn see_to(&mut self, todo: Todo) {
        let discord = self.discord;
        match todo {
            Todo::Nothing => {}
            // What the press means is kept in any case.
            Todo::Press { .. } if self.work.len() >= AT_ONCE => {}
            Todo::Press { id, token } => self.work.push(Box::pin(discord.end_press(id, token))),
            Todo::Command { id, token } if self.work.len() < AT_ONCE => {
                self.work.push(Box::pin(discord.defer(id, token)));
            }
            // Its reply is an ordinary message then.
            Todo::Command { token, .. } => discord.ears.office.deferred.taken(&token, false),
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
