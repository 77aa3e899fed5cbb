//! What can be wrong with an account, asked of Discord itself.

use super::{
    Discord,
    client::Told,
    failure::{ApiError, mend_token},
    wire::{Application, User},
};
use crate::{
    Check,
    socket::{Frame, Pulse, Socket},
};
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// The message content intent: for bots on many servers, and for the others.
const CONTENT: u64 = 1 << 18 | 1 << 19;
/// How long the gateway may take to say hello.
const HELLO: Duration = Duration::from_secs(15);
const PULSE: Pulse = Pulse { ping: Duration::from_secs(10), idle: Duration::from_secs(15) };
/// What the bot has to be allowed to do: see channels, send messages, also in threads, begin public threads,
/// attach files, read the history, add reactions.
const PERMISSIONS: u64 = 1 << 10 | 1 << 11 | 1 << 38 | 1 << 35 | 1 << 15 | 1 << 16 | 1 << 6;

#[derive(Deserialize)]
struct Where {
    url: String,
    session_start_limit: Option<Starts>,
}

#[derive(Deserialize)]
struct Starts {
    remaining: u64,
    total: u64,
}

/// Looks at token, clock, intent and gateway.
pub(super) async fn check(discord: &Discord) -> Vec<Check> {
    let client = &discord.ears.office.client;
    let me: Told<User> = match client.get(&["users", "@me"], &[]).await {
        Ok(me) => me,
        Err(error) => return vec![token(&error)],
    };
    let mut found = vec![Check::good("token", me.body.username.clone())];
    found.extend(me.date.as_deref().and_then(clock));
    match client.get::<Application>(&["applications", "@me"], &[]).await {
        Ok(told) => {
            found.push(intent(told.body.flags));
            found.push(Check::good("invitation", invitation(&told.body.id)));
        }
        Err(error) => found.push(Check::poor("intents", error.to_string(), "try again later")),
    }
    match client.get::<Where>(&["gateway", "bot"], &[]).await {
        Ok(told) => {
            found.extend(told.body.session_start_limit.as_ref().and_then(starts));
            found.push(gateway(&told.body.url).await);
        }
        Err(error) => found.push(Check::bad("gateway", error.to_string(), "try again later")),
    }
    found
}

fn token(error: &ApiError) -> Check {
    match error {
        ApiError::Auth(why) => Check::bad("token", why, mend_token("Discord refuses it")),
        other => Check::bad(
            "connection",
            other.to_string(),
            "see whether this machine reaches `api_url` (proxy, firewall, DNS)",
        ),
    }
}

fn intent(flags: u64) -> Check {
    let what = "message content intent";
    if flags & CONTENT != 0 {
        return Check::good(what, "on");
    }
    Check::bad(
        what,
        "it is off: Discord closes the connection",
        "https://discord.com/developers/applications, \"Bot\", \"Privileged Gateway Intents\", switch on \
         \"Message Content Intent\"",
    )
}

fn invitation(application: &str) -> String {
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={PERMISSIONS}"
    )
}

fn starts(starts: &Starts) -> Option<Check> {
    (starts.remaining < starts.total / 10).then(|| {
        Check::poor(
            "sessions",
            format!("{} of {} are left today", starts.remaining, starts.total),
            "see why the bot connects so often: does another program use this token?",
        )
    })
}

fn clock(date: &str) -> Option<Check> {
    let there = httpdate::parse_http_date(date).ok()?;
    Some(Check::clock(there, SystemTime::now(), "what comes three seconds late is taken for too late"))
}

async fn gateway(url: &str) -> Check {
    let hello = async {
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let mut socket = Socket::connect(&url, PULSE).await.map_err(|error| error.to_string())?;
        let frame = socket.next().await.map_err(|error| error.to_string())?;
        socket.close().await;
        match frame {
            Frame::Text(text) if text.contains("heartbeat_interval") => Ok(()),
            _ => Err("it does not say hello".to_owned()),
        }
    };
    match timeout(HELLO, hello).await.unwrap_or_else(|_| Err("it does not answer in time".to_owned())) {
        Ok(()) => Check::good("gateway", "it answers"),
        Err(why) => Check::bad("gateway", why, "see whether this machine reaches it: WebSockets, port 443"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Found;

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
        let good = |check: &Check| matches!(check.found, Found::Good(_));
        assert!(good(&intent(1 << 18)) && good(&intent(1 << 19)) && !good(&intent(1 << 15)));
        assert!(starts(&Starts { remaining: 900, total: 1000 }).is_none());
        assert!(starts(&Starts { remaining: 99, total: 1000 }).is_some());
        let check = token(&ApiError::Auth("401".into()));
        assert!(matches!(check.found, Found::Bad { ref mend, .. } if mend.contains("Reset Token")));
        assert!(
            invitation("1").contains("client_id=1&scope=bot+applications.commands&permissions=309237746752")
        );
    }
}
