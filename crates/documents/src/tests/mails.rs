//! E-mails as mail programs write them.

use super::{check, read};
use crate::DocumentKind;
use encoding_rs::GBK;

pub(super) fn sample() -> Vec<u8> {
    "From: =?utf-8?q?Zo=C3=AB_M=C3=BCller?= <zoe@example.org>\r\nTo: team@example.org, \"Bob, B.\" <bob@example.org>\r\nSubject: \
     =?gb2312?b?u+HS6bzN0qo=?= Q1\r\nDate: Mon, 02 Mar 2026 09:00:00 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"x\"\r\n\r\n\
     --x\r\nContent-Type: multipart/alternative; boundary=\"y\"\r\n\r\n--y\r\nContent-Type: text/plain; charset=\"utf-8\"\r\n\
     Content-Transfer-Encoding: base64\r\n\r\nR3LDvMOfZQo=\r\n--y\r\nContent-Type: text/html\r\n\r\n<p>Gr</p>\r\n--y--\r\n\
     --x\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename*=utf-8''%E6%95%B0%E6%8D%AE.csv\r\n\r\na;b\r\n\
     --x\r\nContent-Type: message/rfc822\r\n\r\nFrom: eve@example.org\r\nSubject: the offer\r\nDate: Sun, 01 Mar 2026 08:00:00 +0000\r\n\r\nOLD WORDS\r\n--x--\r\n"
        .replace("     ", "")
        .into_bytes()
}

#[test]
fn a_mail_has_headers_text_and_attachment_names() {
    let expect = "# 会议纪要 Q1\n\n- From: Zoë Müller <zoe@example.org>\n- To: team@example.org, Bob, B. <bob@example.org>\n- Date: \
         2026-03-02T09:00:00+01:00\n- Attachments: 数据.csv (text/csv, 3 bytes), mail \"the offer\" (message/rfc822, 93 bytes)\n\nGrüße\n\n\
         ## the offer\n\n- From: eve@example.org\n- Date: 2026-03-01T08:00:00Z\n\nOLD WORDS\n";
    let document =
        check(&sample(), "x.eml", DocumentKind::Eml, expect, &[(1, 1, "会议纪要 Q1"), (10, 2, "the offer")]);
    assert_eq!(document.title.as_deref(), Some("会议纪要 Q1"));
    assert_eq!(document.warnings, ["1 attachments are named but not read: ask for them as files"]);
    assert_eq!(read(&sample(), "forwarded").map(|document| document.kind), Ok(DocumentKind::Eml));
}

#[test]
fn a_mail_in_html_or_without_an_encoding_is_read() {
    let html = b"From: a@b.c\nSubject: x\nContent-Type: text/html\n\n<style>p{}</style><p>due <b>12 May</b><img src=cid:1></p>";
    assert!(read(html, "a.eml").unwrap().markdown.ends_with("\n\ndue **12 May**\n"));
    let plain =
        [b"From: a@b.c\nSubject: x\n\n".as_slice(), &GBK.encode("会议纪要：预算为一百二十万元。").0].concat();
    let markdown = read(&plain, "a.eml").unwrap().markdown;
    assert!(markdown.ends_with("\n\n会议纪要：预算为一百二十万元。\n"), "{markdown}");
}

#[test]
fn nested_mails_are_bounded() {
    let mut mail = "From: a@b.c\nSubject: 0\n\nend".to_owned();
    for at in 1..200 {
        mail = format!("From: a@b.c\nSubject: {at}\nContent-Type: message/rfc822\n\n{mail}");
    }
    assert!(read(mail.as_bytes(), "a.eml").is_ok());
}

#[test]
fn headers_are_read_in_national_encodings() {
    let subject = |bytes: &[u8]| read(bytes, "a.eml").unwrap().title.unwrap_or_default();
    // K-9 Mail #2499: a two-byte character is split at the end of an encoded word.
    let cut = b"From: =?gb2312?B?086yyZjl?= <user@example.org>\nSubject: =?gb2312?B?Obv9t9az6cnu29rHsLqju6rHyLPHSlfN8rrAvsa16qOsuPzT0DIwvNIzOTnU?=\n\t \
          =?GB2312?b?qr6r0aG439DHytTLr77Gteq1yMTjwLSjoaOoQUSjqQ?=\n\nhi\n";
    assert_eq!(subject(cut), "9积分抽深圳前海华侨城JW万豪酒店，更有20家399元精选高星试睡酒店等你来！（AD）");
    let quoted = b"From: a@b.c\nSubject: =?utf-8?Q?Gr=C3?= =?utf-8?Q?=BC=C3=9Fe?= and =?utf-8?B?w6Q=?= =?utf-8?B?w7Y=?=\n\nhi\n";
    assert_eq!(subject(quoted), "Grüße and äö");
    // nodemailer/mailparser #351: a head in GBK without a declaration.
    let raw = GBK.encode("From: a@b.c\r\nSubject:发信方已撤回邮件：测试测试\r\nDate:Thu, 1 Jun 2023 10:53:30 +0800\r\n\r\nhi\r\n").0;
    assert_eq!(subject(&raw), "发信方已撤回邮件：测试测试");
}
