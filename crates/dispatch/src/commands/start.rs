//! `/start`, which Telegram sends at first contact.

use super::CommandSpec;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "start",
    argument: Language::argument_code,
    about: Language::about_start,
    run: |actor, arrival, _| {
        let text = actor.language(&arrival).hello();
        actor.answer(arrival, text);
        Box::pin(std::future::ready(()))
    },
};
