//! Supported calls: their paths, their names in the record, and the required scopes.

use super::{
    ask::Ask,
    cards, files, messages,
    refusal::{Answer, Refusal},
    socket, token,
    world::World,
};

/// Implementation of a call.
pub(crate) type Work = fn(&mut World, &Ask) -> Answer;

/// A supported call.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    verb: &'static str,
    path: &'static str,
    /// The name in the record.
    pub(crate) name: &'static str,
    /// The required scope; `None` requires no token either.
    pub(crate) scope: Option<&'static str>,
    pub(crate) work: Work,
}

const fn route(
    verb: &'static str,
    path: &'static str,
    name: &'static str,
    scope: Option<&'static str>,
    work: Work,
) -> Route {
    Route { verb, path, name, scope, work }
}

const SEND: Option<&str> = Some("im:message:send_as_bot");
const READ: Option<&str> = Some("im:message");
const CARD: Option<&str> = Some("cardkit:card:write");
const FILE: Option<&str> = Some("im:resource");
const REACT: Option<&str> = Some("im:message.reactions:write_only");

const ROUTES: &[Route] = &[
    route("POST", "callback/ws/endpoint", "ws.endpoint", None, socket::endpoint),
    route("POST", "open-apis/auth/v3/tenant_access_token/internal", "auth.token", None, token::internal),
    route("GET", "open-apis/bot/v3/info", "bot.info", Some(""), token::bot),
    route(
        "GET",
        "open-apis/contact/v3/users/:user_id",
        "contact.user.get",
        Some("contact:user.base:readonly"),
        token::user,
    ),
    route("GET", "open-apis/im/v1/chats/:chat_id", "im.chat.get", Some("im:chat:readonly"), token::chat),
    route("POST", "open-apis/im/v1/messages", "im.message.create", SEND, messages::create),
    route("GET", "open-apis/im/v1/messages", "im.message.list", READ, messages::list),
    route("POST", "open-apis/im/v1/messages/:message_id/reply", "im.message.reply", SEND, messages::reply),
    route("GET", "open-apis/im/v1/messages/:message_id", "im.message.get", READ, messages::get),
    route("PUT", "open-apis/im/v1/messages/:message_id", "im.message.update", SEND, messages::update),
    route("PATCH", "open-apis/im/v1/messages/:message_id", "im.message.patch", SEND, messages::patch),
    route("DELETE", "open-apis/im/v1/messages/:message_id", "im.message.delete", SEND, messages::delete),
    route(
        "POST",
        "open-apis/im/v1/messages/:message_id/reactions",
        "im.reaction.create",
        REACT,
        messages::react,
    ),
    route(
        "DELETE",
        "open-apis/im/v1/messages/:message_id/reactions/:reaction_id",
        "im.reaction.delete",
        REACT,
        messages::unreact,
    ),
    route(
        "GET",
        "open-apis/im/v1/messages/:message_id/resources/:file_key",
        "im.resource.get",
        FILE,
        files::resource,
    ),
    route("POST", "open-apis/im/v1/images", "im.image.create", FILE, files::image),
    route("POST", "open-apis/im/v1/files", "im.file.create", FILE, files::file),
    route("POST", "open-apis/cardkit/v1/cards", "cardkit.card.create", CARD, cards::create),
    route("PUT", "open-apis/cardkit/v1/cards/:card_id", "cardkit.card.update", CARD, cards::update),
    route(
        "PATCH",
        "open-apis/cardkit/v1/cards/:card_id/settings",
        "cardkit.card.settings",
        CARD,
        cards::settings,
    ),
    route(
        "POST",
        "open-apis/cardkit/v1/cards/:card_id/batch_update",
        "cardkit.card.batch_update",
        CARD,
        cards::batch,
    ),
    route(
        "PUT",
        "open-apis/cardkit/v1/cards/:card_id/elements/:element_id/content",
        "cardkit.element.content",
        CARD,
        cards::content,
    ),
];

/// Finds the route of a call, and the parts of its path.
pub(crate) fn find(verb: &str, path: &str) -> Option<(Route, Vec<(&'static str, String)>)> {
    let asked: Vec<&str> = path.trim_matches('/').split('/').collect();
    ROUTES
        .iter()
        .filter(|route| route.verb == verb)
        .find_map(|route| Some((*route, fit(route.path, &asked)?)))
}

fn fit(pattern: &'static str, asked: &[&str]) -> Option<Vec<(&'static str, String)>> {
    let parts: Vec<&'static str> = pattern.split('/').collect();
    if parts.len() != asked.len() {
        return None;
    }
    let mut ids = Vec::new();
    for (part, asked) in parts.into_iter().zip(asked) {
        match part.strip_prefix(':') {
            Some(name) => ids.push((name, (*asked).to_owned())),
            None if part == *asked => {}
            None => return None,
        }
    }
    Some(ids)
}

/// Executes a call, if its token and the app's scopes allow it.
pub(crate) fn perform(world: &mut World, route: &Route, ask: &Ask) -> Answer {
    if let Some(scope) = route.scope {
        world.tokens.check(ask.token.as_deref())?;
        if world.missing.contains(scope) {
            let why = format!("Access denied. One of the following scopes is required: [{scope}].");
            return Err(Refusal::new(99_991_672, why));
        }
    }
    (route.work)(world, ask)
}
