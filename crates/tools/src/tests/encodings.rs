//! Files as Windows, Asia and macOS write them.

use super::{Bench, bench};
use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252};
use serde_json::json;

const ROOT: &str = "/mnt/user-data/workspace";

async fn put(bench: &Bench, name: &str, bytes: &[u8]) -> String {
    let path = format!("{ROOT}/{name}");
    bench.sandbox.write(&path, bytes, false).await.unwrap();
    path
}

async fn bytes(bench: &Bench, path: &str) -> Vec<u8> {
    bench.sandbox.read(path, 1_000_000).await.unwrap()
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

/// A text in each encoding, with a word to look for and another to put in its place.
fn samples() -> Vec<(String, Vec<u8>, String, &'static str, &'static str)> {
    let legacy = |encoding: &'static Encoding, text: &str, word, other| {
        (encoding.name().to_owned(), encoding.encode(text).0.into_owned(), text.to_owned(), word, other)
    };
    let chinese = "会议纪要：预算为一百二十万元。\r\n第二行\r\n";
    let wide = |name: &str, bytes| (name.to_owned(), bytes, chinese.to_owned(), "预算", "决算");
    vec![
        legacy(UTF_8, chinese, "预算", "决算"),
        wide("UTF-8", format!("\u{FEFF}{chinese}").into_bytes()),
        wide("UTF-16LE", utf16(&format!("\u{FEFF}{chinese}"), u16::to_le_bytes)),
        wide("UTF-16BE", utf16(&format!("\u{FEFF}{chinese}"), u16::to_be_bytes)),
        wide("UTF-16LE", utf16(chinese, u16::to_le_bytes)),
        wide("UTF-16BE", utf16(chinese, u16::to_be_bytes)),
        legacy(GBK, chinese, "预算", "决算"),
        legacy(BIG5, "會議紀錄：預算為一百二十萬元。\n第二行\n", "預算", "決算"),
        legacy(SHIFT_JIS, "エラー：接続に失敗しました\r\n", "失敗", "成功"),
        legacy(EUC_JP, "エラー：接続に失敗しました。もう一度お試しください。\n", "失敗", "成功"),
        legacy(EUC_KR, "회의록: 예산은 백이십만 원입니다.\n둘째 줄\n", "예산", "결산"),
        legacy(WINDOWS_1252, "Prüfung: Größe 3 €\r\n", "Größe", "Länge"),
        legacy(WINDOWS_1251, "Отчёт о продажах за первый квартал\n", "первый", "второй"),
    ]
}

#[tokio::test]
async fn files_are_read_searched_and_changed_in_their_encoding() {
    for (name, before, text, word, other) in samples() {
        let bench = bench().await;
        let path = put(&bench, "file.txt", &before).await;
        let read = bench.output("read_file", json!({"path": path})).await.unwrap().text;
        let note = if name == "UTF-8" {
            String::new()
        } else {
            format!("\n[the encoding of the file is {name}; changes keep it]")
        };
        assert_eq!(read, text.replace("\r\n", "\n") + &note);
        let line = text.lines().next().unwrap();
        bench.check("grep", json!({"pattern": word, "path": ROOT}), &format!("{path}:1: {line}")).await;
        let replace = |old: &str, new: &str| json!({"path": path, "old_str": old, "new_str": new});
        bench.check("str_replace", replace(word, other), "OK").await;
        let after = String::from_utf8_lossy(&bytes(&bench, &path).await).into_owned();
        assert!(name != "UTF-8" || after.contains(other), "{name}: {after}");
        let append = json!({"path": path, "content": format!("{word}\n"), "append": true});
        bench.check("write_file", append, "OK").await;
        // Undone, the file has its bytes again.
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let added = format!("{word}{line_end}");
        bench.check("str_replace", replace(&added, ""), "OK").await;
        bench.check("str_replace", replace(other, word), "OK").await;
        assert_eq!(bytes(&bench, &path).await, before, "{name}");
    }
}

#[tokio::test]
async fn a_character_that_the_encoding_does_not_have_changes_nothing() {
    let bench = bench().await;
    let before = b"Pr\xFCfung: Gr\xF6\xDFe 3 \x80\n";
    let path = put(&bench, "a.txt", before).await;
    bench.output("read_file", json!({"path": path})).await.unwrap();
    let error = format!(
        "Error: {path} was not changed: its encoding, windows-1252, cannot represent '会': omit the character, or \
         convert the file to UTF-8 first"
    );
    bench.check("str_replace", json!({"path": path, "old_str": "3", "new_str": "会"}), &error).await;
    bench.check("write_file", json!({"path": path, "content": "会", "append": true}), &error).await;
    assert_eq!(bytes(&bench, &path).await, before);
    let now = "OK: the encoding changed from windows-1252 to UTF-8";
    bench.check("write_file", json!({"path": path, "content": "会"}), now).await;
}

#[tokio::test]
async fn broken_bytes_are_shown_and_kept() {
    let bench = bench().await;
    let path = put(&bench, "a.log", "会议纪要：预算为一百二十万元\n".as_bytes()).await;
    bench.sandbox.write(&path, b"cut \xE4\xBC\nend\n", true).await.unwrap();
    let shown = "会议纪要：预算为一百二十万元\ncut \u{FFFD}\nend\n\n[bytes that are not valid UTF-8 are shown as \u{FFFD}]";
    assert_eq!(bench.output("read_file", json!({"path": path})).await.unwrap().text, shown);
    bench.check("str_replace", json!({"path": path, "old_str": "end", "new_str": "END"}), "OK").await;
    assert!(bytes(&bench, &path).await.ends_with(b"cut \xE4\xBC\nEND\n"));
    let error = format!(
        "Error: {path} was not changed: the lines to change contain bytes that are not valid UTF-8 and would be lost: \
         change the file with bash, or convert it first"
    );
    bench.check("str_replace", json!({"path": path, "old_str": "cut", "new_str": "CUT"}), &error).await;
}

