//! The shapes of LangGraph and DeerFlow, which no other module knows: messages, state, checkpoints, runs, and the
//! frames of a stream. The gateway sends them, and a program that embeds the agent gets the same. Sans IO: a caller
//! passes in the data that it read, and sends the output.

pub mod artifact;
pub mod checkpoint;
pub mod clock;
pub mod event;
pub mod failure;
pub mod frame;
pub mod frames;
pub mod goal;
pub mod memory;
pub mod message;
pub mod model;
pub mod modes;
pub mod run;
mod sent_pieces;
pub mod skill;
pub mod steps;
pub mod task;
pub mod thread;
pub mod upload;
