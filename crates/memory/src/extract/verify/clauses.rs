//! Splits sentences into clauses, each with its own subject or that of the previous clause.
//!
//! A list stays in one clause, because a negation covers the whole list: "I don't eat meat, fish or eggs".

use crate::text::{is_cjk, simplified};
use pudu_store::recall_words;
use regex::Regex;
use std::sync::LazyLock;

/// Subject of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClauseSubject {
    /// The speaker.
    Person,
    /// Another person or thing, with the noun if there is one: "sister".
    Another(Option<String>),
}

/// Words that begin a clause after a comma.
const STARTERS: &str = " i i'm i've i'd i'll i was we we're we've my our he she they it it's he's she's they're you the his her \
    their that this not no never neither nor only now but because since although though while whereas then and yet \
    avoid don't do please use stop keep always call can could would what how when where did is are which nobody everyone \
    everybody people nothing haven't hasn't won't can't couldn't ";
/// Words that begin a clause after "and", "so" or "or".
const SUBJECTS: &str = " i i'm i've i'd i'll we we're we've my our he she they it it's he's she's they're you now no not never \
    don't do please nothing nobody ";
/// The person as a subject.
const NOMINATIVES: &str = " i i'm i've i'd i'll we we're we've we'd ";
/// Words that begin a subordinate clause. The main clause may follow it without a comma.
const SUBORDINATORS: &str =
    " since as because when while although though after before once whenever that than what how ";
/// Words before "not" that keep it in the same clause, where it negates a verb or another word.
const BEFORE_NOT: &str = " i am i'm is are was were be been do does did can could will would shall should may might must have has had \
    or and but if why whether just still really probably definitely certainly absolutely of if it's that's he's she's we're \
    you're they're ought better think know hope guess afraid most to even all so never always simply did have has had ";
/// Words after "so" that express a degree or a purpose. Such a "so" does not begin a clause.
const DEGREES: &str = " that much many far long often to ";
/// Minimum number of words in a clause before "so".
const MIN_SO_WORDS: usize = 2;
/// Words after "so" that mark "so" as the beginning of a clause.
const CONSEQUENCES: &str = " the a no i i'm my it that we please don't any this nothing anything ";
/// Words that begin a clause anywhere.
const BREAKS: &str = " but although though whereas because ";
/// Words that begin a subject of more than one person: "my wife and I".
const PAIRS: &str = " my our both neither either the a me ";
/// Maximum number of words before the "and" of such a subject.
const MAX_PAIR_WORDS: usize = 4;
/// Chinese words that begin a clause without a comma.
const DENSE_BREAKS: [&str; 6] = ["但是", "不过", "然而", "但", "却", "可我"];

/// Splits a text into clauses.
pub(super) fn clauses(text: &str) -> Vec<String> {
    let text = dense_commas(text);
    let parts = text.split(['，', '；', '：', '。', '！', '？', '\n']).flat_map(dense_clauses);
    parts
        .flat_map(|part| spaced_clauses(&part))
        .filter(|clause| clause.chars().any(char::is_alphanumeric))
        .collect()
}

/// Returns a text with full-width commas next to characters of scripts without spaces.
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
        if begins(word, &next, &clause) {
            all.push(std::mem::take(&mut clause).join(" "));
        }
        clause.push(word);
    }
    all.push(clause.join(" "));
    all
}

