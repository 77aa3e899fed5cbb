//! `/start`, which Telegram sends at first contact.

use super::CommandSpec;

const HELLO: &str =
    "Hello, I am pudu. Send me a message to start a conversation.\n\nType /help for available commands.";

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "start",
    argument: "[code]",
    help: "Say hello",
    run: |actor, arrival, _| {
        actor.answer(arrival, HELLO);
        Box::pin(std::future::ready(()))
    },
};
