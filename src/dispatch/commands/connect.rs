//! `/connect` of somebody who is known already. Codes of others never come here.

use super::CommandSpec;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "connect",
    argument: "[code]",
    help: "Make yourself known by a code",
    run: |actor, arrival, _| {
        actor.answer(arrival, "There is no need to: I know you already.");
        Box::pin(std::future::ready(()))
    },
};
