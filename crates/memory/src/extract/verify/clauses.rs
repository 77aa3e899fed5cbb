//! Splits sentences into clauses, each with a subject of its own or with that of the clause before.
//!
//! A list stays in one clause, since a negation holds for the whole list: "I don't eat meat, fish or eggs".

use crate::text::is_cjk;
use pudu_store::recall_words;
use regex::Regex;
use std::sync::LazyLock;

/// Subject of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClauseSubject {
    /// The person who speaks.
    Person,
    /// Another person or a thing, with the noun if there is one: "sister".
    Another(Option<String>),
}

/// Words that begin a clause behind a comma.
const STARTERS: &str = " i i'm i've i'd i'll i was we we're we've my our he she they it it's he's she's they're you the his her \
    their that this not no never neither nor only now but because since although though while whereas then and yet \
    avoid don't do please use stop keep always call can could would what how when where did is are which nobody everyone \
    everybody people nothing haven't hasn't won't can't couldn't ";
/// Words that begin a clause behind "and", "so" or "or".
const SUBJECTS: &str = " i i'm i've i'd i'll we we're we've my our he she they it it's he's she's they're you now no not never \
    don't do please nothing nobody ";
/// Words behind "so" with which it says how much or to what end, and begins no clause.
const DEGREES: &str = " that much many far long often to ";
/// Number of words that a clause has at least before "so".
const MIN_SO_WORDS: usize = 3;
/// Words that begin a clause wherever they are.
const BREAKS: &str = " but although though whereas because ";
/// Words that begin the subject of a clause with more than one person: "my wife and I".
const PAIRS: &str = " my our both neither either the a me ";
/// Number of words that such a subject has at most before its "and".
const MAX_PAIR_WORDS: usize = 4;
/// Chinese words that begin a clause without a comma.
const DENSE_BREAKS: [&str; 7] = ["但是", "可是", "不过", "然而", "但", "却", "可我"];

/// Splits a text into clauses.
pub(super) fn clauses(text: &str) -> Vec<String> {
    let text = dense_commas(text);
    let parts = text.split(['，', '；', '：', '。', '！', '？', '\n']).flat_map(dense_clauses);
    parts
        .flat_map(|part| spaced_clauses(&part))
        .filter(|clause| clause.chars().any(char::is_alphanumeric))
        .collect()
}

/// Returns a text with a wide comma where a narrow one follows or precedes a character of a script without spaces.
fn dense_commas(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let (mut wide, mut before) = (String::new(), ' ');
    while let Some(c) = chars.next() {
        let is_dense = is_cjk(before) || chars.peek().is_some_and(|next| is_cjk(*next));
        wide.push(if c == ',' && is_dense { '，' } else { c });
        before = c;
    }
    wide
}

fn dense_clauses(part: &str) -> Vec<String> {
    let marked = DENSE_BREAKS.iter().fold(part.to_owned(), |text, word| {
        if text.contains('\u{0}') { text } else { text.replace(word, &format!("\u{0}{word}")) }
    });
    marked.split('\u{0}').map(str::to_owned).collect()
}

fn spaced_clauses(part: &str) -> Vec<String> {
    let (mut all, mut clause) = (Vec::new(), Vec::<&str>::new());
    let words: Vec<&str> = part.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|next| bare(next)).unwrap_or_default();
        if begins(&bare(word), &next, &clause) {
            all.push(std::mem::take(&mut clause).join(" "));
        }
        clause.push(word);
    }
    all.push(clause.join(" "));
    all
}

