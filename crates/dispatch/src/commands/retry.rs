//! `/retry`: asks the last question again.

use super::{CommandAnswer, CommandSpec};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "retry",
    argument: super::NO_ARGUMENT,
    about: Language::about_retry,
    run: |_, _| Box::pin(std::future::ready(CommandAnswer::Retry)),
};