/// Returns whether a word begins a new clause after the words of `clause`.
fn begins(raw: &str, next: &str, clause: &[&str]) -> bool {
    let word = bare(raw);
    let word = word.as_str();
    let Some(last) = clause.last() else { return false };
    let is_in = |list: &str, word: &str| !word.is_empty() && list.contains(&format!(" {word} "));
    let is_idiom = word == "but" && ["anything", "nothing", "all"].contains(&bare(last).as_str());
    // "No I don't", "from Ghent not Bruges", "since I'm a nurse I need …".
    let is_answer = matches!(clause, [only] if ["no", "nope", "nah"].contains(&bare(only).as_str()))
        && is_in(SUBJECTS, word);
    let is_contrast = word == "not" && clause.len() > 1 && !is_in(BEFORE_NOT, &bare(last));
    let leads = clause.iter().take(2).any(|lead| is_in(SUBORDINATORS, &bare(lead)));
    let has_own = || clause.iter().any(|other| is_in(NOMINATIVES, &bare(other)));
    let is_main = leads
        && is_in(NOMINATIVES, word)
        && has_own()
        && !is_in(SUBORDINATORS, &bare(last))
        && !is_in(BEFORE_NOT, &bare(last));
    let is_split = raw.starts_with('(')
        || is_answer
        || is_contrast
        || is_main
        || last.ends_with([':', ';', '.', '!', '?'])
        || ["-", "–", "—", "|"].contains(last);
    let is_listed = last.ends_with([',', ')']) && is_in(STARTERS, word);
    let is_joined =
        ["and", "so", "or", "since", "while", "yet", "as"].contains(&word) && is_in(SUBJECTS, next);
    let is_reason = word == "so"
        && clause.len() >= MIN_SO_WORDS
        && (is_in(CONSEQUENCES, next)
            || clause.len() > MIN_SO_WORDS && !next.is_empty() && !is_in(DEGREES, next));
    let is_pair = ["and", "or"].contains(&word)
        && ["i", "i'm", "my", "we"].contains(&next)
        && clause.len() <= MAX_PAIR_WORDS
        && !last.ends_with(',')
        && !clause.first().is_some_and(|first| is_in(SUBJECTS, &bare(first)) && !is_in(PAIRS, &bare(first)));
    is_split || is_listed || (is_in(BREAKS, word) && !is_idiom) || (is_joined && !is_pair) || is_reason
}

/// Returns a word in lower case without surrounding punctuation.
fn bare(word: &str) -> String {
    let word = word.to_lowercase().replace('\u{2019}', "'");
    word.trim_matches(|c: char| !c.is_alphanumeric() && !is_cjk(c)).to_owned()
}

/// Patterns that name the subject of a clause.
struct SubjectRules {
    person: Regex,
    another: Regex,
}

/// Other people as the subject of a clause.
const RELATIVES: &str = "wife|husband|spouse|girlfriend|boyfriend|fianc[ée]e?|mother|father|mom|mum|dad|parents|brothers?(?:-in-law)?|sisters?(?:-in-law)?|sons?|daughters?|kids|children|grand\\w+|aunt|uncle|cousins?|nephew|niece|friends?|boss|manager|colleagues?|coworkers?|neighbou?rs?|roommates?|flatmates?|teacher|professor|clients?|customers?|landlord|doctor|accountant|assistant|intern|teammates?|partner|ex|twin|in-laws";
/// The same in Chinese.
const DENSE_RELATIVES: &str = "妻子|老婆|媳妇|太太|爱人|先生|老伴|另一半|丈夫|老公|女朋友|男朋友|女友|男友|对象|前任|妈妈|母亲|爸爸|父亲|爸妈|父母|家人|亲戚|哥哥|弟弟|姐姐|妹妹|[表堂][哥弟姐妹叔]|儿子|女儿|闺女|孩子|娃|女婿|奶奶|爷爷|外公|外婆|姥姥|姥爷|婆婆|公公|岳父|岳母|丈母娘|叔叔|阿姨|舅舅|舅妈|姑姑|姑妈|姨妈|伯伯|侄子|侄女|外甥女?|孙子|孙女|朋友|发小|闺蜜|哥们|兄弟|基友|队友|同学|同桌|同事|室友|舍友|邻居|房东|老板|上司|领导|主管|经理|总监|组长|店长|老师|导师|教授|教练|师傅|师[兄姐弟妹]|学[长姐弟妹]|徒弟|学生|客户|顾客|客人|病人|患者|医生|大夫|保姆|实习生|新人|网友|大[爷妈叔哥姐娘婶嫂]|小哥|小姐姐|孩儿?他[爸妈]|主播|博主|租客|住户|司机|保安|快递员|人家|爸|妈|哥|姐|弟|妹";
/// Chinese forms of address for colleagues and neighbours: "老张", "李姐".
const DENSE_NAMES: &str = "[老小][张王李赵刘陈杨黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶余潘杜戴夏钟汪田姜范方石姚谭廖邹熊陆孔白崔康邱秦江史顾侯邵孟段雷钱尹黎易常武乔贺赖龚文]|[张王李赵刘陈杨黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆孔白崔康邱秦江史顾侯邵孟龙段雷钱汤尹黎易常武乔贺赖龚文](?:姐|哥|总|老师|医生|经理|叔|阿姨)";
/// Chinese places and determiners that may precede another person.
const DENSE_OF: &str = r"(?:我们?|咱们?|他|她)?(?:家|班上?|组里?|部门|公司|单位|宿舍|店里|村里|隔壁|楼上|楼下|对门|对面|那边)?(?:的|那个|这个|有个|那位|那户|有位|一个|那|这)?[\p{Han}--[我是两俩二三四五几里在做当跟和与有叫给对为陪带教帮让养照像去到找和]]{0,2}?";
/// Words that may precede a subject.
const LEAD: &str = r"^\W*(?:(?:and|but|so|because|since|while|although|though|that|whereas|yet|also|now|today|yesterday)\b\W*)*";
const DENSE_LEAD: &str = r"^\W*(?:而且|而|但是|但|所以|因为|可是|可|现在|其实|不过|另外|对了|然后|说实话|家人们|朋友们|兄弟们|姐妹们|各位|今天|昨天|最近)*\W*";

