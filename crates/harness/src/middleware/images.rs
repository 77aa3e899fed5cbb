//! Images that the agent asked to see, for models that can see.
//!
//! The thread keeps their paths only. A request carries those of the newest results: once the model has
//! answered, it has said what it saw, and images are dear.

use super::Middleware;
use crate::{Agent, Turn};
use pudu_base::{BoxFuture, Failure, Image, Message, Picture, Request, Sandbox};
use std::sync::Arc;

/// An image is no larger, in bytes.
const LARGEST: u64 = 20 * 1024 * 1024;
/// A request carries no more of them, in bytes.
const MOST: usize = 40 * 1024 * 1024;

/// Puts images into requests.
pub struct Images {
    sandbox: Arc<dyn Sandbox>,
    sees: bool,
}

impl Images {
    /// For this agent, whose model may be blind.
    #[must_use]
    pub fn new(agent: &Agent) -> Self {
        Self { sandbox: agent.sandbox.clone(), sees: agent.model.sees() }
    }
}

impl Middleware for Images {
    fn name(&self) -> &'static str {
        "images"
    }

    fn before_model<'a>(
        &'a mut self,
        turn: &'a mut Turn,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let wanted = if self.sees { newest(turn) } else { Vec::new() };
            let mut room = MOST;
            for image in wanted {
                // One that is gone by now is not worth failing for: the model was told its name.
                let Ok(bytes) = self.sandbox.read(&image.path, LARGEST).await else { continue };
                if let Some(left) = room.checked_sub(bytes.len()) {
                    room = left;
                    request.images.push(Picture { image, bytes: bytes.into() });
                }
            }
            Ok(())
        })
    }
}

/// Returns the images of the newest results, oldest first.
fn newest(turn: &Turn) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    for message in turn.state().messages.values().rev() {
        let Message::Tool(result) = &**message else { break };
        images.extend(result.image.clone());
    }
    images.reverse();
    images
}
