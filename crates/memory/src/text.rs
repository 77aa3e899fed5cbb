//! Texts, compared and counted: two that differ in case, width or spaces alone say the same.

use unicode_normalization::UnicodeNormalization;

/// Characters of a token; a wide character is half a token. DeerFlow's `char` counting.
const CHARS_PER_TOKEN: usize = 4;
const WIDE_PER_TOKEN: usize = 2;

/// Returns a text as it is compared: compatibility forms composed, lower case, single spaces, no punctuation at its end.
#[must_use]
pub fn normalized(text: &str) -> String {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let spaced = folded.split_whitespace().collect::<Vec<_>>().join(" ");
    spaced.trim_end_matches(|c: char| ".!,;。!,;、".contains(c)).trim_end().to_owned()
}

/// Returns the words of a text: runs of letters and digits, and each character of a script without spaces by itself.
pub(crate) fn words(text: &str) -> Vec<String> {
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

/// Escapes what begins a tag, and leaves quotes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Undoes [`escape`], and the escaped quotes that a model may write on its own.
pub(crate) fn unescape(text: &str) -> String {
    let quotes = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    quotes.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Returns at most so many characters from the beginning.
pub(crate) fn beginning(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_say_the_same_are_equal() {
        for (one, other) in
            [("Likes  tea.", "likes tea"), ("ＡＢＣ", "abc"), (" 喜欢茶。", "喜欢茶"), ("a\nb", "A b!")]
        {
            assert_eq!(normalized(one), normalized(other));
        }
        assert_ne!(normalized("likes tea"), normalized("likes no tea"));
        assert_eq!(words("Likes 绿茶, very-much"), ["likes", "绿", "茶", "very", "much"]);
        assert_eq!(unescape(&escape("<a> & \"b\"")), "<a> & \"b\"");
    }
}
