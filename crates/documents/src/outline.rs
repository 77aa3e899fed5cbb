//! The headings of a Markdown text, and their lines.

use serde::{Deserialize, Serialize};

/// Maximum number of headings kept.
const MAX_HEADINGS: usize = 1_000;
/// Maximum length of a heading, in characters.
const MAX_HEADING_CHARS: usize = 120;

/// A heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Line of the heading, starting at 1.
    pub line: usize,
    /// Level, from 1 to 6.
    pub level: u8,
    /// Text, without markup.
    pub text: String,
}

/// Returns the headings of a Markdown text in order, up to a thousand.
#[must_use]
pub fn outline(markdown: &str) -> Vec<Heading> {
    let mut fenced = false;
    let mut headings = Vec::new();
    for (at, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && headings.len() < MAX_HEADINGS {
            headings.extend(heading(at + 1, line));
        }
    }
    headings
}

fn heading(line: usize, text: &str) -> Option<Heading> {
    let words = text.trim_start_matches('#');
    let level = u8::try_from(text.len() - words.len()).ok().filter(|level| (1..=6).contains(level))?;
    let words = words.strip_prefix(' ')?.trim().trim_end_matches('#').replace(['*', '`', '\\'], "");
    let text: String = words.trim().chars().take(MAX_HEADING_CHARS).collect();
    (!text.is_empty()).then_some(Heading { line, level, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_lines_and_levels() {
        let text = "# One\n\ntext\n#no\n## **Two** `x`\n```\n# code\n```\n####### seven\n###### Six ##\n# \n";
        let found: Vec<_> = outline(text).into_iter().map(|h| (h.line, h.level, h.text)).collect();
        let expect = [(1, 1, "One"), (5, 2, "Two x"), (10, 6, "Six")];
        assert_eq!(found, expect.map(|(line, level, text)| (line, level, text.to_owned())));
    }
}
