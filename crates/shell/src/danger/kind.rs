//! Kinds of danger that a command can have.

use crate::UnreadScript;

/// Declares the dangers and their texts.
macro_rules! dangers {
    ($($danger:ident: $text:literal,)*) => {
        /// Reason why a command is dangerous, in order of increasing severity.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Danger {
            /// The script cannot be parsed.
            Unread(UnreadScript),
            $(#[doc = concat!("Reason: ", $text, ".")] $danger,)*
        }

        impl Danger {
            /// Describes the danger in a few words.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self {
                    Self::Unread(UnreadScript::Quotes) => "it has unclosed quotes",
                    Self::Unread(UnreadScript::Brackets) => "it has unclosed brackets",
                    Self::Unread(UnreadScript::Deep) => "it is nested too deeply to be checked",
                    Self::Unread(UnreadScript::Long) => "it is too long to be checked",
                    $(Self::$danger => $text,)*
                }
            }
        }
    };
}

dangers! {
    Pushes: "it overwrites data that others see",
    Kills: "it kills every process",
    Stops: "it shuts down the machine",
    Modes: "it changes permissions recursively",
    Rights: "it asks for more rights",
    Evaluates: "it runs code that is assembled at run time",
    DeletesFound: "it deletes all matching files",
    Later: "it schedules a command",
    Writes: "it writes to system folders",
    Overwrites: "it permanently overwrites a disk or a file",
    Deletes: "it deletes whole folders",
    Multiplies: "it starts processes without end",
    Secrets: "it reads secrets",
    Connects: "it opens a network connection",
    Hides: "it runs code that it decodes",
    Fetches: "it runs code that it downloads",
}

impl Danger {
    /// Returns whether the script could not be parsed, so that its danger is unknown.
    #[must_use]
    pub fn is_unread(self) -> bool {
        matches!(self, Self::Unread(_))
    }
}
