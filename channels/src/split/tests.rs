use super::{Limit, Unit, split};
use crate::render::{Rich, parse, telegram::html};
use proptest::prelude::*;

fn parts(markdown: &str, max: usize) -> Vec<String> {
    split(&parse(markdown), Limit { unit: Unit::Chars, max, columns: 60 }).iter().map(html).collect()
}

#[test]
fn a_cut_prefers_paragraphs_then_lines_then_words_then_characters() {
    assert_eq!(parts("one two\n\nthree\nfour", 12), ["one two", "three\nfour"]);
    assert_eq!(parts("one two\nthree four", 12), ["one two", "three four"]);
    assert_eq!(parts("one two three four", 14), ["one two three", "four"]);
    assert_eq!(parts("onetwothreefour", 8), ["onetwoth", "reefour"]);
}

#[test]
fn a_grapheme_is_not_cut() {
    let family = "👨‍👩‍👧";
    let text = format!("12345678{family}{family}");
    assert_eq!(parts(&text, 12), ["12345678".to_owned(), format!("{family}{family}")]);
}

#[test]
fn every_unit_is_counted_as_the_platform_counts() {
    assert_eq!([Unit::Bytes, Unit::Chars, Unit::Utf16].map(|unit| unit.len("a😀é")), [7, 3, 4]);
    let cut = |unit| split(&Rich::plain("😀".repeat(6)), Limit { unit, max: 8, columns: 60 }).len();
    assert_eq!([Unit::Bytes, Unit::Chars, Unit::Utf16].map(cut), [3, 1, 2]);
}

#[test]
fn styles_end_before_a_cut_and_begin_again_after_it() {
    assert_eq!(parts("**one two three four**", 14), ["<b>one two three</b>", "<b>four</b>"]);
    assert_eq!(
        parts("```rust\nlet a = 1;\n    let b = 2;\n```", 16),
        [
            "<pre><code class=\"language-rust\">let a = 1;</code></pre>",
            "<pre><code class=\"language-rust\">    let b = 2;</code></pre>"
        ]
    );
}

#[test]
fn a_table_that_fits_into_a_message_is_not_split() {
    let table = "|a|b|\n|-|-|\n|1|2|";
    assert_eq!(parts(&format!("hello\n\n{table}"), 20), ["hello", "<pre>a │ b\n──┼──\n1 │ 2</pre>"]);
}

#[test]
fn a_table_that_does_not_fit_is_cut_between_rows_and_keeps_its_header() {
    let table = "|a|b|\n|-|-|\n|1|2|\n|3|4|\n|5|6|";
    assert_eq!(parts(table, 24), ["<pre>a │ b\n──┼──\n1 │ 2\n3 │ 4</pre>", "<pre>a │ b\n──┼──\n5 │ 6</pre>"]);
}

#[test]
fn blank_code_makes_no_blank_message() {
    let code = format!("```\na{}b\n```", "\n".repeat(40));
    let blank = "\n".repeat(9);
    assert_eq!(parts(&code, 10), [format!("<pre>a{blank}</pre>"), "<pre>\n\n\n\n\n\n\n\nb</pre>".to_owned()]);
}

/// Typical Markdown of models in small pieces, without tables, whose headers are repeated on purpose.
fn markdown() -> impl Strategy<Value = String> {
    let words = "[a-zé中 ]{1,30}|👩‍🚀 ok|e\u{301}e\u{301}";
    let block = (words, 0..9).prop_map(|(words, kind)| match kind {
        0 => format!("## {words}"),
        1 => format!("- {words}\n- **{words}** x\n  1. {words}"),
        2 => format!("```rust\n  {words}\n\n    {words}\n```"),
        3 => format!("> {words} *{words}*"),
        4 => format!("a **{words}** b `{words}` [c {words}](https://x.y) ~~{words}~~"),
        5 => words.replace(' ', ""),
        6 => format!("{words} & <b> \"{words}\"\n{words}"),
        _ => words,
    });
    prop::collection::vec(block, 1..12).prop_map(|blocks| blocks.join("\n\n"))
}

fn ink(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Checks that tags are closed in order and that code is only where Telegram allows it.
fn assert_balanced(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {html}");
        } else {
            assert!(!matches!(open.last(), Some(&"code")), "a tag inside code in {html}");
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "in {html}");
}

proptest! {
    #[test]
    fn nothing_is_lost_and_every_part_fits(text in markdown(), max in 8_usize..200) {
        for unit in [Unit::Bytes, Unit::Chars, Unit::Utf16] {
            let rich = parse(&text);
            let parts = split(&rich, Limit { unit, max, columns: 60 });
            let joined: String = parts.iter().map(|part| ink(&part.text)).collect();
            prop_assert_eq!(joined, ink(&rich.text));
            for part in &parts {
                prop_assert!(unit.len(&part.text) <= max, "{} > {max}: {part:?}", unit.len(&part.text));
                prop_assert!(!part.text.trim().is_empty());
                assert_balanced(&html(part));
            }
        }
    }

    #[test]
    fn full_parts_of_a_growing_text_do_not_change(text in "[a-z中 ]{1,9}(\n|\n\n| )?([a-z中😀 ]{1,20}(\n|\n\n| )?){0,40}", max in 16_usize..80) {
        let limit = Limit { unit: Unit::Utf16, max, columns: 60 };
        let mut before: Vec<Rich> = Vec::new();
        for end in text.char_indices().map(|(at, c)| at + c.len_utf8()) {
            let now = split(&Rich::plain(text.get(..end).unwrap_or_default().trim()), limit);
            let full = before.len().saturating_sub(1);
            prop_assert_eq!(before.get(..full), now.get(..full));
            before = now;
        }
    }

    #[test]
    fn any_text_at_all_is_parsed_split_and_written(text in "\\PC{0,200}", max in 8_usize..60) {
        for part in split(&parse(&text), Limit { unit: Unit::Utf16, max, columns: 60 }) {
            assert_balanced(&html(&part));
        }
    }
}
