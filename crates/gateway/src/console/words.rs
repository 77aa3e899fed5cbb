//! Tests that every UI string has a translation and no translation is stale.

use super::{PAGE, PAGE_FILES};
use std::collections::BTreeSet;

fn file(name: &str) -> &'static str {
    PAGE_FILES.iter().find(|(known, _)| *known == name).unwrap().1
}

/// Parses a table with one line per text: `'English': 'translation',`.
fn table(text: &str) -> Vec<(&str, &str)> {
    let rows =
        text.lines().filter_map(|line| line.strip_prefix("  '")?.strip_suffix("',")?.split_once("': '"));
    rows.collect()
}

/// Returns the translatable texts of a script: t`…`, with `{0}` for the first inserted value.
fn marked(script: &str) -> Vec<String> {
    let is_mark =
        |at: usize| !script.split_at(at).0.ends_with(|c: char| c.is_alphanumeric() || "_$.`".contains(c));
    let marks = script.match_indices("t`").filter(|(at, _)| is_mark(*at));
    marks.map(|(at, mark)| key(script.split_at(at + mark.len()).1)).collect()
}

fn key(mut rest: &str) -> String {
    let (mut key, mut count) = (String::new(), 0);
    while let Some(letter) = rest.chars().next().filter(|letter| *letter != '`') {
        if let Some(expression) = rest.strip_prefix("${") {
            key += &format!("{{{count}}}");
            count += 1;
            rest = expression.split_at(length(expression) + 1).1;
        } else {
            key.push(letter);
            rest = rest.split_at(letter.len_utf8()).1;
        }
    }
    key
}

/// Returns the length of a template expression, up to its closing brace.
fn length(expression: &str) -> usize {
    let mut depth = 0;
    let end = expression.char_indices().find(|(_, letter)| {
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth < 0
    });
    end.unwrap().0
}

/// Returns the document's visible strings and accessibility labels.
fn document_texts(document: &str) -> Vec<&str> {
    let body = document.split_once("<body>").unwrap().1;
    let texts = body.split('>').filter_map(|part| part.split('<').next()).map(str::trim);
    let attributes = ["title=\"", "aria-label=\"", "placeholder=\""];
    let attributes = attributes
        .iter()
        .flat_map(|name| body.split(*name).skip(1))
        .map(|rest| rest.split('"').next().unwrap());
    texts.chain(attributes).filter(|text| !matches!(*text, "" | "pudu" | "/")).collect()
}

#[test]
fn each_text_of_the_page_is_translated_once_and_no_translation_is_stale() {
    let scripts = PAGE_FILES.iter().filter(|(name, _)| name.ends_with(".js") && *name != "words.js");
    let mut texts: BTreeSet<String> = scripts.flat_map(|(_, script)| marked(script)).collect();
    texts.extend(document_texts(PAGE).into_iter().map(str::to_owned));
    let rows = table(file("zh-hans.js"));
    let translated: BTreeSet<String> = rows.iter().map(|(english, _)| (*english).to_owned()).collect();
    assert_eq!(translated.len(), rows.len(), "a text occurs twice");
    assert_eq!(texts.difference(&translated).collect::<Vec<_>>(), [""; 0], "not translated");
    assert_eq!(translated.difference(&texts).collect::<Vec<_>>(), [""; 0], "stale");
    let placeholder_counts =
        |text: &str| (0..9).map(|at| text.matches(&format!("{{{at}}}")).count()).collect::<Vec<_>>();
    for (english, chinese) in rows {
        assert_eq!(placeholder_counts(english), placeholder_counts(chinese), "{english}");
    }
}

#[test]
fn marked_texts_are_found_with_their_inserted_values() {
    let script = "a(t`one`); b(t`${x.map(y => `${y}`)} of ${z ?? { a: 1 }.a} done`); start`no`";
    assert_eq!(marked(script), ["one", "{0} of {1} done"]);
}
