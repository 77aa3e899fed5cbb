//! Handling of a message that arrives during a run.

use pudu_texts::Language;

/// Handling of a message that arrives while the conversation's run is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUpMode {
    /// The message waits for the next turn.
    Queue,
    /// The message is inserted before the run's next step.
    Steer,
    /// The message stops the run.
    Interrupt,
}

impl FollowUpMode {
    /// All modes by their names, the default first.
    pub const NAMES: &[(&str, Self)] = &[
        (Self::Queue.name(), Self::Queue),
        (Self::Steer.name(), Self::Steer),
        (Self::Interrupt.name(), Self::Interrupt),
    ];

    /// Returns its name in commands and in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }

    /// Returns its description.
    pub fn about(self, language: Language) -> &'static str {
        match self {
            Self::Queue => language.mode_queue(),
            Self::Steer => language.mode_steer(),
            Self::Interrupt => language.mode_interrupt(),
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}
