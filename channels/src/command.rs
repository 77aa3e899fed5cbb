//! Commands that people may type, for platforms that have a command menu.

use pudu_texts::Language;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    /// Its name without the slash.
    pub name: String,
    /// Placeholder for the command's argument; empty where it takes none.
    pub argument: String,
    /// Help text of the command.
    pub help: String,
    /// Help texts for people whose app has one of these languages.
    pub translations: Vec<(Language, String)>,
}
