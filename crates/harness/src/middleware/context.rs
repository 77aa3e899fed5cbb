//! Middleware that fits each request into the model's context window; see `crate::context`.

use super::Middleware;
use crate::{RunState, context::ContextFit};
use pudu_base::{Assistant, BoxFuture, Request, RunFailure};

impl Middleware for ContextFit {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(async move {
            self.fit(run_state, request).await;
            Ok(())
        })
    }

    fn after_model(&mut self, _: &mut RunState, reply: &mut Assistant) {
        self.answered(reply);
    }

    fn too_long(&mut self, _: &RunState) -> bool {
        ContextFit::too_long(self)
    }
}
