//! The declaration of a key, from which its documents are made.

use std::fmt;

/// The declaration of a key, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyDeclaration {
    /// Its type.
    pub(super) kind: ValueKind,
    /// Description of its default.
    pub(super) default: String,
    /// Its default as a person would type it, where there is one.
    pub(super) usual: Option<String>,
    /// Its sentence.
    pub(super) about: &'static str,
    /// An example in YAML, where its default is not fixed.
    pub(super) example: Option<&'static str>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Text of a kind.
    Text(&'static str),
    /// A yes or no.
    Flag,
    /// A number in a range.
    Number {
        /// Its unit, or its kind.
        unit: &'static str,
        /// The smallest.
        low: String,
        /// The largest.
        high: String,
        /// Whether it has no fraction.
        is_whole: bool,
    },
    /// One of a few words.
    Choice(Vec<&'static str>),
    /// A list of a kind of values.
    List(&'static str),
    /// A mapping whose keys are not pudu's.
    Mapping,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(kind) => f.write_str(kind),
            Self::Flag => f.write_str("true or false"),
            Self::Number { unit, low, high, .. } => write!(f, "{unit}, {low} to {high}"),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::List(kind) => write!(f, "list of {kind}"),
            Self::Mapping => f.write_str("mapping"),
        }
    }
}
