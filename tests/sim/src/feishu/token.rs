//! The app's tokens: issued for its secret, reused until half an hour before their expiry, and refused afterwards.

use super::{
    ask::Ask,
    refusal::{Answer, Done, Refusal},
    world::World,
};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;

/// Remaining lifetime below which a new token is issued; both are valid until their own expiry.
const RENEWAL: Duration = Duration::from_secs(30 * 60);

/// Issued tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    given: Vec<Token>,
    count: u64,
}

#[derive(Debug)]
struct Token {
    text: String,
    ends: Instant,
    revoked: Option<i64>,
}

impl Tokens {
    /// Returns the current token, and its remaining lifetime in seconds.
    fn current(&mut self, life: Duration, now: Instant) -> (String, u64) {
        let renewal = RENEWAL.min(life / 4);
        let good = self.given.iter().rev().find(|one| one.revoked.is_none() && one.ends > now + renewal);
        if let Some(token) = good {
            return (token.text.clone(), token.ends.duration_since(now).as_secs());
        }
        self.count += 1;
        let text = format!("t-sim{:028x}", self.count);
        self.given.push(Token { text: text.clone(), ends: now + life, revoked: None });
        (text, life.as_secs())
    }

    pub(crate) fn revoke(&mut self, code: i64) {
        self.given.iter_mut().for_each(|token| token.revoked = Some(code));
    }

    /// Checks the token of a call.
    pub(crate) fn check(&self, asked: Option<&str>) -> Answer<()> {
        let Some(asked) = asked else {
            return Err(Refusal::new(99_991_661, "Missing access token for authorization."));
        };
        if !asked.starts_with("t-") && !asked.starts_with("u-") {
            return Err(Refusal::new(99_991_671, "Invalid access token: it must start with 't-' or 'u-'."));
        }
        let invalid = |code| Refusal::new(code, "Invalid access token for authorization.");
        let token = self.given.iter().find(|token| token.text == asked);
        let token = token.ok_or_else(|| invalid(99_991_663))?;
        match token.revoked {
            Some(code) => Err(invalid(code)),
            None if token.ends <= Instant::now() => Err(invalid(99_991_663)),
            None => Ok(()),
        }
    }
}

/// `auth/v3/tenant_access_token/internal`: its fields are at the top, and its errors have status 200.
pub(crate) fn internal(world: &mut World, ask: &Ask) -> Answer {
    if ask.text("app_id").is_none() || ask.text("app_secret").is_none() {
        return Err(Refusal::fine(10_003, "invalid param"));
    }
    if ask.text("app_id") != Some(world.options.app_id.as_str()) {
        return Err(Refusal::fine(10_003, "invalid app_id"));
    }
    if ask.text("app_secret") != Some(world.options.app_secret.as_str()) {
        return Err(Refusal::fine(10_014, "app secret invalid"));
    }
    let (token, expire) = world.tokens.current(world.options.token_life, Instant::now());
    let mut fields = Map::new();
    fields.insert("tenant_access_token".to_owned(), token.into());
    fields.insert("expire".to_owned(), expire.into());
    Ok(Done::Top(fields))
}

/// `bot/v3/info`: the bot is at the top.
pub(crate) fn bot(world: &mut World, _: &Ask) -> Answer {
    let bot = serde_json::json!({
        "activate_status": 2, "app_name": world.options.name, "avatar_url": "", "ip_white_list": [],
        "open_id": world.bot,
    });
    Ok(Done::Top(Map::from_iter([("bot".to_owned(), bot)])))
}

/// `contact/v3/users/:user_id`.
pub(crate) fn user(world: &mut World, ask: &Ask) -> Answer {
    let id = ask.id("user_id");
    let name = world.people.get(id).ok_or_else(|| Refusal::new(41_050, "no user authority error"))?;
    Ok(Done::Data(serde_json::json!({"user": {"open_id": id, "name": name}})))
}

/// `im/v1/chats/:chat_id`.
pub(crate) fn chat(world: &mut World, ask: &Ask) -> Answer {
    let chat = world.open_chat(ask.id("chat_id"))?;
    let data: Value = serde_json::json!({
        "name": chat.title, "chat_mode": chat.kind.mode(), "group_message_type": chat.kind.form(),
    });
    Ok(Done::Data(data))
}
