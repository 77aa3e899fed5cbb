//! Names and languages of users, looked up once and cached.

use super::client::SlackClient;
use crate::transport::Cache;
use serde::Deserialize;
use std::{collections::HashMap, time::Duration};
use tokio::time::{Instant, timeout};

/// How long a message waits for names.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a name is cached, and how long a failed look-up is not repeated.
const FRESH: Duration = Duration::from_secs(12 * 3600);
const FAILED_LOOKUP_TTL: Duration = Duration::from_secs(300);
/// Maximum number of names remembered.
const MAX_CACHED_NAMES: usize = 4096;
/// Maximum number of names looked up for one message.
const MAX_LOOKUPS_PER_MESSAGE: usize = 10;

/// Known users, by id.
#[derive(Default)]
pub(super) struct People(Cache<String, KnownPerson, MAX_CACHED_NAMES>);

/// A user who was looked up.
#[derive(Clone)]
struct KnownPerson {
    name: Option<String>,
    locale: Option<String>,
    until: Instant,
}

#[derive(Deserialize)]
struct UserInfoResponse {
    user: SlackUser,
}

#[derive(Default, Deserialize)]
struct SlackUser {
    name: Option<String>,
    real_name: Option<String>,
    locale: Option<String>,
    #[serde(default)]
    profile: SlackProfile,
}

#[derive(Default, Deserialize)]
struct SlackProfile {
    display_name: Option<String>,
    real_name: Option<String>,
}

impl People {
    /// Returns the names of users that are known or can be looked up in time.
    pub(super) async fn names(&self, client: &SlackClient, ids: &[String]) -> HashMap<String, String> {
        let mut names = HashMap::new();
        let deadline = Instant::now() + LOOKUP_TIMEOUT;
        for id in ids.iter().take(MAX_LOOKUPS_PER_MESSAGE) {
            let known = self.cached(id);
            let name = match known {
                Some(name) => name,
                None => self.ask(client, id, deadline).await,
            };
            names.extend(name.map(|name| (id.clone(), name)));
        }
        names
    }

    /// Returns the language of a user whose name was looked up recently.
    pub(super) fn language(&self, id: &str) -> Option<String> {
        self.0.get(id).and_then(|person| person.locale)
    }

    fn cached(&self, id: &str) -> Option<Option<String>> {
        self.0.get(id).filter(|person| person.until > Instant::now()).map(|person| person.name)
    }

    async fn ask(&self, client: &SlackClient, id: &str, deadline: Instant) -> Option<String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let params = [("user", id), ("include_locale", "true")];
        let asked = timeout(left, client.read::<UserInfoResponse>("users.info", &params)).await;
        let (name, locale) = match asked {
            Ok(Ok(response)) => {
                let locale = response.user.locale.clone();
                (response.user.name(), locale)
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "failed to look up a user's name; showing the id");
                (None, None)
            }
            // Other look-ups of this message used up the time; this user is looked up with the next message.
            Err(_) if left < LOOKUP_TIMEOUT / 2 => return None,
            Err(_) => (None, None),
        };
        let lasts = if name.is_some() { FRESH } else { FAILED_LOOKUP_TTL };
        let person = KnownPerson { name: name.clone(), locale, until: Instant::now() + lasts };
        self.0.put(id.to_owned(), person);
        name
    }
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

    /// A Slack API that knows every user, and never answers about one.
    async fn answer_user_info(form: String) -> Json<Value> {
        if form.contains("USLOW") {
            std::future::pending::<()>().await;
        }
        let mut user = json!({"name": "bob"});
        if form.contains("include_locale=true") {
            user["locale"] = "zh-CN".into();
        }
        Json(json!({"ok": true, "user": user}))
    }

    async fn client() -> SlackClient {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/users.info", post(answer_user_info));
        tokio::spawn(async move { axum::serve(listener, router).await });
        SlackClient::new(api.parse().unwrap(), "xoxb-1".into(), None).unwrap()
    }

    #[tokio::test]
    async fn a_user_who_was_looked_up_has_a_language() {
        let people = People::default();
        let client = client().await;
        assert_eq!(people.language("U2"), None, "a language alone is not looked up");
        people.names(&client, &["U2".into()]).await;
        assert_eq!(people.language("U2").as_deref(), Some("zh-CN"));
    }

    #[tokio::test]
    async fn a_name_without_time_for_its_look_up_is_requested_again() {
        let client = client().await;
        let people = People::default();
        let names = people.names(&client, &["USLOW".into(), "U2".into()]).await;
        assert_eq!(names, HashMap::new());
        let names = people.names(&client, &["USLOW".into(), "U2".into()]).await;
        assert_eq!(names, HashMap::from([("U2".to_owned(), "bob".to_owned())]), "the slow user is missing");
    }
}
