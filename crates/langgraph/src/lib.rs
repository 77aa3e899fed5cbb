//! The data formats of LangGraph's and DeerFlow's APIs, which only this crate defines: messages, state, checkpoints,
//! runs, and stream frames. The gateway sends them, and programs that embed the agent get the same. This crate does no
//! IO: the caller passes in the data and sends the output.

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
pub mod protocol;
pub mod run;
mod sent_pieces;
pub mod skill;
pub mod steps;
pub mod task;
pub mod thread;
pub mod upload;
