//! Doctor checks of a bot against Slack's API.

use super::{
    SlackChannel, SlackEventMode,
    facts::{DOCTOR, SCOPES},
    wire::AuthTest,
};
use crate::{Check, doctor::AppScope, supervise::ConnectionEnd};

/// Checks tokens, scopes, clock, and the delivery of events.
pub(super) async fn check(slack: &SlackChannel) -> Vec<Check> {
    let response = match slack.handler.state.client.ask::<AuthTest>("auth.test").await {
        Ok(response) => response,
        Err(error) => return vec![DOCTOR.first_call_failed(&error)],
    };
    let mut found =
        vec![Check::good("bot token", format!("{} in {}", response.body.user, response.body.team))];
    if let Some(scopes) = &response.scopes {
        found.extend(lacking(scopes));
    }
    found.extend(response.date.map(|there| DOCTOR.clock(there)));
    found.push(events(slack).await);
    found
}

/// Returns a check for each scope missing in a list.
fn lacking(granted: &str) -> Vec<Check> {
    let has = |scope: &AppScope| granted.split(',').any(|other| other.trim() == scope.name);
    let found: Vec<Check> =
        SCOPES.iter().filter(|scope| !has(scope)).map(|scope| DOCTOR.missing(scope)).collect();
    if found.is_empty() { vec![Check::good("scopes", "all scopes that pudu uses")] } else { found }
}

async fn events(slack: &SlackChannel) -> Check {
    match &slack.config.delivery {
        SlackEventMode::Http { .. } => {
            Check::good("events", "by signed posts; Slack's app page shows whether they arrive")
        }
        SlackEventMode::Socket { .. } => match slack.open().await {
            Ok(socket) => {
                socket.close().await;
                Check::good("events", "Socket Mode can connect")
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
            "https://api.slack.com/apps: turn on \"Socket Mode\", and create an app-level token (xapp-) with \
             connections:write",
        ),
        ConnectionEnd::Later(why, _) => Check::poor("events", why, "stop other processes that use this app"),
        ConnectionEnd::Lost(why) => {
            Check::bad("events", why, "check that this machine may open wss:// connections")
        }
        ConnectionEnd::Renew => Check::good("events", "Socket Mode answers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn problems_come_with_a_fix() {
        let all = "chat:write,app_mentions:read,im:history,channels:history,channels:read,groups:history,groups:read,mpim:history,commands,files:read,files:write,reactions:write,users:read,assistant:write";
        assert_eq!(lacking(all), [Check::good("scopes", "all scopes that pudu uses")]);
        let found = lacking("chat:write,im:history,channels:history");
        assert!(
            matches!(&found[0].found, CheckResult::Bad { help, .. } if help.contains("app_mentions:read"))
        );
        assert!(found[1..].iter().all(|check| matches!(check.found, CheckResult::Poor { .. })));
    }
}
