//! Markdown options shared by chats, page and terminal.
//!
//! Models write GitHub's Markdown with three differences. Emphasis next to Chinese, Japanese and Korean characters
//! needs no spaces. A single tilde is just a tilde. Formulas are written between `\(…\)`, `\[…\]` or dollar signs.

use comrak::{Arena, Node, Options, nodes::NodeMath, parse_document};

/// Maximum number of formulas to look for in a text. The parser searches the whole paragraph for the end of each.
const MAX_FORMULAS: usize = 1000;

/// Parses Markdown into a tree.
#[must_use]
pub fn tree<'a>(arena: &'a Arena<'a>, markdown: &str) -> Node<'a> {
    parse_document(arena, markdown, &options(markdown))
}

/// Returns the options for a text. A pair of single tildes becomes a `Subscript` node, whose tildes belong to the text.
#[must_use]
pub fn options(markdown: &str) -> Options<'static> {
    let formulas = markdown.matches(['$', '\\']).take(MAX_FORMULAS + 1).count() <= MAX_FORMULAS;
    let mut options = Options::default();
    let extension = &mut options.extension;
    extension.table = true;
    extension.tasklist = true;
    extension.strikethrough = true;
    extension.subscript = true;
    extension.cjk_friendly_emphasis = true;
    extension.footnotes = true;
    extension.math_latex = formulas;
    extension.math_dollars = formulas;
    options.parse.leave_footnote_definitions = true;
    options
}

/// A formula, or text that only looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Formula {
    /// An inline formula, without its delimiters.
    Inline(String),
    /// A formula on separate lines, without its delimiters.
    Block(String),
    /// Text including its delimiters: an amount, a shell variable, escaped brackets.
    Text(String),
}

/// Reads a math node. `delimiter` is the first character of its source.
pub(super) fn formula(math: &NodeMath, delimiter: char, alone: bool) -> Formula {
    let literal = math.literal.trim();
    let is_latex = |c: char| c.is_ascii_digit() || "\\^_=+-*/<>{}|".contains(c);
    match (delimiter, math.display_math) {
        ('$', false) => Formula::Text(format!("${}$", math.literal)),
        ('\\', true) if !literal.contains(is_latex) => Formula::Text(format!("[{}]", math.literal)),
        ('\\', false) if literal.chars().count() > 2 && !literal.contains(is_latex) => {
            Formula::Text(format!("({})", math.literal))
        }
        (_, true) if alone => Formula::Block(literal.to_owned()),
        _ => Formula::Inline(literal.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}
