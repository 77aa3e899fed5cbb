//! The commands that people may type, for platforms that have a menu of them.

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    /// Its name without the slash.
    pub name: String,
    /// What may stand behind it; empty for nothing.
    pub argument: String,
    /// What it does.
    pub help: String,
}
