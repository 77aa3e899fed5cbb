//! Control words of rich text that matter to readers.

use encoding_rs::Encoding;

/// Where the text of a group belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RtfDestination {
    /// The document.
    Text,
    /// A footnote or a comment, at its position in the text.
    Footnote,
    /// The table of fonts, with their encodings.
    Fonts,
    /// Properties of the document.
    Info,
    /// The title among the properties.
    Title,
    /// A picture.
    Picture,
    /// The bullet or number of a list item.
    Label,
    /// A page header or footer.
    Margin,
    /// No destination; the text is dropped.
    Unknown,
}

/// Returns the destination that a control word begins.
pub(super) fn destination(word: &str) -> Option<RtfDestination> {
    Some(match word {
        "shptxt" | "shppict" | "fldrslt" => RtfDestination::Text,
        "listtext" | "pntext" => RtfDestination::Label,
        "footnote" | "annotation" => RtfDestination::Footnote,
        "fonttbl" => RtfDestination::Fonts,
        "info" => RtfDestination::Info,
        "title" => RtfDestination::Title,
        "pict" => RtfDestination::Picture,
        "header" | "headerl" | "headerr" | "headerf" | "footer" | "footerl" | "footerr" | "footerf" => {
            RtfDestination::Margin
        }
        "colortbl" | "stylesheet" | "author" | "operator" | "company" | "subject" | "keywords"
        | "comment" | "doccomm" | "creatim" | "revtim" | "printim" | "fldinst" | "objdata" | "objclass"
        | "nonshppict" | "xe" | "tc" | "bkmkstart" | "bkmkend" | "datafield" | "themedata"
        | "colorschememapping" | "latentstyles" | "listtable" | "listoverridetable" | "revtbl"
        | "rsidtbl" | "generator" => RtfDestination::Unknown,
        _ => return None,
    })
}

/// Returns the character for a control word.
pub(super) fn symbol(word: &str) -> Option<&'static str> {
    Some(match word {
        "tab" => "\t",
        "emdash" => "—",
        "endash" => "–",
        "bullet" => "•",
        "lquote" => "‘",
        "rquote" => "’",
        "ldblquote" => "“",
        "rdblquote" => "”",
        "emspace" | "enspace" => " ",
        _ => return None,
    })
}

/// Returns the encoding of a Windows code page.
pub(super) fn code_page(page: i32) -> Option<&'static Encoding> {
    match page {
        932 => Some(encoding_rs::SHIFT_JIS),
        936 => Some(encoding_rs::GBK),
        949 => Some(encoding_rs::EUC_KR),
        950 => Some(encoding_rs::BIG5),
        54936 => Some(encoding_rs::GB18030),
        65001 => Some(encoding_rs::UTF_8),
        866 => Some(encoding_rs::IBM866),
        874 => Some(encoding_rs::WINDOWS_874),
        10000 => Some(encoding_rs::MACINTOSH),
        _ => Encoding::for_label(format!("windows-{page}").as_bytes()),
    }
}

/// Returns the encoding of a font's character set.
pub(super) fn font_charset(charset: i32) -> Option<&'static Encoding> {
    let page = match charset {
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    };
    code_page(page)
}
