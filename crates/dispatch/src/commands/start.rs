//! `/start`, which Telegram sends at first contact.

use super::CommandSpec;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "start",
    argument: Language::argument_code,
    about: Language::about_start,
    run: |context, _| Box::pin(std::future::ready(context.language().hello().into())),
};
