//! The language of a sentence, which determines how a fact is compared with the sentence.

/// Language of a sentence, in order of increasing difficulty of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SentenceLanguage {
    English,
    Chinese,
    /// Any other language.
    Other,
}

/// Common short words of English sentences.
const ENGLISH: &str = " i i'm i've i'd i'll my me we our us the a an is are am was be been to of and in on at for with from not no \
    don't do does have has had it it's this that but so by as or than now never always please can can't will would call use \
    you your he she they his her their mine only wants want like likes prefer prefers \
    keep stop using answer answers write talk speak avoid remember when what how under about after before into more most less \
    too very also just because since until which there here one two if then some any all every each live work works doesn't \
    didn't isn't aren't wasn't favourite favorite short long name day time ";
/// Short words of other languages in Latin script that English sentences do not contain.
const OTHERS: &str = " ich nicht und ist das der die den dem ein eine einen mein meine wir bin habe hab kein keine mag sehr auch aber \
    je ne pas suis le la les des une mon ma mes nous est et avec pour dans j'ai j'aime c'est \
    yo no soy el los las un una mi mis tengo me gusta con para en y pero muy vivo \
    io sono il lo gli che di del della mio mia non ho mi piace vivo \
    eu não sou os as uma meu minha tenho gosto moro com em \
    ik ben niet het een mijn heb geen wij van jag är inte och en ett min har jeg ikke og er har \
    nie jestem mam lubię mieszkam i w z na że się ben değil var benim ve bir ";

impl SentenceLanguage {
    /// Returns the language of a sentence. Up to three words count as English if none is known, because names are the
    /// same in all languages.
    pub(super) fn detect(sentence: &str) -> Self {
        let letters = || sentence.chars().filter(|c| c.is_alphabetic());
        let is_kana = |c: char| matches!(c, '\u{3040}'..='\u{30ff}');
        let is_han = |c: char| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}');
        let is_latin = |c: char| c.is_ascii() || matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}');
        if letters().any(is_kana)
            || letters().filter(|c| !is_han(*c) && !is_latin(*c)).count() > letters().count() / 4
        {
            return Self::Other;
        }
        if letters().any(is_han) {
            return Self::Chinese;
        }
        let plain = sentence.to_lowercase().replace('\u{2019}', "'");
        let words: Vec<&str> = plain
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        let count = |list: &str| words.iter().filter(|word| list.contains(&format!(" {word} "))).count();
        let (english, others) = (count(ENGLISH), count(OTHERS));
        if others > english || (english == 0 && words.len() > 3) { Self::Other } else { Self::English }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_a_language() {
        for (sentence, expect) in [
            ("I like tea", SentenceLanguage::English),
            ("Rust", SentenceLanguage::English),
            ("Green tea, please", SentenceLanguage::English),
            ("no, I don't", SentenceLanguage::English),
            ("I live in Tromsø with my partner", SentenceLanguage::English),
            ("My uncle lives in La Paz en route to Los Angeles", SentenceLanguage::English),
            ("我喜欢 Rust", SentenceLanguage::Chinese),
            ("我最喜欢的编程语言是Elixir", SentenceLanguage::Chinese),
            ("Ich wohne nicht mehr in Köln", SentenceLanguage::Other),
            ("Je ne mange pas de viande", SentenceLanguage::Other),
            ("Vivo en Madrid con mi perro", SentenceLanguage::Other),
            ("Mieszkam w Krakowie od lat", SentenceLanguage::Other),
            ("猫が好きです", SentenceLanguage::Other),
            ("저는 고양이를 좋아해요", SentenceLanguage::Other),
            ("Я живу в Москве", SentenceLanguage::Other),
            ("أنا أعيش في القاهرة", SentenceLanguage::Other),
        ] {
            assert_eq!(SentenceLanguage::detect(sentence), expect, "{sentence}");
        }
    }
}
