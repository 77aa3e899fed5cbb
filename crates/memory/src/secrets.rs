//! Secrets in people's messages: passwords, PINs, keys, and numbers of cards and documents. They are never remembered.
//!
//! Callers filter the process's own secrets separately. Deliberately absent: a list of vendors. A long word of mixed
//! letters and digits counts as a key with any prefix.

use regex::Regex;
use std::sync::LazyLock;

/// Replacement for a secret in a text.
const HIDDEN: &str = "[secret]";
/// Minimum length of a possible key, in characters.
const MIN_KEY_CHARS: usize = 16;
/// Minimum number of changes between letters and digits, or between cases, in a key: names and versions have fewer.
const MIN_KEY_CHANGES: usize = 4;
/// Number of digits of a card.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// Words that announce a secret, followed by the secret up to the end of the sentence.
const NAMED: &[&str] = &[
    r"(?i)\b(?:pass ?phrases?|pass ?codes?|api[ _-]?keys?|secret keys?|access keys?|private keys?|recovery (?:codes?|phrase)|seed phrases?|security codes?|one-time codes?|otp|cvv|cvc|social security (?:number|no\.?)|ssn|backup codes?)\b(?:[^\n。！？]{0,40}?\b(?:is|are|was|=|reads)\b|\s*[:=]|)\s*[^\s][^\n。！？]*",
    r"(?i)\b(?:passwords?|passwd|pwd|pins?|pin (?:code|number)|tokens?|secrets?|log ?in|credentials?|(?:bank |iban|account |passport |id(?:entity)? card |tax |insurance )(?:number|no\.?|id)|iban)\b[^\n.!?。！？]{0,60}?(?:\b(?:is|are|was|to)\b|[:=])\s*[^\s][^\n。！？]*",
    r"(?:密[码碼]|口令|密[钥鑰]|金[钥鑰]|[验驗][证證][码碼]|助[记記][词詞]|私[钥鑰]|令牌|權杖|(?:身份证|银行卡|信用卡|护照|社保|账|帐|卡)(?:账|帐)?号码?|安全码|支付码)[^\n。！？]{0,12}?(?:是|为|：|:|=|叫)\s*[^\s\n。！？]+",
    r"(?:密[码碼]|口令|[验驗][证證][码碼]|身份[证證][号號]?|[银銀]行卡[号號]?|卡[号號])[^\n。！？，]{0,4}[0-9A-Za-z]{4,}",
];
/// Mentions of such words without a secret.
const HARMLESS: &str = r"(?i)\b(?:passwords?|tokens?|secrets?|pins?|api keys?|credentials?) (?:managers?|vaults?|hygiene|polic(?:y|ies)|rotation|resets?|limits?|usage|santas?)\b|密码(?:管理|学|策略|本|重置)";
/// Known formats: social security numbers, Chinese identity cards, IBANs, blocks of key files.
const SHAPED: &str = r"\b\d{3}-\d{2}-\d{4}\b|\b[1-9]\d{5}(?:19|20)\d{9}[\dXx]\b|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b|-----BEGIN [^\n]*";

struct SecretRules {
    named: Vec<Regex>,
    harmless: Regex,
    shaped: Regex,
    digits: Regex,
    words: Regex,
}

static RULES: LazyLock<Option<SecretRules>> = LazyLock::new(|| {
    Some(SecretRules {
        named: NAMED.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>().ok()?,
        harmless: Regex::new(HARMLESS).ok()?,
        shaped: Regex::new(SHAPED).ok()?,
        digits: Regex::new(r"\d(?:[ -]?\d){12,18}").ok()?,
        words: Regex::new(r"[A-Za-z0-9_+/=.-]{16,}").ok()?,
    })
});

/// Whether a text contains a secret. Returns true for every text if the rules did not compile.
#[must_use]
pub fn has_secret(text: &str) -> bool {
    let Some(rules) = RULES.as_ref() else { return true };
    places(rules, text).next().is_some()
}

