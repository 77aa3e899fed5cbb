//! Declarations of keys.
//!
//! A key is declared once, where it is read: its name, its sentence, its type with range and unit, its default, and an
//! example where it has no fixed default. Reading records the declaration; the tables of `docs/configuration.md`,
//! `config.example.yaml` and the JSON schema are made of the records (`schema.rs`, `tests/documented.rs`). The
//! top that a section was opened from says when a change applies, see [`super::reader::Effect`].

use super::{
    declaration::{KeyDeclaration, ValueKind},
    reader::{Effect, Section},
};

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

/// Writes a value as a person would type it.
type ShowValue<T> = Box<dyn Fn(&T) -> String>;

/// One key's value, before its default is applied.
#[must_use]
pub(super) struct Setting<'s, 'r, T> {
    pub(super) section: &'s Section<'r>,
    pub(super) key: &'s str,
    pub(super) kind: ValueKind,
    pub(super) show: ShowValue<T>,
    pub(super) value: Option<T>,
    /// Whether there was a value that could not be used, which is reported already.
    pub(super) spoilt: bool,
    pub(super) about: &'static str,
    pub(super) example: Option<&'static str>,
    pub(super) effect: Effect,
}

impl<'s, 'r, T> Setting<'s, 'r, T> {
    /// Makes a setting that is not described yet.
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

    /// Says the sentence of the key.
    pub(super) fn about(self, about: &'static str) -> Self {
        Self { about: about.trim_start(), ..self }
    }

    /// Gives an example in YAML.
    pub(super) fn eg(self, example: &'static str) -> Self {
        Self { example: Some(example), ..self }
    }

    /// Says when a change applies, where that is not as in the rest of the walk.
    pub(super) fn applies(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Takes `default` if the key is absent.
    pub(super) fn or(self, default: T) -> T {
        let words = (self.show)(&default);
        self.or_told(default, &words)
    }

    /// Takes `default` if the key is absent; `words` describes the default to people.
    pub(super) fn or_told(self, default: T, words: &str) -> T {
        let usual = (self.show)(&default);
        let shown = self.value.as_ref().map_or_else(|| usual.clone(), &self.show);
        self.record(words, Some(usual), &shown);
        self.value.unwrap_or(default)
    }

    /// Lets the key be absent; `words` describes its absence to people.
    pub(super) fn optional(self, words: &str) -> Option<T> {
        let shown = self.value.as_ref().map_or_else(String::new, &self.show);
        self.record(words, None, &shown);
        self.value
    }

    /// Takes the value without recording its key as one of pudu's own, so that no text advises people to write it.
    pub(super) fn foreign(self) -> Option<T> {
        self.value
    }

    /// Requires the value, where the section has an effect.
    pub(super) fn required(self, help: &str) -> Option<T> {
        if self.value.is_none() && !self.spoilt && self.section.is_needed() {
            self.section.refuse(self.key, "this is missing or empty", help);
        }
        self.optional("required")
    }

    /// Requires the value on a condition; `usual` describes its absence otherwise.
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
