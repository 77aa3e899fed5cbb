//! `/compact`: summarises the conversation so far. It is a run like any other: it can be stopped, messages wait for it,
//! and a restart resumes it.

use super::{CommandAnswer, CommandSpec};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "compact",
    argument: super::NO_ARGUMENT,
    about: Language::about_compact,
    run: |_, _| Box::pin(std::future::ready(CommandAnswer::Compact)),
};
