use super::*;
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, KOI8_U, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1254,
};
use proptest::prelude::*;

fn encoded(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    TextEncoding { encoding, bom: false }.encode(text, false).unwrap()
}

#[test]
fn text_is_decoded_with_its_encoding() {
    for (encoding, text) in [
        (UTF_8, "grüße 你好"),
        (UTF_8, ""),
        (GBK, "会议纪要：预算为一百二十万元。\n第二行\n"),
        (GBK, "# 计划\n会议纪要：预算为一百二十万元。\n第二行\n"),
        (GBK, "姓名;金额\n张三;12,5\n"),
        (GBK, "名称,数值\n你好世界,再见朋友\n"),
        (GB18030, "会议纪要：预算为一百二十万元 😀。\n"),
        (BIG5, "會議紀錄：預算為一百二十萬元。\n第二行\n"),
        (SHIFT_JIS, "エラー：接続に失敗しました\n"),
        (SHIFT_JIS, "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n髙橋淳,35,名古屋\n"),
        (EUC_JP, "エラー：接続に失敗しました。もう一度お試しください。\n"),
        (ISO_2022_JP, "エラー：接続に失敗しました\n"),
        (EUC_KR, "회의록: 예산은 백이십만 원입니다.\n둘째 줄\n"),
        (WINDOWS_1252, "Prüfung: Größe 3 €\n"),
        (WINDOWS_1252, "Résumé déjà lu à l’école\n"),
        (WINDOWS_1250, "Příliš žluťoučký kůň úpěl ďábelské ódy\n"),
        (WINDOWS_1251, "Отчёт о продажах за первый квартал\n"),
        (KOI8_U, "Отчёт о продажах за первый квартал\n"),
        (WINDOWS_1254, "Şirket çalışanları için ödeme özeti: ığdır\n"),
        (UTF_16LE, "会议纪要：预算为一百二十万元。\n第二行\n"),
        (UTF_16BE, "line one\r\nline two\r\n"),
        (UTF_16LE, "Prüfung: Größe 3 €\n"),
    ] {
        let bytes = encoded(encoding, text);
        let file = TextFile::read(bytes.clone()).unwrap();
        assert_eq!((file.text.as_str(), file.encoding.name()), (text, encoding.name()));
        assert_eq!(decode(&bytes), text);
        let longer = format!("{}{text}", "plain ASCII first\n".repeat(20_000));
        if ![UTF_16LE, UTF_16BE].contains(&encoding) {
            let file = TextFile::read(encoded(encoding, &longer)).unwrap();
            assert_eq!(file.text, longer, "{} after much ASCII", encoding.name());
        }
    }
}

#[test]
fn a_text_may_declare_its_encoding() {
    for (encoding, text) in [
        (SHIFT_JIS, "<meta charset=\"shift_jis\">日本語"),
        (
            GBK,
            "<html><head><meta charset=\"gb2312\"><title>公告</title></head><body><p>今日停牌</p></body></html>",
        ),
        (WINDOWS_1251, "<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>да</a>"),
        (BIG5, "# -*- coding: big5 -*-\nprint('中')\n"),
    ] {
        assert_eq!(decode(&encoded(encoding, text)), text);
    }
    // An unknown encoding is ignored.
    assert_eq!(
        decode(&encoded(GBK, "charset=utf-8 会议纪要：预算为一百二十万元。")).chars().last(),
        Some('。')
    );
    assert_eq!(decode("<meta charset=gbk>grüße".as_bytes()), "<meta charset=gbk>grüße");
}

#[test]
fn binary_files_are_not_text() {
    for (bytes, expect) in [
        (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], NotText::Binary),
        (b"hello\0\xFF", NotText::Binary),
        (b"\x7FELF\x02\x01\x01\0\0\0\0\0", NotText::Binary),
        (b"\x1F\x8B\x08\x08\x01\x02\x03\x04\xFF\xFE\xC0\xC1", NotText::Binary),
        (b"\xFF\xFE\0\0a\0\0\0", NotText::Utf32),
    ] {
        assert_eq!(TextFile::read(bytes.to_vec()), Err(expect), "{bytes:?}");
    }
    let noise: Vec<u8> = (1..4000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert_eq!(TextFile::read(noise), Err(NotText::Binary));
}