/// Returns a text with `[secret]` in place of its secrets.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let Some(rules) = RULES.as_ref() else { return HIDDEN.to_owned() };
    let mut places: Vec<(usize, usize)> = places(rules, text).collect();
    places.sort_unstable();
    let (mut clean, mut end) = (String::new(), 0);
    for (from, to) in places {
        if from >= end {
            clean.push_str(text.get(end..from).unwrap_or_default());
            clean.push_str(HIDDEN);
        }
        end = end.max(to);
    }
    clean.push_str(text.get(end..).unwrap_or_default());
    clean
}

/// Finds the positions of secrets, in bytes.
fn places<'t>(rules: &'t SecretRules, text: &'t str) -> impl Iterator<Item = (usize, usize)> + 't {
    let is_harmless = rules.harmless.is_match(text);
    let labelled = rules.named.iter().filter(move |_| !is_harmless).flat_map(|rule| rule.find_iter(text));
    let shaped = rules.shaped.find_iter(text);
    let cards = rules.digits.find_iter(text).filter(|found| is_card(found.as_str()));
    let keys = rules.words.find_iter(text).filter(|found| is_key(found.as_str()));
    labelled.chain(shaped).chain(cards).chain(keys).map(|found| (found.start(), found.end()))
}

/// Whether digits are the number of a payment card, by its check digit.
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit })
        .sum();
    CARD_DIGITS.contains(&digits.len()) && sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != 0)
}

/// Whether a word is a key: long, with letters and digits mixed more than in names.
fn is_key(word: &str) -> bool {
    let kind = |c: char| match c {
        '0'..='9' => 1,
        'a'..='z' => 2,
        'A'..='Z' => 3,
        _ => 0,
    };
    let kinds: Vec<u8> = word.chars().map(kind).filter(|kind| *kind > 0).collect();
    let changes = kinds.windows(2).filter(|pair| pair.first() != pair.last()).count();
    let has = |wanted: u8| kinds.contains(&wanted);
    kinds.len() >= MIN_KEY_CHARS
        && changes >= MIN_KEY_CHANGES
        && has(1)
        && (has(2) || has(3))
        && !word.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_and_ordinary_words_are_not() {
        assert!(RULES.is_some(), "every pattern compiles");
        for (text, expect) in [
            ("My OpenAI key is sk-proj-9fK2mQ7vT1xY8bN3cR6wZ0aL5dH4", "My OpenAI key is [secret]"),
            ("I'm a nurse. My wifi password is BlueHorse77", "I'm a nurse. My wifi [secret]"),
            ("the PIN for my bank card is 4821", "the [secret]"),
            ("my card is 4539 1488 0343 6467, exp 09/27", "my card is [secret], exp 09/27"),
            ("I log in with the passphrase correct horse", "I log in with the [secret]"),
            ("SSN 078-05-1120", "[secret]"),
            ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[secret]"),
            ("password: hunter2", "[secret]"),
            ("我的银行卡密码是483920", "我的[secret]"),
            ("身份证号11010519491231002X", "[secret]"),
            ("验证码 884213", "[secret]"),
            ("My api key: abcd", "My [secret]"),
        ] {
            assert_eq!(without_secrets(text), expect, "{text}");
            assert!(has_secret(text), "{text}");
        }
        for text in [
            "I use a password manager, Bitwarden is my favourite",
            "Uses 1Password as a password manager",
            "I work on token limits for a living",
            "My phone number ends in 42",
            "I live at https://example.org/a-long-path-with-2-digits-and-words",
            "My order was 1234 5678 9012 3456",
            "I use macOS 15.2.1 and rustc-1.90.0-nightly",
            "I collect pins from every Olympics",
            "我用密码管理器，是1Password",
            "我是护士",
        ] {
            assert!(!has_secret(text), "{text} → {}", without_secrets(text));
        }
    }
}
