//! Doctor checks of an account, made against Discord's API.

use super::{
    DiscordChannel,
    client::DiscordResponse,
    failure::{DiscordError, mend_token},
    wire::{Application, DiscordUser},
};
use crate::{
    Check,
    socket::{Keepalive, Socket, SocketFrame},
    transport::CallError,
};
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// The message content intent: for bots on many servers, and for the others.
const CONTENT: u64 = 1 << 18 | 1 << 19;
/// How long the gateway may take to say hello.
const HELLO: Duration = Duration::from_secs(15);
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(10), idle: Duration::from_secs(15) };
/// Permissions that the bot needs, each with its bit.
const PERMISSIONS: [(u32, &str); 7] = [
    (6, "Add Reactions"),
    (10, "View Channels"),
    (11, "Send Messages"),
    (15, "Attach Files"),
    (16, "Read Message History"),
    (35, "Create Public Threads"),
    (38, "Send Messages in Threads"),
];
/// Permission that includes all others.
const ADMINISTRATOR: u64 = 1 << 3;

#[derive(Deserialize)]
struct GatewayProbe {
    url: String,
    session_start_limit: Option<RemainingStarts>,
}

/// A server of the bot, with the bot's permissions where no channel overrides them.
#[derive(Deserialize)]
struct BotGuild {
    name: String,
    permissions: String,
}

#[derive(Deserialize)]
struct RemainingStarts {
    remaining: u64,
    total: u64,
}

/// Looks at token, clock, intent and gateway.
pub(super) async fn check(discord: &DiscordChannel) -> Vec<Check> {
    let client = &discord.handler.state.client;
    let me: DiscordResponse<DiscordUser> = match client.get(&["users", "@me"], &[]).await {
        Ok(me) => me,
        Err(error) => return vec![token(&error)],
    };
    let mut found = vec![Check::good("token", me.body.username.clone())];
    found.extend(me.date.map(clock));
    match client.get::<Application>(&["applications", "@me"], &[]).await {
        Ok(told) => {
            found.push(intent(told.body.flags));
            found.push(Check::good("invitation", invitation(&told.body.id)));
        }
        Err(error) => found.push(Check::poor("intents", error.to_string(), "try again later")),
    }
    match client.get::<Vec<BotGuild>>(&["users", "@me", "guilds"], &[]).await {
        Ok(told) => found.extend(servers(&told.body)),
        Err(error) => found.push(Check::poor("servers", error.to_string(), "try again later")),
    }
    match client.get::<GatewayProbe>(&["gateway", "bot"], &[]).await {
        Ok(told) => {
            found.extend(told.body.session_start_limit.as_ref().and_then(starts));
            found.push(gateway(&told.body.url).await);
        }
        Err(error) => found.push(Check::bad("gateway", error.to_string(), "try again later")),
    }
    found
}

fn token(error: &DiscordError) -> Check {
    match error {
        CallError::Auth(why) => Check::bad("token", why, mend_token("Discord refuses it")),
        other => Check::unreachable("api_url", other),
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
    let permissions: u64 = PERMISSIONS.iter().map(|(bit, _)| 1 << bit).sum();
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={permissions}"
    )
}

/// Names the servers where something is not permitted.
fn servers(servers: &[BotGuild]) -> Vec<Check> {
    let lacks = |server: &BotGuild| {
        let has: u64 = server.permissions.parse().unwrap_or_default();
        let lacks = |(bit, _): &&(u32, &str)| has & (ADMINISTRATOR | 1 << bit) == 0;
        PERMISSIONS.iter().filter(lacks).map(|(_, name)| *name).collect::<Vec<_>>()
    };
    let poor = |server: &BotGuild| {
        let (what, lacks) = (format!("server {}", server.name), lacks(server));
        let help = "invite the bot anew by the address above, or permit it to its role there";
        (!lacks.is_empty()).then(|| Check::poor(what, format!("the bot may not: {}", lacks.join(", ")), help))
    };
    let found: Vec<Check> = servers.iter().filter_map(poor).collect();
    match (servers, found.is_empty()) {
        ([], _) => vec![Check::poor("servers", "the bot is on none", "invite it by the address above")],
        (_, true) => vec![Check::good("servers", format!("{}, with all that pudu uses", servers.len()))],
        (_, false) => found,
    }
}

fn starts(starts: &RemainingStarts) -> Option<Check> {
    (starts.remaining < starts.total / 10).then(|| {
        Check::poor(
            "sessions",
            format!("{} of {} are left today", starts.remaining, starts.total),
            "see why the bot connects so often: does another program use this token?",
        )
    })
}

fn clock(there: SystemTime) -> Check {
    Check::clock(there, SystemTime::now(), "what comes three seconds late is taken for too late")
}

async fn gateway(url: &str) -> Check {
    let hello = async {
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let mut socket = Socket::connect(&url, KEEPALIVE).await.map_err(|error| error.to_string())?;
        let frame = socket.next().await.map_err(|error| error.to_string())?;
        socket.close().await;
        match frame {
            SocketFrame::Text(text) if text.contains("heartbeat_interval") => Ok(()),
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
    use crate::CheckResult;

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
        let good = |check: &Check| matches!(check.found, CheckResult::Good(_));
        assert!(good(&intent(1 << 18)) && good(&intent(1 << 19)) && !good(&intent(1 << 15)));
        assert!(starts(&RemainingStarts { remaining: 900, total: 1000 }).is_none());
        assert!(starts(&RemainingStarts { remaining: 99, total: 1000 }).is_some());
        let check = token(&CallError::Auth("401".into()));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("Reset Token")));
        let server = |permissions: u64| BotGuild { name: "s".into(), permissions: permissions.to_string() };
        let all = PERMISSIONS.iter().map(|(bit, _)| 1 << bit).sum();
        assert!(good(&servers(&[server(all), server(ADMINISTRATOR)])[0]));
        let [check] = servers(&[server(all), server(all & !(1 << 11))]).try_into().unwrap();
        assert!(
            matches!(check.found, CheckResult::Poor { ref why, .. } if why == "the bot may not: Send Messages")
        );
        assert!(!good(&servers(&[])[0]));
        assert!(
            invitation("1").contains("client_id=1&scope=bot+applications.commands&permissions=309237746752")
        );
    }
}
