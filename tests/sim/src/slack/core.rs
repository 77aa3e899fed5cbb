//! Handling of a call: the method's effect, and its response in the Web API's format.

use super::{
    error::{Answer, Refusal},
    methods,
    params::Params,
    world::World,
};
use crate::{
    calls::Outcome,
    fault::Fault,
    stage::{self, Books, Reply, Stage},
};
use tokio::time::Instant;

/// Internals of the server.
pub(crate) type Core = Stage<World>;

impl stage::World for World {
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    fn refuse(fault: &Fault) -> stage::Answer {
        let refusal = match fault {
            Fault::TooMany(seconds) => Refusal::too_many(*seconds),
            Fault::Refused(status, error) => Refusal { status: *status, ..Refusal::new(error) },
            _ => Refusal { status: 500, ..Refusal::new("internal_error") },
        };
        refused(&refusal)
    }
}

impl Core {
    /// Executes a call, or fails it as planned. Unknown methods are recorded too.
    pub(crate) async fn call(&self, name: &str, token: Option<&str>, params: Params) -> Reply {
        self.run(name, params.record(), async {
            match self.act(|world| answer(world, name, token, &params)) {
                Ok(value) => {
                    let scopes = self.look(|world| world.scopes.iter().cloned().collect::<Vec<_>>());
                    let headers = vec![("x-oauth-scopes", scopes.join(","))];
                    (Reply::Headed(200, headers, value.clone()), Outcome::Answered(value))
                }
                Err(refusal) => refused(&refusal),
            }
        })
        .await
    }
}

fn answer(world: &mut World, name: &str, token: Option<&str>, params: &Params) -> Answer {
    let method = methods::find(name, world).ok_or_else(|| Refusal::new("unknown_method"))?;
    let token = token.ok_or_else(|| Refusal::new("not_authed"))?;
    if let Some(error) = &world.revoked {
        return Err(Refusal::new(error));
    }
    let (bot, app) = (token == world.options.bot_token, token == world.options.app_token);
    if !bot && !app {
        return Err(Refusal::new("invalid_auth"));
    }
    if app != method.app && method.name != "api.test" {
        return Err(Refusal::new("not_allowed_token_type"));
    }
    world.meter.pass(method.name, params.text("channel").unwrap_or_default(), Instant::now())?;
    // Methods that read ignore JSON.
    let empty = Params::default();
    let params = if params.json && !method.json { &empty } else { params };
    (method.effect)(world, params)
}

pub(crate) fn refused(refusal: &Refusal) -> stage::Answer {
    let outcome = Outcome::Refused(refusal.status, refusal.error.clone());
    let headers = refusal.retry_after.map(|seconds| ("retry-after", seconds.to_string()));
    (Reply::Headed(refusal.status, headers.into_iter().collect(), refusal.body()), outcome)
}
