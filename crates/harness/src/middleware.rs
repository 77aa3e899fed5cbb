//! The concerns of a run, each a value that lives exactly as long as the run.

mod dangling;
mod model_errors;
mod tool_errors;
mod window;

pub use dangling::Dangling;
pub use model_errors::{ModelErrors, failure};
pub use tool_errors::ToolErrors;
pub use window::Window;

use crate::Turn;
use pudu_base::{Assistant, BoxFuture, Failure, Model, ModelError, Request, ToolCall, ToolError, ToolOutput};

/// One concern of a run. It keeps what it counts in itself: it is made when the run starts and gone when
/// the run is over. Hooks named `before` run in the chain's order, those named `after` in reverse. All
/// have a default that does nothing.
pub trait Middleware: Send {
    /// Names it, for logs and for the test that shows the chain.
    fn name(&self) -> &'static str;

    /// Once, before anything else.
    fn before_run<'a>(&'a mut self, _turn: &'a mut Turn) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Before each model call: may change what is asked.
    fn before_model<'a>(
        &'a mut self,
        _turn: &'a mut Turn,
        _request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// After each whole reply, before it is written down: may change it.
    fn after_model(&mut self, _turn: &mut Turn, _reply: &mut Assistant) {}

    /// When a model call failed for good: may say it for people. The first in the chain that does wins.
    fn model_failed(&mut self, _turn: &Turn, _error: &ModelError) -> Option<Failure> {
        None
    }

    /// Before each tool call: may refuse it.
    fn before_tool(&mut self, _turn: &Turn, _call: &ToolCall) -> Gate {
        Gate::Allow
    }

    /// After each tool call: may change what the model reads.
    fn after_tool(&mut self, _turn: &Turn, _call: &ToolCall, _result: &mut Result<ToolOutput, ToolError>) {}

    /// Once, after everything, however the run ended.
    fn after_run<'a>(&'a mut self, _turn: &'a mut Turn) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Whether a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Allow,
    /// It may not; the model reads why.
    Deny(String),
}

/// The lead agent's concerns, in order: the whole chain on one page.
#[must_use]
pub fn lead_chain(model: &dyn Model) -> Vec<Box<dyn Middleware>> {
    vec![Box::new(Window(model.window())), Box::new(Dangling), Box::new(ModelErrors), Box::new(ToolErrors)]
}

#[cfg(test)]
mod tests {
    use pudu_base::{Model, ModelStream, Request};

    struct Mute;

    impl Model for Mute {
        fn name(&self) -> &'static str {
            "mute"
        }

        fn stream(&self, _: Request) -> ModelStream {
            Box::pin(futures_util::stream::empty())
        }
    }

    #[test]
    fn the_lead_chain_is_this() {
        let names: Vec<_> = super::lead_chain(&Mute).iter().map(|middleware| middleware.name()).collect();
        assert_eq!(names, ["window", "dangling", "model_errors", "tool_errors"]);
    }
}
