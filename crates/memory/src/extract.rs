//! Extracts facts from a conversation: the transcript that a model may read, the prompt, its answer, and the accepted
//! part. All functions are pure; the caller calls the model.
//!
//! DeerFlow trusts the model's labels. Here a model has to prove its claims: every new fact and summary, and every
//! removal without a replacement, has a `quote`, a verbatim piece of the person's own words from a sentence in which
//! they state something. The significant words, names and numbers of a fact must also come from the person. So nothing is
//! stored from an echoed prompt, quoted memory, a document that asks to be remembered or other people's words, even if
//! the model quotes them or draws conclusions from them. A fact that only repeats memory or text injected into the
//! conversation is also dropped. Finally, [`verify`] compares the fact with the statement: both must agree in negation,
//! time, doubt, wish and subject.
//!
//! Order: [`Transcript::from_turns`] → [`OfferedFacts::from_document`] and [`prompt`] → the model → [`Proposal::parse`] → [`Extraction::apply`].

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