/// Whether a word begins a clause behind others.
fn begins(word: &str, next: &str, clause: &[&str]) -> bool {
    let Some(last) = clause.last() else { return false };
    let is_in = |list: &str, word: &str| !word.is_empty() && list.contains(&format!(" {word} "));
    let is_idiom = word == "but" && ["anything", "nothing", "all"].contains(&bare(last).as_str());
    let is_split = last.ends_with([':', ';', '.', '!', '?']) || ["-", "–", "—", "|"].contains(last);
    let is_listed = last.ends_with([',', ')']) && is_in(STARTERS, word);
    let is_joined =
        ["and", "so", "or", "since", "while", "yet", "as"].contains(&word) && is_in(SUBJECTS, next);
    let is_reason = word == "so" && clause.len() >= MIN_SO_WORDS && !next.is_empty() && !is_in(DEGREES, next);
    let is_pair = ["and", "or"].contains(&word)
        && ["i", "i'm", "my", "we"].contains(&next)
        && clause.len() <= MAX_PAIR_WORDS
        && !last.ends_with(',')
        && !clause.first().is_some_and(|first| is_in(SUBJECTS, &bare(first)) && !is_in(PAIRS, &bare(first)));
    is_split || is_listed || (is_in(BREAKS, word) && !is_idiom) || (is_joined && !is_pair) || is_reason
}

/// Returns a word in lower case without the marks around it.
fn bare(word: &str) -> String {
    let word = word.to_lowercase().replace('\u{2019}', "'");
    word.trim_matches(|c: char| !c.is_alphanumeric() && !is_cjk(c)).to_owned()
}

/// Patterns that name the subject of a clause.
struct SubjectRules {
    person: Regex,
    another: Regex,
}

const RELATIVES: &str = "wife|husband|spouse|girlfriend|boyfriend|fianc[ée]e?|mother|father|mom|mum|dad|parents|brothers?(?:-in-law)?|sisters?(?:-in-law)?|sons?|daughters?|kids|children|grand\\w+|aunt|uncle|cousins?|nephew|niece|friends?|boss|manager|colleagues?|coworkers?|neighbou?rs?|roommates?|flatmates?|teacher|professor|clients?|customers?|landlord|doctor|accountant|assistant|intern|teammates?|partner|ex|twin|in-laws";
const DENSE_RELATIVES: &str = "妻子|老婆|丈夫|老公|女朋友|男朋友|女友|男友|妈妈|母亲|爸爸|父亲|爸妈|父母|家人|哥哥|弟弟|姐姐|妹妹|表哥|表弟|表姐|表妹|堂哥|堂弟|儿子|女儿|孩子|奶奶|爷爷|外公|外婆|叔叔|阿姨|舅舅|朋友|老板|上司|经理|同事|邻居|室友|老师|教授|客户|房东|医生|同学|领导|闺蜜|爸|妈|哥|姐|弟|妹";
/// Words in front of a subject.
const LEAD: &str = r"^\W*(?:(?:and|but|so|because|since|while|although|though|that|whereas|yet|also|now|today|yesterday)\b\W*)*";
const DENSE_LEAD: &str =
    r"^\W*(?:而且|而|但是|但|所以|因为|可是|可|现在|其实|不过|另外|对了|然后|说实话)*\W*";

static RULES: LazyLock<Option<SubjectRules>> = LazyLock::new(|| {
    let person =
        format!(r"(?i)\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|myself)\b|{DENSE_LEAD}(?:我|咱|本人|俺)");
    let another = format!(
        r"(?i){LEAD}(?:(?:my|our|the|his|her|their|a)\s+(?:[\w-]+\s+){{0,2}}?({RELATIVES})\b|(?:the|this|that|our|my)\s+(?:[\w-]+\s+)?(firm|company|agency|startup|team|school|university|hospital|building|town|city|village|shop|bank|guy|man|woman|girl|boy|dog|cat|car|server|app|band)\s+(?:(?:that\s+)?(?:i|we)\s+(?:\w+\s+){{1,3}})?(?:is|was|has|had|were|are|does|did)|(?:he|she|they|it|you|he's|she's|they're|it's|you're|everyone|everybody|nobody|people|someone|somebody)\b)|{DENSE_LEAD}(?:我们?(?:家)?的?({DENSE_RELATIVES})|我家的?(\p{{Han}}{{1,3}}?)(?:今年|最近|已经|刚|每天|特别|总是)|他|她|它|你|您|大家|别人|有人|网友|谁)"
    );
    Some(SubjectRules { person: Regex::new(&person).ok()?, another: Regex::new(&another).ok()? })
});

