//! Declarations of keys.
//!
//! A key is declared once, where it is read: its name, description, type with range and unit, default, and an example
//! if it has no fixed default. Reading records the declaration. The tables of `docs/configuration.md`,
//! `config.example.yaml` and the JSON schema are generated from the records (`schema.rs`, `tests/documented.rs`). The
//! top-level section of a key determines when a change to it takes effect; see [`super::reader::Effect`].

use super::{
    declaration::{KeyDeclaration, ValueKind},
    reader::{Effect, Section},
};

/// Reads keys of a section, each as `field: Type = reader(…).finisher(…);` below its description. A key whose name
/// differs from the field's is `field as "key"`. With `struct` the fields form a type with a `read` function, otherwise
/// they are bindings.
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

/// Formats a value as a person would type it.
type ShowValue<T> = Box<dyn Fn(&T) -> String>;

/// The value of a key before its default is applied.
#[must_use]
pub(super) struct Setting<'s, 'r, T> {
    pub(super) section: &'s Section<'r>,
    pub(super) key: &'s str,
    pub(super) kind: ValueKind,
    pub(super) show: ShowValue<T>,
    pub(super) value: Option<T>,
    /// Whether the value was invalid. The problem has already been reported.
    pub(super) spoilt: bool,
    pub(super) about: &'static str,
    pub(super) example: Option<&'static str>,
    pub(super) effect: Effect,
}

impl<'s, 'r, T> Setting<'s, 'r, T> {
    /// Creates a setting without a description.
    pub(super) fn new(
        section: &'s Section<'r>,
        key: &'s str,
        kind: ValueKind,
        show: impl Fn(&T) -> String + 'static,
        value: Option<T>,
        spoilt: bool,
    ) -> Self {
        let (show, effect) = (Box::new(show), section.effect());
        Self { section, key, kind, show, value, spoilt, about: "", example: None, effect }
    }

    /// Sets the description of the key.
    pub(super) fn about(self, about: &'static str) -> Self {
        Self { about: about.trim_start(), ..self }
    }

    /// Sets an example in YAML.
    pub(super) fn eg(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    /// Sets when a change applies, if it differs from the rest of the section.
    pub(super) fn applies(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Returns the value, or `default` if the key is absent.
    pub(super) fn or(self, default: T) -> T {
        let words = (self.show)(&default);
        self.or_described(default, &words)
    }

    /// Returns the value, or `default` if the key is absent. `words` describes the default in the documentation.
    pub(super) fn or_described(self, default: T, words: &str) -> T {
        let usual = (self.show)(&default);
        let shown = self.value.as_ref().map_or_else(|| usual.clone(), &self.show);
        self.record(words, Some(usual), &shown);
        self.value.unwrap_or(default)
    }

    /// Returns the value if the key is present. `words` is the default shown in the documentation.
    pub(super) fn optional(self, words: &str) -> Option<T> {
        let shown = self.value.as_ref().map_or_else(String::new, &self.show);
        self.record(words, None, &shown);
        self.value
    }

    /// Returns the value without recording its key, so that the documentation does not mention it.
    pub(super) fn foreign(self) -> Option<T> {
        self.value
    }

    /// Returns the value. Reports an error if it is absent and the section has an effect.
    pub(super) fn required(self, help: &str) -> Option<T> {
        if self.value.is_none() && !self.spoilt && self.section.is_needed() {
            self.section.refuse(self.key, "this is missing or empty", help);
        }
        self.optional("required")
    }

    /// Like [`Self::required`] if `needed`, otherwise like [`Self::optional`] with `usual`.
    pub(super) fn required_if(self, needed: bool, help: &str, usual: &str) -> Option<T> {
        if needed { self.required(help) } else { self.optional(usual) }
    }

    fn record(&self, words: &str, usual: Option<String>, value: &str) {
        let Self { about, example, .. } = *self;
        let declared =
            KeyDeclaration { kind: self.kind.clone(), default: words.to_owned(), usual, about, example };
        self.section.record(self.key, declared, self.effect, value);
    }
}
