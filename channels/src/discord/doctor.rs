//! Doctor checks of a bot against Discord's API.

use super::{
    DiscordChannel,
    client::DiscordResponse,
    facts::{ADMINISTRATOR, DOCTOR, PERMISSIONS},
    wire::{Application, DiscordUser, GatewayInfo, SessionStartLimit},
};
use crate::{
    Check,
    socket::{Keepalive, Socket, SocketFrame},
};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::timeout;

/// Flags of the message content intent: for verified bots, and for bots on few servers.
const CONTENT: u64 = 1 << 18 | 1 << 19;
/// Timeout for the gateway's hello.
const HELLO: Duration = Duration::from_secs(15);
const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(10), idle: Duration::from_secs(15) };
/// A server of the bot, with the bot's permissions unless a channel overrides them.
#[derive(Deserialize)]
struct BotGuild {
    name: String,
    permissions: String,
}

/// Checks token, clock, intent and gateway.
pub(super) async fn check(discord: &DiscordChannel) -> Vec<Check> {
    let client = &discord.handler.state.client;
    let me: DiscordResponse<DiscordUser> = match client.get(&["users", "@me"], &[]).await {
        Ok(me) => me,
        Err(error) => return vec![DOCTOR.first_call_failed(&error)],
    };
    let mut found = vec![Check::good("token", me.body.username.clone())];
    found.extend(me.date.map(|there| DOCTOR.clock(there)));
    match client.get::<Application>(&["applications", "@me"], &[]).await {
        Ok(response) => {
            found.push(intent(response.body.flags));
            found.push(Check::good("invitation", invitation(&response.body.id)));
        }
        Err(error) => found.push(Check::poor("intents", error.to_string(), "try again later")),
    }
    match client.get::<Vec<BotGuild>>(&["users", "@me", "guilds"], &[]).await {
        Ok(response) => found.extend(servers(&response.body)),
        Err(error) => found.push(Check::poor("servers", error.to_string(), "try again later")),
    }
    match client.get::<GatewayInfo>(&["gateway", "bot"], &[]).await {
        Ok(response) => {
            found.extend(response.body.session_start_limit.as_ref().and_then(starts));
            found.push(gateway(&response.body.url).await);
        }
        Err(error) => found.push(Check::bad("gateway", error.to_string(), "try again later")),
    }
    found
}

fn intent(flags: u64) -> Check {
    let what = "message content intent";
    if flags & CONTENT != 0 {
        return Check::good(what, "on");
    }
    Check::bad(
        what,
        "it is off, so Discord closes the connection",
        "https://discord.com/developers/applications, \"Bot\", \"Privileged Gateway Intents\", turn on \
         \"Message Content Intent\"",
    )
}

fn invitation(application: &str) -> String {
    let permissions: u64 = PERMISSIONS.iter().map(|(bit, _)| 1 << bit).sum();
    format!(
        "https://discord.com/oauth2/authorize?client_id={application}&scope=bot+applications.commands&permissions={permissions}"
    )
}

/// Returns a check for each server where the bot lacks permissions.
fn servers(servers: &[BotGuild]) -> Vec<Check> {
    let lacks = |server: &BotGuild| {
        let has: u64 = server.permissions.parse().unwrap_or_default();
        let lacks = |(bit, _): &&(u32, &str)| has & (ADMINISTRATOR | 1 << bit) == 0;
        PERMISSIONS.iter().filter(lacks).map(|(_, name)| *name).collect::<Vec<_>>()
    };
    let poor = |server: &BotGuild| {
        let (what, lacks) = (format!("server {}", server.name), lacks(server));
        let help =
            "invite the bot again with the URL above, or grant the permission to its role on the server";
        (!lacks.is_empty())
            .then(|| Check::poor(what, format!("the bot lacks permissions: {}", lacks.join(", ")), help))
    };
    let found: Vec<Check> = servers.iter().filter_map(poor).collect();
    match (servers, found.is_empty()) {
        ([], _) => {
            vec![Check::poor("servers", "the bot is not on any server", "invite it with the URL above")]
        }
        (_, true) => {
            vec![Check::good("servers", format!("{}, with all required permissions", servers.len()))]
        }
        (_, false) => found,
    }
}

fn starts(starts: &SessionStartLimit) -> Option<Check> {
    (starts.remaining < starts.total / 10).then(|| {
        Check::poor(
            "sessions",
            format!("{} of {} are left today", starts.remaining, starts.total),
            "find out why the bot connects so often, for example because another program uses this token",
        )
    })
}

async fn gateway(url: &str) -> Check {
    let hello = async {
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let mut socket = Socket::connect(&url, KEEPALIVE).await.map_err(|error| error.to_string())?;
        let frame = socket.next().await.map_err(|error| error.to_string())?;
        socket.close().await;
        match frame {
            SocketFrame::Text(text) if text.contains("heartbeat_interval") => Ok(()),
            _ => Err("it does not send a hello".to_owned()),
        }
    };
    match timeout(HELLO, hello).await.unwrap_or_else(|_| Err("it does not answer in time".to_owned())) {
        Ok(()) => Check::good("gateway", "it answers"),
        Err(why) => {
            Check::bad("gateway", why, "check that this machine can open WebSocket connections on port 443")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn problems_come_with_a_fix() {
        let good = |check: &Check| matches!(check.found, CheckResult::Good(_));
        assert!(good(&intent(1 << 18)) && good(&intent(1 << 19)) && !good(&intent(1 << 15)));
        let limit = |remaining| SessionStartLimit { remaining, total: 1000, reset_after: 0 };
        assert!(starts(&limit(900)).is_none());
        assert!(starts(&limit(99)).is_some());
        let server = |permissions: u64| BotGuild { name: "s".into(), permissions: permissions.to_string() };
        let all = PERMISSIONS.iter().map(|(bit, _)| 1 << bit).sum();
        assert!(good(&servers(&[server(all), server(ADMINISTRATOR)])[0]));
        let [check] = servers(&[server(all), server(all & !(1 << 11))]).try_into().unwrap();
        assert!(
            matches!(check.found, CheckResult::Poor { ref why, .. } if why == "the bot lacks permissions: Send Messages")
        );
        assert!(!good(&servers(&[])[0]));
        assert!(
            invitation("1").contains("client_id=1&scope=bot+applications.commands&permissions=309237746752")
        );
    }
}
