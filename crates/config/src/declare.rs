//! Declarations of keys.
//!
//! A key is declared once, where it is read: its name, its sentence, its type with range and unit, its default, and an
//! example where it has no fixed default. Reading records the declaration; the tables of `docs/configuration.md`,
//! `config.example.yaml` and the JSON schema are made of the records (`schema.rs`, `tests/documented.rs`). The
//! top that a section was opened from says when a change applies, see [`super::reader::Effect`].

use std::fmt;

/// Reads keys of a section, each as `field: Type = reader(…).finisher(…);` below its sentence. A key that is not called
/// like its field is `field as "key"`. With `struct` the fields make a type with a `read`, otherwise they are bindings.
macro_rules! settings {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    ($(#[$meta:meta])* $vis:vis struct $Name:ident($section:ident $(, $given:ident: $Given:ty)*) {$(
        $(#[doc = $about:literal])+ $field:ident $(as $key:literal)?: $Type:ty =
            $read:ident($($arg:expr),* $(,)?) $(.$step:ident($($value:expr),* $(,)?))+;
    )+}) => {
        $(#[$meta])*
        $vis struct $Name { $($(#[doc = $about])+ pub $field: $Type,)+ }
        impl $Name {
            /// Reads the keys.
            pub(crate) fn read($section: &Section<'_> $(, $given: $Given)*) -> Self {
                settings! { $section => $(
                    $(#[doc = $about])+ $field $(as $key)?: $Type = $read($($arg),*) $(.$step($($value),*))+;
                )+ }
                Self { $($field),+ }
            }
        }
    };
    ($section:ident => $(
        $(#[doc = $about:literal])+ $field:ident $(as $key:literal)? $(: $Type:ty)? =
            $read:ident($($arg:expr),* $(,)?) $(.$step:ident($($value:expr),* $(,)?))+;
    )+) => {$(
        let $field $(: $Type)? = $section.at(settings!(@key $field $($key)?)).$read(settings!(@key $field $($key)?), $($arg),*)
            .about(concat!($($about),+)) $(.$step($($value),*))+;
    )+};
}

/// The declaration of a key, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declaration {
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
    /// A number between two, both of which it may be.
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