/// Returns the subject that a clause names, if it names one.
pub(super) fn subject(clause: &str) -> Option<ClauseSubject> {
    let Some(rules) = RULES.as_ref() else { return Some(ClauseSubject::Another(None)) };
    let plain = clause.to_lowercase().replace('\u{2019}', "'");
    let Some(found) = rules.another.captures(&plain) else {
        return rules.person.is_match(&plain).then_some(ClauseSubject::Person);
    };
    let (_, rest) = plain.split_at(found.get(0).map_or(0, |found| found.end()));
    // "My wife and I", "我老婆和我", and "it's my favourite".
    let is_joint = [" and i ", " and myself "].iter().any(|with| rest.starts_with(with));
    let is_joint = is_joint || ["和我", "跟我", "与我"].iter().any(|with| rest.starts_with(with));
    let is_mine = found.get(0).is_some_and(|it| it.as_str().trim_start().starts_with("it"))
        && [" my ", " me "].iter().any(|mine| format!("{rest} ").contains(mine));
    if is_joint || is_mine {
        return Some(ClauseSubject::Person);
    }
    let noun = found.iter().skip(1).flatten().next().map(|noun| noun.as_str().to_owned());
    Some(ClauseSubject::Another(noun))
}

impl ClauseSubject {
    /// Whether a fact is about this subject: it is the person, or the fact names it.
    pub(super) fn is_in(&self, fact: &str) -> bool {
        match self {
            Self::Person => true,
            Self::Another(None) => false,
            Self::Another(Some(noun)) => {
                let known = recall_words(fact);
                fact.contains(noun.as_str()) || recall_words(noun).iter().all(|word| known.contains(word))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_split_where_something_else_is_said() {
        assert!(RULES.is_some(), "every pattern is one");
        for (text, expect) in [
            ("I like tea", &["I like tea"][..]),
            (
                "I used to live in Lisbon, now I live in Lyon",
                &["I used to live in Lisbon,", "now I live in Lyon"],
            ),
            ("I like cats, not dogs", &["I like cats,", "not dogs"]),
            ("I don't eat meat, fish or eggs", &["I don't eat meat, fish or eggs"]),
            ("I eat fish but no meat", &["I eat fish", "but no meat"]),
            ("My wife and I are vegan", &["My wife and I are vegan"]),
            ("I left Oracle and I work at a hospital", &["I left Oracle", "and I work at a hospital"]),
            ("I'm 34 and study archaeology", &["I'm 34 and study archaeology"]),
            ("我喜欢猫，不喜欢狗", &["我喜欢猫", "不喜欢狗"]),
            ("我吃鱼但不吃肉", &["我吃鱼", "但不吃肉"]),
        ] {
            assert_eq!(clauses(text), expect, "{text}");
        }
    }

    #[test]
    fn a_clause_has_a_subject() {
        use ClauseSubject::{Another, Person};
        let another = |noun: &str| Some(Another(Some(noun.to_owned())));
        for (clause, expect) in [
            ("I like tea", Some(Person)),
            ("my sister likes jazz", another("sister")),
            ("My wife and I are vegan", Some(Person)),
            ("my parents are the ones in Lisbon", another("parents")),
            ("it makes me jittery", Some(Person)),
            ("she makes cakes", Some(Another(None))),
            ("not dogs", None),
            ("我住在苏州", Some(Person)),
            ("我爸妈住在南京", another("爸妈")),
            ("我老婆和我都吃素", Some(Person)),
            ("不喜欢狗", None),
        ] {
            assert_eq!(subject(clause), expect, "{clause}");
        }
    }
}
