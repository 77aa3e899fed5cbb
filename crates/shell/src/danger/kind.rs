//! Dangers that a command can be.

use crate::UnreadScript;

/// Declares the dangers with their texts.
macro_rules! dangers {
    ($($danger:ident: $text:literal,)*) => {
        /// Why a command is dangerous; of two reasons the later one is the worse.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Danger {
            /// It cannot be read.
            Unread(UnreadScript),
            $(#[doc = concat!("Reason: ", $text, ".")] $danger,)*
        }

        impl Danger {
            /// Returns the danger in a few words.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self {
                    Self::Unread(UnreadScript::Quotes) => "its quotes do not close",
                    Self::Unread(UnreadScript::Brackets) => "its brackets do not close",
                    Self::Unread(UnreadScript::Deep) => "it is nested too deep to look through",
                    Self::Unread(UnreadScript::Long) => "it is too long to look through",
                    $(Self::$danger => $text,)*
                }
            }
        }
    };
}

dangers! {
    Pushes: "it overwrites what others see",
    Kills: "it ends every process",
    Stops: "it stops the machine",
    Modes: "it changes who may do what, everywhere below",
    Rights: "it asks for more rights",
    Evaluates: "it runs a text that is put together only then",
    DeletesFound: "it deletes whatever it finds",
    Later: "it makes something run later",
    Writes: "it writes where the system lives",
    Overwrites: "it overwrites a disk or a file for good",
    Deletes: "it deletes whole folders",
    Multiplies: "it multiplies without end",
    Secrets: "it reads secrets",
    Connects: "it opens a connection of its own",
    Hides: "it runs what it hides",
    Fetches: "it runs what it fetches",
}

impl Danger {
    /// Returns whether all that is known is that it could not be read.
    #[must_use]
    pub fn is_unread(self) -> bool {
        matches!(self, Self::Unread(_))
    }
}
