//! What `pudu doctor` finds out about an account.

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, in a few words: `token`, `scope chat:write`.
    pub what: String,
    /// What came out.
    pub found: Found,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is as it should be; what exactly, without secrets.
    Good(String),
    /// It works, but not everything will.
    Poor {
        /// What is missing.
        why: String,
        /// How to mend it.
        mend: String,
    },
    /// The account cannot work like this.
    Bad {
        /// What is wrong.
        why: String,
        /// How to mend it.
        mend: String,
    },
}

impl Check {
    /// It is as it should be.
    #[must_use]
    pub fn good(what: impl Into<String>, how: impl Into<String>) -> Self {
        Self { what: what.into(), found: Found::Good(how.into()) }
    }

    /// It works, but not everything will.
    #[must_use]
    pub fn poor(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { what: what.into(), found: Found::Poor { why: why.into(), mend: mend.into() } }
    }

    /// The account cannot work like this.
    #[must_use]
    pub fn bad(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { what: what.into(), found: Found::Bad { why: why.into(), mend: mend.into() } }
    }
}
