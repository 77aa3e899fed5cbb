//! Slash commands, for platforms with a command menu.

use pudu_texts::Language;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    /// Name without the slash.
    pub name: String,
    /// Placeholder for the command's argument; empty if it takes none.
    pub argument: String,
    /// Help text of the command.
    pub help: String,
    /// Help texts for users whose app is set to one of these languages.
    pub translations: Vec<(Language, String)>,
}
