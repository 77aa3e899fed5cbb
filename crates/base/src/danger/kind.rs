//! Dangers that a command can be.

/// Why a command is dangerous; of two reasons the later one is the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// Its quotes do not close.
    Quotes,
    /// Its brackets do not close.
    Brackets,
    /// It is nested too deep to look through.
    Deep,
    /// It is too long to look through.
    Long,
    /// It overwrites data that others see.
    Pushes,
    /// It ends every process.
    Kills,
    /// It stops the machine.
    Stops,
    /// It changes who may do what, everywhere below.
    Modes,
    /// It asks for more rights.
    Rights,
    /// It runs a text that is put together only then.
    Evaluates,
    /// It deletes whatever it finds.
    DeletesFound,
    /// It makes something run later.
    Later,
    /// It writes where the system lives.
    Writes,
    /// It overwrites a disk or a file for good.
    Overwrites,
    /// It deletes whole folders.
    Deletes,
    /// It multiplies without end.
    Multiplies,
    /// It reads secrets.
    Secrets,
    /// It opens a connection of its own.
    Connects,
    /// It runs code that it hides.
    Hides,
    /// It runs code that it fetches.
    Fetches,
}

impl Danger {
    /// Returns the danger in a few words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Quotes => "its quotes do not close",
            Self::Brackets => "its brackets do not close",
            Self::Deep => "it is nested too deep to look through",
            Self::Long => "it is too long to look through",
            Self::Pushes => "it overwrites what others see",
            Self::Kills => "it ends every process",
            Self::Stops => "it stops the machine",
            Self::Modes => "it changes who may do what, everywhere below",
            Self::Rights => "it asks for more rights",
            Self::Evaluates => "it runs a text that is put together only then",
            Self::DeletesFound => "it deletes whatever it finds",
            Self::Later => "it makes something run later",
            Self::Writes => "it writes where the system lives",
            Self::Overwrites => "it overwrites a disk or a file for good",
            Self::Deletes => "it deletes whole folders",
            Self::Multiplies => "it multiplies without end",
            Self::Secrets => "it reads secrets",
            Self::Connects => "it opens a connection of its own",
            Self::Hides => "it runs what it hides",
            Self::Fetches => "it runs what it fetches",
        }
    }

    /// Returns whether all that is known is that it could not be read.
    #[must_use]
    pub fn is_unread(self) -> bool {
        self <= Self::Long
    }
}
