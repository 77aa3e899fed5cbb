//! Compares and counts texts. Texts that differ only in case, width or spaces are equal.

use regex::Regex;
use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};
use unicode_normalization::UnicodeNormalization;

/// Characters per token, as in DeerFlow's `char` counting. Two wide characters count as one token.
const CHARS_PER_TOKEN: usize = 4;
const WIDE_PER_TOKEN: usize = 2;

/// Normalizes a text for comparison: compatibility forms composed, lower case, single spaces, no final punctuation.
#[must_use]
pub fn normalized(text: &str) -> String {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let spaced = folded.split_whitespace().collect::<Vec<_>>().join(" ");
    spaced.trim_end_matches(|c: char| ".!,;。!,;、".contains(c)).trim_end().to_owned()
}

/// Returns the words of a text: runs of letters and digits, and each character of a script without spaces as one word.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in normalized(text).chars() {
        if is_cjk(c) {
            words.push(c.to_string());
            words.push(String::new());
        } else if c.is_alphanumeric() {
            if let Some(last) = words.last_mut() {
                last.push(c);
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a character is of a script that is written without spaces.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3134F)
}

/// Counts tokens by characters, as DeerFlow does without a tokenizer.
#[must_use]
pub fn count_tokens(text: &str) -> usize {
    let (mut wide, mut narrow) = (0, 0);
    text.chars().for_each(|c| if is_cjk(c) { wide += 1 } else { narrow += 1 });
    narrow / CHARS_PER_TOKEN + wide / WIDE_PER_TOKEN
}

/// Escapes characters that begin a tag, but not quotes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Reverts [`escape`], and the escaped quotes that a model may add.
pub(crate) fn unescape(text: &str) -> String {
    let quotes = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    quotes.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Contractions typed without their apostrophe: "im a nurse", "dont".
static HASTY: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let own = r"(?i)(^\W*|[.,!?;\n]\s*|\b(?:and|but|so|since|as|because|btw|that)\s+)(i)(m|ve)\b";
    let negated = r"(?i)\b(do|does|did|is|are|was|were|have|has|had|ca|could|wo|would|should)(nt)\b";
    Some([Regex::new(own).ok()?, Regex::new(negated).ok()?])
});

/// Returns a text with straight quotation marks and apostrophes, and adds apostrophes omitted in hasty typing.
pub(crate) fn straight_quotes(text: &str) -> String {
    let text = text.replace(['\u{2018}', '\u{2019}'], "'").replace(['\u{201c}', '\u{201d}'], "\"");
    let Some([own, negated]) = HASTY.as_ref() else { return text };
    negated.replace_all(&own.replace_all(&text, "$1$2'$3"), "${1}n't").into_owned()
}

/// Traditional characters in the words of the statement rules, in the order of [`SIMPLIFIED`].
const TRADITIONAL: &str = "萬與業東丟兩個臨爲為麼習書買亂產親僅從們優會傳餘兒關養內寫馮決況準湊幾劃劉剛別劇動區醫單賣盧卻厭雙發變臺葉後嗎聽吳員團聲\
    備復頭婦媽嬰孫學實對導將堯嶽師帶幫幹應開棄張當錄憶懷總惡慣願戲戶護報換據攢敵數斷無時暫機條來楊極構標樣檔夢檢樓歡畢湯沒測\
    潤點煙煩愛爺猶獨貓現畫療確離稱類糾級線組紹經結給絕統續綠編網羅職蘇薦蕭蔣慮虛補裝覺計訂認討讓記講許論設識訴診譯試話該語誤\
    說請讀誰談謝譚賈賴趙轉輪較輛輸辭邊過還這遠連鄧鄒鄰鄭釋裡裏鍾鐘鋼錢銷錯長門問間閨聞閱閻隊陽陸陳隨難韓頁項顧領題飛馬驗黃龍\
    龔隻妳戀託閒";
