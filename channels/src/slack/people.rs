//! The names of people, looked up once and remembered.

use super::{client::SlackClient, failure::SlackApiError};
use serde::Deserialize;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// How long a message waits for a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a name is believed, and how long one that could not be had is not asked for again.
const FRESH: Duration = Duration::from_secs(12 * 3600);
const FAILED_LOOKUP_TTL: Duration = Duration::from_secs(300);
/// Maximum number of names remembered.
const MAX_CACHED_NAMES: usize = 4096;
/// Maximum number of names looked up for one message.
const MAX_LOOKUPS_PER_MESSAGE: usize = 10;

/// The names that are known.
#[derive(Default)]
pub(super) struct People(Mutex<HashMap<String, (Option<String>, Instant)>>);

#[derive(Deserialize)]
struct UserInfoResponse {
    user: SlackUser,
}

#[derive(Default, Deserialize)]
struct SlackUser {
    name: Option<String>,
    real_name: Option<String>,
    #[serde(default)]
    profile: SlackProfile,
}

#[derive(Default, Deserialize)]
struct SlackProfile {
    display_name: Option<String>,
    real_name: Option<String>,
}

impl People {
    /// Returns the names of people, as far as they can be had soon.
    pub(super) async fn names(&self, client: &SlackClient, ids: &[String]) -> HashMap<String, String> {
        let mut names = HashMap::new();
        let deadline = Instant::now() + LOOKUP_TIMEOUT;
        for id in ids.iter().take(MAX_LOOKUPS_PER_MESSAGE) {
            let known = self.known(id);
            let name = match known {
                Some(name) => name,
                None => self.ask(client, id, deadline).await,
            };
            names.extend(name.map(|name| (id.clone(), name)));
        }
        names
    }

    fn known(&self, id: &str) -> Option<Option<String>> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(id).filter(|(_, until)| *until > Instant::now()).map(|(name, _)| name.clone())
    }

    async fn ask(&self, client: &SlackClient, id: &str, deadline: Instant) -> Option<String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let params = [("user", id)];
        let asked = timeout(left, client.read::<UserInfoResponse>("users.info", &params)).await;
        let name = match asked {
            Ok(Ok(told)) => told.user.name(),
            Ok(Err(error)) => {
                tell(&error);
                None
            }
            // The others of this message have had the time: this one is asked for with the next.
            Err(_) if left < LOOKUP_TIMEOUT / 2 => return None,
            Err(_) => None,
        };
        let lasts = if name.is_some() { FRESH } else { FAILED_LOOKUP_TTL };
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_CACHED_NAMES {
            names.clear();
        }
        names.insert(id.to_owned(), (name.clone(), Instant::now() + lasts));
        name
    }
}

fn tell(error: &SlackApiError) {
    tracing::debug!(%error, "a person's name could not be had; the id stands for it");
}

impl SlackUser {
    fn name(self) -> Option<String> {
        let SlackProfile { display_name, real_name } = self.profile;
        [display_name, real_name, self.real_name, self.name]
            .into_iter()
            .flatten()
            .find(|name| !name.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Json, Router, routing::post};
    use serde_json::{Value, json};

    /// Knows everybody, and never answers about one.
    async fn told(form: String) -> Json<Value> {
        if form.contains("USLOW") {
            std::future::pending::<()>().await;
        }
        Json(json!({"ok": true, "user": {"name": "bob"}}))
    }

    #[tokio::test]
    async fn a_name_for_which_no_time_was_left_is_asked_for_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/users.info", post(told));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let client = SlackClient::new(api.parse().unwrap(), "xoxb-1".into(), None).unwrap();
        let people = People::default();
        let names = people.names(&client, &["USLOW".into(), "U2".into()]).await;
        assert_eq!(names, HashMap::new());
        let names = people.names(&client, &["USLOW".into(), "U2".into()]).await;
        assert_eq!(names, HashMap::from([("U2".to_owned(), "bob".to_owned())]), "only the slow one is left");
    }
}
