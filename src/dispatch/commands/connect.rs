//! `/connect` of somebody who is known already. Codes of others never come here.

use super::CommandSpec;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "connect",
    argument: Language::argument_code,
    about: Language::about_connect,
    run: |actor, arrival, _| {
        let text = actor.language(&arrival).connect_needless();
        actor.answer(arrival, text);
        Box::pin(std::future::ready(()))
    },
};