/// The simplified forms.
const SIMPLIFIED: &str = "万与业东丢两个临为为么习书买乱产亲仅从们优会传余儿关养内写冯决况准凑几划刘刚别剧动区医单卖卢却厌双发变台叶后吗听吴员团声\
    备复头妇妈婴孙学实对导将尧岳师带帮干应开弃张当录忆怀总恶惯愿戏户护报换据攒敌数断无时暂机条来杨极构标样档梦检楼欢毕汤没测\
    润点烟烦爱爷犹独猫现画疗确离称类纠级线组绍经结给绝统续绿编网罗职苏荐萧蒋虑虚补装觉计订认讨让记讲许论设识诉诊译试话该语误\
    说请读谁谈谢谭贾赖赵转轮较辆输辞边过还这远连邓邹邻郑释里里钟钟钢钱销错长门问间闺闻阅阎队阳陆陈随难韩页项顾领题飞马验黄龙\
    龚只你恋托闲";

static SIMPLER: LazyLock<HashMap<char, char>> =
    LazyLock::new(|| TRADITIONAL.chars().zip(SIMPLIFIED.chars()).collect());

/// Replaces the traditional characters in the rules' words with simplified ones. Each has the same number of bytes as
/// the original, so positions in both texts are the same.
pub(crate) fn simplified(text: &str) -> String {
    text.chars().map(|c| SIMPLER.get(&c).copied().unwrap_or(c)).collect()
}

/// Splits a text into sentences, each with its end mark and the space after it.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let (mut all, mut rest, mut consumed) = (Vec::new(), text, 0);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let stops = matches!(c, '.' | '!' | '?' | ';') && next.is_none_or(char::is_whitespace);
        let is_between = c.is_whitespace() && next.is_some_and(|next| !next.is_whitespace());
        let ended = text.get(consumed..at).unwrap_or_default().trim_end().ends_with(['.', '!', '?', ';']);
        let ends = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            _ if is_between && ended => true,
            _ => stops && next.is_none(),
        };
        if ends && let Some((sentence, more)) = rest.split_at_checked(at + c.len_utf8() - consumed) {
            all.push(sentence);
            (rest, consumed) = (more, at + c.len_utf8());
        }
    }
    all.push(rest);
    all.retain(|sentence| !sentence.is_empty());
    all
}

/// Returns the first `chars` characters.
pub(crate) fn beginning(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// Returns the share of a text's words that occur in other texts, from 0 to 1.
pub(crate) fn share_of_words<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> f64 {
    let known: HashSet<String> = known.flat_map(split_words).collect();
    let words = split_words(text);
    let found = words.iter().filter(|word| known.contains(*word)).count();
    #[expect(clippy::cast_precision_loss, reason = "a few words")]
    let share = found as f64 / words.len().max(1) as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_at_their_ends() {
        for (text, expect) in [
            ("", &[][..]),
            ("One", &["One"]),
            ("I use 3.12. It works!  Yes", &["I use 3.12. ", "It works!  ", "Yes"]),
            ("我喜欢茶。真的！\nok", &["我喜欢茶。", "真的！", "\n", "ok"]),
            ("a.b? c", &["a.b? ", "c"]),
        ] {
            assert_eq!(sentences(text), expect, "{text}");
            assert_eq!(sentences(text).concat(), text);
        }
    }

    #[test]
    fn equivalent_texts_are_equal() {
        for (one, other) in
            [("Likes  tea.", "likes tea"), ("ＡＢＣ", "abc"), (" 喜欢茶。", "喜欢茶"), ("a\nb", "A b!")]
        {
            assert_eq!(normalized(one), normalized(other));
        }
        assert_ne!(normalized("likes tea"), normalized("likes no tea"));
        assert_eq!(split_words("Likes 绿茶, very-much"), ["likes", "绿", "茶", "very", "much"]);
        assert_eq!(unescape(&escape("<a> & \"b\"")), "<a> & \"b\"");
        assert_eq!(simplified("我沒有 dogs 喔"), "我没有 dogs 喔");
        assert_eq!(TRADITIONAL.chars().count(), SIMPLIFIED.chars().count());
        assert!(SIMPLER.iter().all(|(from, to)| from.len_utf8() == to.len_utf8()));
    }
}
