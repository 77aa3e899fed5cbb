//! Doctor checks of an account, made against Slack's API.

use super::{SlackChannel, SlackEventMode, failure::SlackError};
use crate::{Check, supervise::ConnectionEnd, transport::CallError};
use serde::Deserialize;
use std::time::SystemTime;

/// Scopes that the bot cannot work without, each with the consequence of its absence.
const NEEDED: [(&str, &str); 3] = [
    ("chat:write", "it cannot answer"),
    ("app_mentions:read", "it hears of no mention in channels"),
    ("im:history", "it hears of no direct message"),
];

/// Scopes that the bot can do without, each with the consequence of its absence.
const USEFUL: [(&str, &str); 11] = [
    ("channels:read", "links to messages of other public channels are not read"),
    ("groups:read", "links to messages of other private channels are not read"),
    ("channels:history", "follow-ups in threads and what was missed in public channels are not seen"),
    ("groups:history", "follow-ups in threads and what was missed in private channels are not seen"),
    ("mpim:history", "follow-ups and what was missed in direct messages of several people are not seen"),
    ("commands", "the slash command does not reach it"),
    ("files:read", "files that people send cannot be fetched"),
    ("files:write", "files cannot be sent"),
    ("reactions:write", "nobody sees that a message waits its turn"),
    ("users:read", "people have ids in place of names"),
    ("assistant:write", "what the bot does may not show below a thread"),
];

#[derive(Deserialize)]
struct AuthTestCheck {
    #[serde(default)]
    user: String,
    #[serde(default)]
    team: String,
}

const APPS: &str = "https://api.slack.com/apps";

/// Looks at tokens, scopes, clock, and how events come.
pub(super) async fn check(slack: &SlackChannel) -> Vec<Check> {
    let told = match slack.handler.state.client.ask::<AuthTestCheck>("auth.test").await {
        Ok(told) => told,
        Err(error) => return vec![token(&error)],
    };
    let mut found = vec![Check::good("bot token", format!("{} in {}", told.body.user, told.body.team))];
    if let Some(scopes) = &told.scopes {
        found.extend(self::scopes(scopes));
    }
    found.extend(told.date.map(clock));
    found.push(events(slack).await);
    found
}

fn token(error: &SlackError) -> Check {
    match error {
        CallError::Auth(why) => Check::bad(
            "bot token",
            why,
            format!(
                "copy the Bot User OAuth Token (xoxb-) from {APPS}, \"OAuth & Permissions\", into `bot_token`"
            ),
        ),
        other => Check::unreachable("api_url", other),
    }
}

fn scopes(scopes: &str) -> Vec<Check> {
    let has = |scope: &str| scopes.split(',').any(|other| other.trim() == scope);
    let help =
        |scope: &str| format!("add {scope} at {APPS}, \"OAuth & Permissions\", and install the app anew");
    let missing = |(scope, why): &(&str, &str)| {
        (!has(scope)).then(|| (format!("scope {scope}"), (*why).to_owned(), help(scope)))
    };
    let mut found: Vec<Check> =
        NEEDED.iter().filter_map(missing).map(|(what, why, help)| Check::bad(what, why, help)).collect();
    found.extend(USEFUL.iter().filter_map(missing).map(|(what, why, help)| Check::poor(what, why, help)));
    if found.is_empty() {
        found.push(Check::good("scopes", "all that pudu uses"));
    }
    found
}

fn clock(there: SystemTime) -> Check {
    Check::clock(there, SystemTime::now(), "posts that are five minutes off are refused")
}

async fn events(slack: &SlackChannel) -> Check {
    match &slack.config.delivery {
        SlackEventMode::Http { .. } => {
            Check::good("events", "by signed posts; Slack itself says whether they arrive")
        }
        SlackEventMode::Socket { .. } => match slack.open().await {
            Ok(socket) => {
                socket.close().await;
                Check::good("events", "Socket Mode opens")
            }
            Err(ended) => socket(ended),
        },
    }
}

fn socket(ended: ConnectionEnd) -> Check {
    match ended {
        ConnectionEnd::Fatal(why) => Check::bad(
            "events",
            why.to_string(),
            format!(
                "{APPS}: switch on \"Socket Mode\", and make an app-level token (xapp-) with connections:write"
            ),
        ),
        ConnectionEnd::Later(why, _) => Check::poor("events", why, "stop other processes that use this app"),
        ConnectionEnd::Lost(why) => {
            Check::bad("events", why, "see whether this machine may open wss:// connections")
        }
        ConnectionEnd::Renew => Check::good("events", "Socket Mode answers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
        let all = "chat:write,app_mentions:read,im:history,channels:history,channels:read,groups:history,groups:read,mpim:history,commands,files:read,files:write,reactions:write,users:read,assistant:write";
        assert_eq!(scopes(all), [Check::good("scopes", "all that pudu uses")]);
        let found = scopes("chat:write,im:history,channels:history");
        assert!(
            matches!(&found[0].found, CheckResult::Bad { help, .. } if help.contains("app_mentions:read"))
        );
        assert!(found[1..].iter().all(|check| matches!(check.found, CheckResult::Poor { .. })));
        let check = token(&CallError::Auth("invalid_auth".into()));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("xoxb-")));
    }
}
