//! Ways in for fuzzers, which live in a workspace of their own and see only what is public. Each checks what
//! must hold for any input at all.

use crate::{
    render::{parse, telegram::html},
    split::{self, Limit, Unit},
};

/// Cuts any Markdown at any limit: every part fits and holds something, no letter is lost, and the parts can
/// be written.
pub fn split(unit: u8, max: u8, text: &str) {
    let unit = match unit % 3 {
        0 => Unit::Bytes,
        1 => Unit::Chars,
        _ => Unit::Utf16,
    };
    let limit = Limit { unit, max: usize::from(max).max(8) };
    let rich = parse(text);
    let parts = split::split(&rich, limit);
    for part in &parts {
        assert!(unit.len(&part.text) <= limit.max, "{part:?} does not fit {limit:?}");
        assert!(!part.text.trim().is_empty());
        assert!(!html(part).is_empty());
    }
    // The header of a table is repeated on purpose.
    if rich.spans.iter().all(|span| !matches!(span.style, crate::render::Style::Table { .. })) {
        let ink = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(parts.iter().map(|part| ink(&part.text)).collect::<String>(), ink(&rich.text));
    }
}