#[test]
fn an_invalid_byte_affects_nothing_else() {
    let log = "第一行：你好世界，再见朋友\n".repeat(3);
    let broken = [log.as_bytes(), b"cut \xE4\xBD\n"].concat();
    let file = TextFile::read(broken).unwrap();
    assert_eq!((file.text.as_str(), file.is_damaged()), (format!("{log}cut \u{FFFD}\n").as_str(), true));
    assert!(!TextFile::read("\u{FFFD}\n".into()).unwrap().is_damaged());
    let changed = file.with_text(&file.text.replacen("再见", "你好", 1)).unwrap();
    assert!(changed.ends_with(b"cut \xE4\xBD\n"), "{changed:?}");
    let lost = file.with_text(&file.text.replace("cut", "Cut"));
    assert_eq!(lost, Err(EncodeError::Bytes("UTF-8")));
}

#[test]
fn a_changed_text_keeps_encoding_and_byte_order_mark() {
    let check = |before: Vec<u8>, from: &str, to: &str, after: Vec<u8>| {
        let file = TextFile::read(before).unwrap();
        assert_eq!(file.with_text(&file.text.replace(from, to)), Ok(after), "{from}");
    };
    for encoding in [UTF_8, GBK, UTF_16LE, UTF_16BE] {
        let bytes = |text: &str| encoded(encoding, text);
        let text = "预算：一百\r\n第二行\r\n第三行";
        check(bytes(text), "一百", "二百", bytes("预算：二百\r\n第二行\r\n第三行"));
        check(bytes(text), "第二行\r\n", "", bytes("预算：一百\r\n第三行"));
        check(bytes(text), "第三行", "第三行\r\n", bytes("预算：一百\r\n第二行\r\n第三行\r\n"));
    }
    for (mark, encoding) in [("\u{FEFF}", UTF_8), ("\u{FEFF}", UTF_16LE), ("\u{FEFF}", UTF_16BE)] {
        let bytes = |text: &str| encoded(encoding, &format!("{mark}{text}"));
        check(bytes("a\nb\n"), "a", "ä", bytes("ä\nb\n"));
        check(bytes("a\nb\n"), "b", "ä", bytes("a\nä\n"));
        check(bytes("a\nb\n"), "a\n", "", bytes("b\n"));
    }
    let german = TextFile::read(encoded(WINDOWS_1252, "Prüfung: Größe 3 €\n")).unwrap();
    let error = EncodeError::Character { character: '会', encoding: "windows-1252" };
    assert_eq!(german.with_text("Prüfung: 会 €\n"), Err(error));
    assert_eq!(german.encoding.encode_addition("é\n"), Ok(b"\xE9\n".to_vec()));
    assert_eq!(german.encoding.encode_addition("会"), Err(error));
}

proptest! {
    #[test]
    fn unchanged_text_keeps_its_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(file) = TextFile::read(bytes.clone())
            && let Ok(same) = file.with_text(&file.text)
        {
            prop_assert_eq!(same, bytes);
        }
    }

    #[test]
    fn any_change_of_a_text_keeps_its_other_lines(
        lines in prop::collection::vec("[a-z会议纪要]{0,8}", 1..20),
        at in any::<prop::sample::Index>(),
        which in 0_usize..4,
    ) {
        let encoding = [UTF_8, GBK, UTF_16LE, UTF_16BE][which];
        let before = format!("会议纪要：预算为一百二十万元。\r\n{}", lines.join("\n"));
        // Not every text in GBK is detected as GBK.
        let mark = if [UTF_16LE, UTF_16BE].contains(&encoding) { "\u{FEFF}" } else { "" };
        let file = TextFile::read(encoded(encoding, &format!("{mark}{before}"))).ok();
        if let Some(file) = file.filter(|file| file.text == before) {
            let mut changed: Vec<&str> = before.split('\n').collect();
            let at = at.index(changed.len());
            changed[at] = "changed";
            let after = file.with_text(&changed.join("\n")).unwrap();
            prop_assert_eq!(file.encoding.decode(&after), changed.join("\n"));
        }
    }
}
