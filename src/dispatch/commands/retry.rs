//! `/retry`: asks the last question again.

use super::CommandSpec;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "retry",
    argument: super::NO_ARGUMENT,
    about: Language::about_retry,
    run: |actor, arrival, _| Box::pin(actor.retry(arrival)),
};
