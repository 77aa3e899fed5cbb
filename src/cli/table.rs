//! Formats tables: aligned columns below a header.

use unicode_width::UnicodeWidthStr;

/// Aligns rows in columns.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|at| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0)
    });
    let line = |row: &[String; N]| {
        let pad = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
        row.iter().zip(&widths).map(pad).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
