//! Formats numbers as a workbook displays them.

use calamine::Style;
use ssfmt::{FormatOptions, NumberFormat};
use std::panic::catch_unwind;

/// Relative change that makes a whole number fractional without a visible effect.
const NUDGE: f64 = 1.0 / (1_u64 << 50) as f64;
/// Maximum length of a format code, in bytes.
const MAX_CODE_BYTES: usize = 1_000;

/// Number formats of a workbook, by style ID.
pub(super) struct Formats(Vec<Option<CellFormat>>);

struct CellFormat {
    format: NumberFormat,
    /// Whether the format displays thousands or millions, as in `0,"k"`.
    is_scaled: bool,
}

impl Formats {
    pub(super) fn new(styles: &[Style]) -> Self {
        Self(styles.iter().map(|style| parse(&style.number_format.as_ref()?.format_code)).collect())
    }

    /// Returns a number as its cell displays it; `None` if the cell has no format, or displays nothing.
    pub(super) fn show(&self, number: f64, style: usize) -> Option<String> {
        let CellFormat { format, is_scaled } = self.0.get(style)?.as_ref()?;
        // The library truncates scaled whole numbers, but rounds fractional ones.
        let number = if *is_scaled && number.fract() == 0.0 { number * (1.0 + NUDGE) } else { number };
        // A panic in this young library should cost only the format, not the workbook.
        let shown = catch_unwind(|| format.try_format(number, &FormatOptions::default()).ok()).ok()??;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        (!shown.is_empty()).then_some(shown)
    }
}

/// Parses a format code. Numbers without a format, texts and dates are handled elsewhere.
fn parse(code: &str) -> Option<CellFormat> {
    if code.len() > MAX_CODE_BYTES || matches!(code.trim(), "" | "@") || code.eq_ignore_ascii_case("general")
    {
        return None;
    }
    let format = catch_unwind(|| NumberFormat::parse(code).ok()).ok()??;
    let is_number = !format.is_date_format() && !format.is_text_format();
    is_number.then(|| CellFormat { format, is_scaled: is_scaled(code) })
}

/// Returns whether a comma after the last digit divides by a thousand.
fn is_scaled(code: &str) -> bool {
    let digit = |c: char| matches!(c, '0' | '#' | '?');
    let bare: String = code.split('"').step_by(2).collect();
    let commas = bare.match_indices(',');
    commas.into_iter().any(|(at, _)| {
        let (before, after) = bare.split_at(at);
        let after = after.trim_start_matches(',').chars().next();
        before.trim_end_matches(',').ends_with(digit) && !after.is_some_and(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted() {
        for (code, number, expect) in [
            ("0.00%", 0.0725, "7.25%"),
            ("0%", 0.5, "50%"),
            ("#,##0.00 \"€\"", 1234.5, "1,234.50 €"),
            ("#,##0.00\\ [$€-407]", 1234.5, "1,234.50 €"),
            ("[$¥-804]#,##0", 99.0, "¥99"),
            ("[$£-809]#,##0.00", 12.5, "£12.50"),
            ("$#,##0.00;[Red]($#,##0.00)", -1234.5, "($1,234.50)"),
            ("_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)", -5.0, "$(5.00)"),
            ("_($* #,##0.00_);_($* (#,##0.00);_($* \"-\"??_);_(@_)", 0.0, "$-"),
            ("\"¥\"0.00", 99.9, "¥99.90"),
            ("000-0000", 5_550_100.0, "555-0100"),
            ("00000", 1067.0, "01067"),
            ("\"A-\"0000", 42.0, "A-0042"),
            ("#,##0,\"k\"", 1_234_567.0, "1,235k"),
            ("#,##0.0,,\"M\"", 12_345_678.0, "12.3M"),
            ("0,", 1_499.0, "1"),
            ("0,", 1_500.0, "2"),
            ("#,##0,\"k\"", -1_234_567.0, "-1,235k"),
            ("# ?/?", 0.5, "1/2"),
            ("0.00E+00", 0.000_000_15, "1.50E-07"),
            ("0", 1_234_567_890_123.0, "1234567890123"),
            ("#,##0", -0.4, "0"),
            ("[>=1000]#,##0,\"K\";0", 1500.0, "2K"),
            ("0.0\" kg\"", 72.0, "72.0 kg"),
        ] {
            let shown = parse(code).map(|format| Formats(vec![Some(format)]).show(number, 0).unwrap());
            let shown = shown.map(|shown| if shown == "-0" { "0".to_owned() } else { shown });
            assert_eq!(shown.as_deref(), Some(expect), "{code}");
        }
        for code in
            ["General", "@", "yyyy-mm-dd", "[h]:mm:ss", "", "\"", "[", "0.0.0.0;;;;;;", &"0".repeat(2_000)]
        {
            let format = parse(code);
            assert!(
                format.is_none_or(|format| Formats(vec![Some(format)])
                    .show(1.0, 0)
                    .is_none_or(|s| s.len() < 50)),
                "{code}"
            );
        }
        // A value with a hiding format is shown.
        let hidden = Formats(vec![parse(";;;")]).show(42.0, 0);
        assert!(hidden.is_none_or(|shown| shown == "42"));
    }
}
