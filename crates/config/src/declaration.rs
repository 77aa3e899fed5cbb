//! The declaration of a key, used to generate its documentation.

use std::fmt;

/// The declaration of a key, for its documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyDeclaration {
    /// Its type.
    pub(super) kind: ValueKind,
    /// Description of its default.
    pub(super) default: String,
    /// Its default as a person would type it, if there is one.
    pub(super) usual: Option<String>,
    /// Its description.
    pub(super) about: &'static str,
    /// An example in YAML, if it has no fixed default.
    pub(super) example: Option<&'static str>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// Text of this kind.
    Text(&'static str),
    /// A boolean.
    Flag,
    /// A number in a range.
    Number {
        /// Its unit, or its kind.
        unit: &'static str,
        /// The smallest value.
        low: String,
        /// The largest value.
        high: String,
        /// Whether it must be an integer.
        is_whole: bool,
    },
    /// One of these words.
    Choice(Vec<&'static str>),
    /// A list of values of this kind.
    List(&'static str),
    /// A mapping whose keys pudu does not define.
    Mapping,
}

impl ValueKind {
    /// Describes the expected value in a sentence.
    pub(crate) fn expectation(&self) -> String {
        match self {
            Self::Number { unit, low, high, .. } => {
                let article = if unit.ends_with("number") { "a " } else { "" };
                format!("{article}{unit} from {low} to {high}")
            }
            Self::List(_) | Self::Mapping => format!("a {self}"),
            Self::Text(_) | Self::Flag | Self::Choice(_) => self.to_string(),
        }
    }
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
