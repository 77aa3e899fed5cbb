//! `/retry`: asks the last question again.

use super::CommandSpec;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "retry",
    argument: "",
    help: "Ask the last question again",
    run: |actor, arrival, _| Box::pin(actor.retry(arrival)),
};
