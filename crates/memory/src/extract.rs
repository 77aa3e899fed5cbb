//! Extracts facts from a conversation: the transcript that a model may read, the prompt, its answer, and the accepted
//! part. All of it is pure; the caller calls the model.
//!
//! DeerFlow trusts the model's labels. Here a model has to prove its claims: every new fact and summary, and every
//! removal without a replacement, carries a `quote`, a verbatim piece of the person's own words from a sentence in
//! which they state something; and the fact's telling words, names and numbers have to be theirs. So an echoed prompt,
//! quoted memory, a document that asks to be remembered and other people's words store nothing, whatever the model
//! concludes from them and whichever words it quotes. A fact that only repeats memory or text injected into the
//! conversation is dropped, too. Last, [`verify`] compares the fact with the statement: neither negations nor times,
//! doubts, wishes and subjects may differ.
//!
//! Order: [`Transcript::of`] → [`OfferedFacts::of`] and [`prompt`] → the model → [`Proposal::parse`] → [`Extraction::apply`].

mod answer;
mod apply;
mod evidence;
mod offered;
mod own;
mod prompt;
mod refused;
mod signals;
mod statements;
mod support;
mod transcript;
mod verify;

pub use answer::{AnswerError, Proposal};
pub use apply::{Applied, Extraction, RefusedFact};
pub use evidence::{OwnWords, has_signal};
pub use offered::OfferedFacts;
pub use prompt::{ExtractionPrompt, PROMPT_VERSION, prompt};
pub use refused::RefusedReason;
pub use signals::{Signal, Signals};
pub use statements::states_something;
pub use transcript::{Person, SaidBy, Transcript, TranscriptTurn};

#[cfg(test)]
mod traps;