static RULES: LazyLock<Option<SubjectRules>> = LazyLock::new(|| {
    let person = r"(?i)\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|myself)\b|^\W*\p{Han}{0,4}?(?:我|咱|本人|俺)";
    let another = format!(
        r"(?i){LEAD}(?:(?:my|our|the|his|her|their|a)\s+(?:[\w-]+\s+){{0,2}}?({RELATIVES})\b|(?:the|this|that|our|my)\s+(?:[\w-]+\s+)?(firm|company|agency|startup|team|school|university|hospital|building|town|city|village|shop|bank|guy|man|woman|girl|boy|dog|cat|car|server|app|band)\s+(?:(?:that\s+)?(?:i|we)\s+(?:\w+\s+){{1,3}})?(?:is|was|has|had|were|are|does|did)|(?:he|she|they|it|you|he's|she's|they're|it's|you're|everyone|everybody|nobody|people|someone|somebody)\b)|{DENSE_LEAD}(?:(?:[\d一二两三]+床)?{DENSE_OF}({DENSE_RELATIVES}|{DENSE_NAMES})|我家的?(\p{{Han}}{{1,3}}?)(?:今年|最近|已经|刚|每天|特别|总是)|他|她|它|你|您|大家|别人|有人|网友|谁)"
    );
    Some(SubjectRules { person: Regex::new(person).ok()?, another: Regex::new(&another).ok()? })
});

/// Returns the subject of a clause, if it has one.
pub(super) fn subject(clause: &str) -> Option<ClauseSubject> {
    let Some(rules) = RULES.as_ref() else { return Some(ClauseSubject::Another(None)) };
    let plain = simplified(&clause.to_lowercase().replace('\u{2019}', "'"));
    let Some(found) = rules.another.captures(&plain) else {
        return rules.person.is_match(&plain).then_some(ClauseSubject::Person);
    };
    let (_, rest) = plain.split_at(found.get(0).map_or(0, |found| found.end()));
    // "My wife and I", "我老婆和我", and "it's my favourite".
    let is_joint = [" and i ", " and myself "].iter().any(|with| rest.starts_with(with));
    // A doctor's statement about the person counts as the person's own: a diagnosis is a fact.
    let is_joint = is_joint || ["医生", "大夫"].iter().any(|doctor| plain.contains(&format!("{doctor}说我")));
    let is_joint = is_joint || ["和我", "跟我", "与我"].iter().any(|with| rest.starts_with(with));
    let is_mine = found.get(0).is_some_and(|it| it.as_str().trim_start().starts_with("it"))
        && [" my ", " me "].iter().any(|mine| format!("{rest} ").contains(mine));
    let is_called = [" calls me ", " call me ", " know me as ", " knows me as "]
        .iter()
        .any(|name| rest.starts_with(name));
    if is_joint || is_mine || is_called {
        return Some(ClauseSubject::Person);
    }
    let noun = found.iter().skip(1).flatten().next().map(|noun| noun.as_str().to_owned());
    Some(ClauseSubject::Another(noun))
}

impl ClauseSubject {
    /// Returns whether a fact can be about this subject: the subject is the person, or the fact names it.
    pub(super) fn is_in(&self, fact: &str) -> bool {
        match self {
            Self::Person => true,
            Self::Another(None) => false,
            Self::Another(Some(noun)) => {
                let known = recall_words(fact);
                noun.chars().all(is_cjk) && simplified(fact).contains(noun.as_str())
                    || recall_words(noun).iter().all(|word| known.contains(word))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_split_into_clauses() {
        assert!(RULES.is_some(), "every pattern compiles");
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
