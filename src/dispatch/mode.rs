//! Descriptions of what a message does while a run works.

pub(crate) use crate::config::FollowUpMode;
use pudu_texts::Language;

impl FollowUpMode {
    /// All modes, the default first.
    pub(crate) const ALL: [Self; 3] = [Self::Queue, Self::Steer, Self::Interrupt];

    /// Returns the name by which people choose it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }

    /// Returns its description.
    pub(crate) fn about(self, language: Language) -> &'static str {
        match self {
            Self::Queue => language.mode_queue(),
            Self::Steer => language.mode_steer(),
            Self::Interrupt => language.mode_interrupt(),
        }
    }

    /// Reads a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
