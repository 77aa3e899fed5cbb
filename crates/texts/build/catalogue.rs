//! Parses and compares catalogues in Fluent's syntax.
//!
//! A catalogue consists of messages with arguments, string literals and plurals. Any other construct of the syntax is
//! refused.

use fluent_syntax::{
    ast::{Entry, Expression, InlineExpression, Pattern, PatternElement, Resource, Variant, VariantKey},
    parser,
};
use std::collections::{BTreeMap, BTreeSet};

/// All texts in one language.
pub(crate) struct Catalogue {
    pub(crate) language: String,
    pub(crate) texts: BTreeMap<String, CatalogueText>,
}

/// One text.
pub(crate) struct CatalogueText {
    pub(crate) pieces: Vec<TextPiece>,
}

/// A part of a text.
pub(crate) enum TextPiece {
    #[cfg_attr(test, expect(dead_code, reason = "only the build needs the words"))]
    Words(String),
    Argument(String),
    /// A count, with texts for exact numbers and one for all other numbers.
    Plural {
        count: String,
        exact: Vec<(usize, CatalogueText)>,
        other: CatalogueText,
    },
}

/// Arguments of a text, by name, and whether each is a count.
pub(crate) type Arguments = BTreeMap<String, bool>;

impl Catalogue {
    /// Parses a catalogue.
    ///
    /// # Errors
    /// When the syntax is invalid or unsupported, or a text is defined twice.
    pub(crate) fn parse(language: &str, path: &str, source: &str) -> Result<Self, String> {
        let broken = |(_, errors): (_, Vec<parser::ParserError>)| {
            let errors = errors.iter().map(|error| {
                let line = source.get(..error.pos.start).unwrap_or_default().lines().count();
                format!("{path}:{line}: {error}")
            });
            errors.collect::<Vec<_>>().join("\n")
        };
        let Resource { body } = parser::parse(source).map_err(broken)?;
        let mut texts = BTreeMap::new();
        for entry in &body {
            let message = match entry {
                Entry::Comment(_) | Entry::GroupComment(_) | Entry::ResourceComment(_) => continue,
                Entry::Message(message) => message,
                Entry::Term(_) | Entry::Junk { .. } => return Err(format!("{path}: not a text: {entry:?}")),
            };
            let name = message.id.name;
            let pattern = message.value.as_ref().filter(|_| message.attributes.is_empty());
            let pattern = pattern.ok_or_else(|| format!("{path}: `{name}` is not plain text"))?;
            let text = text(pattern).map_err(|why| format!("{path}: `{name}`: {why}"))?;
            if texts.insert(name.to_owned(), text).is_some() {
                return Err(format!("{path}: `{name}` occurs twice"));
            }
        }
        Ok(Self { language: language.to_owned(), texts })
    }

    /// Returns the differences between two catalogues in their texts and arguments.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.texts.keys().chain(other.texts.keys()).collect();
        let difference = |name: &String| match (self.texts.get(name), other.texts.get(name)) {
            (None, _) => Some(format!("`{name}` has no text in {}", self.language)),
            (_, None) => Some(format!("`{name}` has no text in {}", other.language)),
            (Some(one), Some(two)) => {
                let (one, two) = (one.arguments(), two.arguments());
                let same = one.keys().eq(two.keys());
                (!same).then(|| {
                    format!(
                        "`{name}` has the arguments {:?} in {} and {:?} in {}",
                        one.keys(),
                        self.language,
                        two.keys(),
                        other.language
                    )
                })
            }
        };
        names.into_iter().filter_map(difference).collect()
    }
}

fn text(pattern: &Pattern<&str>) -> Result<CatalogueText, String> {
    let piece = |element: &PatternElement<&str>| match element {
        PatternElement::TextElement { value } => Ok(TextPiece::Words((*value).to_owned())),
        PatternElement::Placeable { expression: Expression::Inline(inline) } => match inline {
            InlineExpression::StringLiteral { value } => Ok(TextPiece::Words((*value).to_owned())),
            InlineExpression::VariableReference { id } => Ok(TextPiece::Argument(id.name.to_owned())),
            other => Err(format!("not supported: {other:?}")),
        },
        PatternElement::Placeable { expression: Expression::Select { selector, variants } } => {
            plural(selector, variants)
        }
    };
    Ok(CatalogueText { pieces: pattern.elements.iter().map(piece).collect::<Result<_, _>>()? })
}

fn plural(selector: &InlineExpression<&str>, variants: &[Variant<&str>]) -> Result<TextPiece, String> {
    let InlineExpression::VariableReference { id } = selector else {
        return Err(format!("not a count: {selector:?}"));
    };
    let (mut exact, mut other) = (Vec::new(), None);
    for variant in variants {
        let words = text(&variant.value)?;
        match &variant.key {
            // The plural category of the number 1 in English. Chinese has no such category.
            VariantKey::Identifier { name: "one" } => exact.push((1, words)),
            VariantKey::Identifier { name: "other" } => other = Some(words),
            VariantKey::NumberLiteral { value } => {
                let number = value.parse().map_err(|_| format!("not a count: {value}"))?;
                exact.push((number, words));
            }
            VariantKey::Identifier { name } => return Err(format!("not a plural: {name}")),
        }
    }
    let other = other.ok_or("a plural without `other`")?;
    Ok(TextPiece::Plural { count: id.name.to_owned(), exact, other })
}

impl CatalogueText {
    /// Returns the text's arguments.
    pub(crate) fn arguments(&self) -> Arguments {
        let mut arguments = Arguments::new();
        self.add_arguments(&mut arguments);
        arguments
    }

    fn add_arguments(&self, arguments: &mut Arguments) {
        for piece in &self.pieces {
            match piece {
                TextPiece::Words(_) => {}
                TextPiece::Argument(name) => {
                    arguments.entry(name.clone()).or_insert(false);
                }
                TextPiece::Plural { count, exact, other } => {
                    arguments.insert(count.clone(), true);
                    exact.iter().for_each(|(_, text)| text.add_arguments(arguments));
                    other.add_arguments(arguments);
                }
            }
        }
    }
}