#[tokio::test]
async fn what_is_not_text_is_named_with_its_reason() {
    let bench = bench().await;
    let binary = put(&bench, "a.bin", b"\x01\0\xFF\0 budget").await;
    let document = put(&bench, "b.docx", b"PK\x03\x04\0\0 budget").await;
    let wide = put(&bench, "c.txt", b"\xFF\xFE\0\0b\0\0\0").await;
    put(&bench, "d.txt", format!("budget\n{} budget\n", "x".repeat(3_000)).as_bytes()).await;
    let large = put(&bench, "e.txt", &b"budget ".repeat(200_000)).await;
    let utf32 = "it is in UTF-32: convert it with `iconv -f UTF-32 -t UTF-8`";
    bench
        .check(
            "read_file",
            json!({"path": binary}),
            &format!("Error: {binary} is not a text file: it is binary"),
        )
        .await;
    bench
        .check("read_file", json!({"path": wide}), &format!("Error: {wide} is not a text file: {utf32}"))
        .await;
    let advice = "but a document; an uploaded document has its text next to it as Markdown; use bash for other documents";
    let said = format!("Error: {document} is not a text file: it is binary, {advice}");
    bench.check("read_file", json!({"path": document}), &said).await;
    let expect = format!(
        "{ROOT}/d.txt:1: budget\n[not searched, larger than 1000000 bytes: {large}]\n[not searched, not text: it is \
         binary: {binary}, {document}]\n[not searched, not text: {utf32}: {wide}]\n[not searched: 1 lines longer than \
         2000 bytes]"
    );
    bench.check("grep", json!({"pattern": "budget", "path": ROOT}), &expect).await;
}

#[tokio::test]
async fn a_file_with_crlf_keeps_its_line_ends() {
    let bench = bench().await;
    let path = put(&bench, "w.txt", b"line one\r\nline two\r\nline three\r\n").await;
    bench.check("read_file", json!({"path": path}), "line one\nline two\nline three\n").await;
    let replace = |old: &str, new: &str| json!({"path": path, "old_str": old, "new_str": new});
    bench.check("str_replace", replace("line one\nline two", "line ONE\nline TWO"), "OK").await;
    bench.check("str_replace", replace("line three", "line 3\nline four"), "OK").await;
    assert_eq!(bytes(&bench, &path).await, b"line ONE\r\nline TWO\r\nline 3\r\nline four\r\n");
    bench.check("write_file", json!({"path": path, "content": "five\nsix\n", "append": true}), "OK").await;
    bench.check("str_replace", replace("four\r\nfive", "4\r\n5"), "OK").await;
    assert_eq!(bytes(&bench, &path).await, b"line ONE\r\nline TWO\r\nline 3\r\nline 4\r\n5\r\nsix\r\n");
    let same = "Error: old_str and new_str differ only in their line endings, which this tool preserves; use bash to convert them";
    bench.check("str_replace", replace("5\r\n", "5\n"), same).await;
}

#[tokio::test]
async fn names_are_found_with_accents_composed_or_not() {
    let (apart, composed) = ("Gru\u{308}ße/re\u{301}sume\u{301}.txt", "Grüße/résumé.txt");
    for (on_disk, asked) in
        [(apart, composed), (composed, apart), (composed, composed), ("한글/か\u{3099}.md", "한글/が.md")]
    {
        let bench = bench().await;
        let path = put(&bench, on_disk, "café\n".as_bytes()).await;
        let asked_path = format!("{ROOT}/{asked}");
        let (folder, name) = asked.split_once('/').unwrap();
        bench.check("read_file", json!({"path": asked_path}), "café\n").await;
        let replace = json!({"path": asked_path, "old_str": "café", "new_str": "cafe\u{301}"});
        bench.check("str_replace", replace, "OK").await;
        bench.check("write_file", json!({"path": asked_path, "content": "!", "append": true}), "OK").await;
        let found = format!("1. {path}");
        bench.check("glob", json!({"pattern": name, "path": ROOT}), &found).await;
        bench.check("glob", json!({"pattern": name, "path": format!("{ROOT}/{folder}")}), &found).await;
        let grep = json!({"pattern": "caf\u{e9}", "path": asked_path});
        bench.check("grep", grep, &format!("{path}:1: cafe\u{301}")).await;
        bench.check("ls", json!({"path": format!("{ROOT}/{folder}")}), &path).await;
    }
}

#[tokio::test]
async fn brackets_and_braces_may_belong_to_a_name() {
    let bench = bench().await;
    for name in [
        "app/[id]/page.tsx",
        "app/[...slug]/page.tsx",
        "app/[[...all]]/(group)/@modal/page.tsx",
        "api/{id}/x.yml",
        "a/b.c",
    ] {
        let path = put(&bench, name, b"word\n").await;
        bench.check("read_file", json!({"path": path}), "word\n").await;
        bench.check("glob", json!({"pattern": name, "path": ROOT}), &format!("1. {path}")).await;
        bench
            .check("grep", json!({"pattern": "word", "path": ROOT, "glob": name}), &format!("{path}:1: word"))
            .await;
        let folder = path.rsplit_once('/').unwrap().0;
        bench.check("glob", json!({"pattern": "*", "path": folder}), &format!("1. {path}")).await;
        bench.check("grep", json!({"pattern": "word", "path": path}), &format!("{path}:1: word")).await;
    }
    // As patterns they still have their meaning.
    let all = format!("1. {ROOT}/a/b.c");
    bench.check("glob", json!({"pattern": "[ab]/[a-c].{c,d}", "path": ROOT}), &all).await;
}
