//! Descriptions of what a message does while a run works.

pub(crate) use crate::config::FollowUpMode;

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
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Queue => "a message waits until I am done",
            Self::Steer => "a message reaches me while I work",
            Self::Interrupt => "a message stops what I do and is answered at once",
        }
    }

    /// Reads a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
