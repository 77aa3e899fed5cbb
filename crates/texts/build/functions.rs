//! Generates Rust source code with one function per text.

use crate::catalogue::{Catalogue, CatalogueText, TextPiece};
use std::fmt::Write;

/// Returns the functions for all texts. They are methods of `Language`, with arguments in alphabetical order.
///
/// # Errors
/// When the catalogues have different texts or arguments.
pub(crate) fn functions(catalogues: &[Catalogue]) -> Result<String, String> {
    let Some((first, others)) = catalogues.split_first() else { return Ok(String::new()) };
    let differences: Vec<String> = others.iter().flat_map(|other| first.differences(other)).collect();
    if !differences.is_empty() {
        return Err(differences.join("\n"));
    }
    let (mut functions, mut samples) = (String::new(), String::new());
    for (name, text) in &first.texts {
        // An argument that is a count in one language is a count in all.
        let mut arguments = text.arguments();
        let others =
            catalogues.iter().filter_map(|one| one.texts.get(name)).flat_map(CatalogueText::arguments);
        arguments.extend(others.filter(|(_, count)| *count));
        functions.push_str("/// ```text\n");
        text.doc_text().lines().for_each(|line| add(&mut functions, format_args!("/// {line}\n")));
        add(&mut functions, format_args!("/// ```\n#[must_use]\npub fn {name}(self"));
        add(&mut samples, format_args!("(\"{name}\", language.{name}("));
        for (argument, count) in &arguments {
            let kind = if *count { "usize" } else { "impl Display" };
            add(&mut functions, format_args!(", {argument}: {kind}"));
            match count {
                true => samples.push_str("count,"),
                false => add(&mut samples, format_args!("\"‹{argument}›\",")),
            }
        }
        let result = if arguments.is_empty() { "&'static str" } else { "String" };
        add(&mut functions, format_args!(") -> {result} {{ match self {{\n"));
        for Catalogue { language, texts } in catalogues {
            let Some(text) = texts.get(name) else { continue };
            let words = if arguments.is_empty() { format!("{:?}", text.plain()) } else { text.expression() };
            add(&mut functions, format_args!("Self::{language} => {words},\n"));
        }
        functions.push_str("} }\n");
        samples.push_str(if arguments.is_empty() { ").to_owned()),\n" } else { ")),\n" });
    }
    Ok(format!(
        "impl Language {{\n{functions}}}\n\n#[cfg(test)]\nfn samples(language: Language, count: usize) \
         -> Vec<(&'static str, String)> {{\nvec![\n{samples}]\n}}\n"
    ))
}

impl CatalogueText {
    /// Returns an expression that creates the text as a `String`, with the arguments in scope.
    fn expression(&self) -> String {
        if self.arguments().is_empty() {
            return format!("String::from({:?})", self.plain());
        }
        let (mut template, mut values) = (String::new(), String::new());
        for piece in &self.pieces {
            match piece {
                TextPiece::Words(words) => template.push_str(&words.replace('{', "{{").replace('}', "}}")),
                TextPiece::Argument(name) => add(&mut template, format_args!("{{{name}}}")),
                TextPiece::Plural { count, exact, other } => {
                    template.push_str("{}");
                    add(&mut values, format_args!(", match {count} {{"));
                    for (number, text) in exact {
                        add(&mut values, format_args!("{number} => {}, ", text.expression()));
                    }
                    add(&mut values, format_args!("_ => {} }}", other.expression()));
                }
            }
        }
        format!("format!({template:?}{values})")
    }

    /// Returns a text that has no arguments.
    fn plain(&self) -> String {
        let words = self.pieces.iter().map(|piece| match piece {
            TextPiece::Words(words) => words.as_str(),
            TextPiece::Argument(_) | TextPiece::Plural { .. } => "",
        });
        words.collect()
    }

    /// Returns the text for the function's documentation.
    fn doc_text(&self) -> String {
        let piece = |piece: &TextPiece| match piece {
            TextPiece::Words(words) => words.clone(),
            TextPiece::Argument(name) => format!("{{{name}}}"),
            TextPiece::Plural { other, .. } => other.doc_text(),
        };
        self.pieces.iter().map(piece).collect()
    }
}

fn add(source: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = source.write_fmt(part);
}
