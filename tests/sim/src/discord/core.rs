//! Handling of a call: the method, its permissions, its effect, and its response in the API's format.

use super::{
    ask::Ask,
    error::{Answer, Refusal},
    interactions, me, messages,
    world::World,
};
use crate::{
    calls::Outcome,
    fault::Fault,
    stage::{self, Books, Reply, Stage},
};
use serde_json::Value;
use tokio::time::Instant;

/// Internals of the server.
pub(crate) type Core = Stage<World>;

impl stage::World for World {
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    /// The text of a refusal may begin with Discord's code: `50001 Missing Access`.
    fn refuse(fault: &Fault) -> stage::Answer {
        refused(&match fault {
            #[expect(clippy::cast_precision_loss, reason = "seconds that a test plans are few")]
            Fault::TooMany(seconds) => Refusal::too_many(*seconds as f64, false),
            Fault::Refused(status, text) => match text.split_once(' ') {
                Some((code, text)) if code.parse::<u32>().is_ok() => {
                    Refusal::new(*status, code.parse().unwrap_or(0), text)
                }
                _ => Refusal::new(*status, 0, text),
            },
            _ => Refusal::new(500, 0, "500: Internal Server Error"),
        })
    }
}

type Method = fn(&mut World, &Ask) -> Answer;

/// A method: its name in the record, its effect, and whether it needs the bot's token.
struct Found {
    name: &'static str,
    does: Method,
    open: bool,
}

fn find(ask: &Ask) -> Option<Found> {
    let path: Vec<&str> = ask.path.iter().map(String::as_str).collect();
    let bot = |name: &'static str, does: Method| Some(Found { name, does, open: false });
    let open = |name: &'static str, does: Method| Some(Found { name, does, open: true });
    match (ask.verb.as_str(), path.as_slice()) {
        ("GET", ["gateway"]) => open("gateway", me::gateway),
        ("GET", ["gateway", "bot"]) => bot("gateway.bot", me::gateway_for_bots),
        ("GET", ["users", "@me"]) => bot("me", me::user),
        ("GET", ["users", "@me", "guilds"]) => bot("guilds", me::guilds),
        ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
            bot("application", me::application)
        }
        ("GET", ["applications", _, "commands"]) => bot("commands.get", me::commands),
        ("PUT", ["applications", _, "commands"]) => bot("commands.put", me::put_commands),
        ("POST", ["users", "@me", "channels"]) => bot("dm.create", messages::direct),
        ("GET", ["guilds", _]) => bot("guild.get", me::guild),
        ("GET", ["guilds", _, "members", _]) => bot("member.get", me::member),
        ("GET", ["guilds", _, "channels"]) => bot("guild.channels", me::channels),
        ("GET", ["guilds", _, "roles"]) => bot("guild.roles", me::roles),
        ("GET", ["guilds", _, "threads", "active"]) => bot("threads.list", messages::threads),
        ("GET", ["channels", _]) => bot("channel.get", messages::channel),
        ("POST", ["channels", _, "typing"]) => bot("typing", messages::typing),
        ("GET", ["channels", _, "messages"]) => bot("message.list", messages::list),
        ("POST", ["channels", _, "messages"]) => bot("message.create", messages::create),
        ("GET", ["channels", _, "messages", _]) => bot("message.get", messages::get),
        ("PATCH", ["channels", _, "messages", _]) => bot("message.edit", messages::edit),
        ("DELETE", ["channels", _, "messages", _]) => bot("message.delete", messages::delete),
        ("POST", ["channels", _, "messages", _, "threads"]) => bot("thread.create", messages::thread),
        ("PUT", ["channels", _, "messages", _, "reactions", _, "@me"]) => {
            bot("reaction.add", messages::react)
        }
        ("POST", ["interactions", _, _, "callback"]) => open("interaction.callback", interactions::callback),
        ("GET", ["webhooks", _, _, "messages", _]) => open("original.get", interactions::get),
        ("PATCH", ["webhooks", _, _, "messages", _]) => open("original.edit", interactions::edit),
        ("DELETE", ["webhooks", _, _, "messages", _]) => open("original.delete", interactions::delete),
        ("POST", ["webhooks", _, _]) => open("followup.create", interactions::follow_up),
        _ => None,
    }
}

impl Core {
    /// Executes a call, or fails it as planned. Unknown methods are recorded too.
    pub(crate) async fn call(&self, ask: Ask) -> Reply {
        let found = find(&ask);
        let name = found.as_ref().map_or("unknown", |found| found.name);
        let reply = self.run(name, ask.record(), async {
            let answer = self.act(|world| answer(world, found, &ask));
            match answer {
                Ok((status, headers, value)) => {
                    (Reply::Headed(status, headers, value.clone()), Outcome::Answered(value))
                }
                Err(refusal) => refused(&refusal),
            }
        });
        let reply = reply.await;
        if matches!(reply, Reply::Json(401 | 403 | 429, _) | Reply::Headed(401 | 403 | 429, ..)) {
            self.act(|world| world.meter.invalid += 1);
        }
        reply
    }
}

type Headers = Vec<(&'static str, String)>;

fn answer(world: &mut World, found: Option<Found>, ask: &Ask) -> Answer<(u16, Headers, Value)> {
    let Found { name, does, open } = found.ok_or_else(|| Refusal::new(404, 0, "404: Not Found"))?;
    if !ask.agent.starts_with("DiscordBot (") {
        return Err(Refusal::new(403, 40333, "internal network error"));
    }
    let token = format!("Bot {}", world.options.token);
    if !open && (world.revoked || ask.token.as_ref() != Some(&token)) {
        return Err(Refusal::unauthorized());
    }
    let headers = world.meter.pass(name, ask.part(1), Instant::now())?;
    let (status, value) = does(world, ask).map_err(|mut refusal| {
        refusal.headers.extend(headers.clone());
        refusal
    })?;
    Ok((status, headers, value))
}

pub(crate) fn refused(refusal: &Refusal) -> stage::Answer {
    let Refusal { status, body, headers } = refusal;
    (Reply::Headed(*status, headers.clone(), body.clone()), Outcome::Refused(*status, refusal.says()))
}
