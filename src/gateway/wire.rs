//! The shapes of LangGraph and DeerFlow, which no other module knows: messages, state, checkpoints, runs, and the frames of
//! a stream. Sans IO: a caller brings what is read, and sends what comes out.

pub(super) mod checkpoint;
pub(super) mod event;
pub(super) mod frames;
pub(super) mod input;
pub(super) mod message;
pub(super) mod modes;
pub(super) mod run;
mod sent_pieces;
pub(super) mod task;
