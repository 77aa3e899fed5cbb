//! Words before a fact that govern it: a main clause, a condition, another subject.
//!
//! The words before the person's "I" must belong to a closed class that does not alter the statement: conjunctions,
//! adverbs, times and places. Any other words are a main clause ("she thinks I …") or a frame ("suppose I …"), so
//! unknown words are also rejected.

use super::super::refused::RefusedReason;
use crate::{
    about::Subject,
    text::{is_cjk, simplified},
};
use pudu_store::{recall_words, telling_words};
use regex::Regex;
use std::{collections::HashSet, sync::LazyLock};

/// The person as a subject.
const NOMINATIVES: &str = " i i'm i've i'd i'll we we're we've we'd we'll ";
/// Words before a subject that do not alter the statement, besides adverbs in "-ly".
const LEADS: &str = " and but so or because cause cuz bc plus also then now today nowadays still just even yes yeah yep yup no nope ok \
    okay well oh ah hey hi hello haha hahaha lol lmao ugh btw fyi ngl tbh imo imho fwiw anyway anyways besides too again sorry thanks \
    please here there yet though although whereas nah morning evening folks guys team all both long story short turns out ps nb \
    truth thing is the fact problem good bad news fun that reason time weird funny enough otherwise meanwhile instead \
    maybe perhaps not ";
/// Words that begin a place, a time or a subordinate clause before a subject.
const OPENERS: &str = " in on at since for after before during from with without despite besides unlike every most each by between due \
    given as when whenever while until till because although though contrary apart within over under around past come \
    fridays thursdays wednesdays tuesdays mondays saturdays sundays weekends weekdays mornings evenings nights last \
    once where wherever ";
/// Words that begin a noun phrase with a relative clause, or a topic: "the language I use".
const DETERMINERS: &str = " what everything all the a an my our both neither either half this these ";
/// Nouns and verbs that turn such an opening into fiction or another person's words.
const WORLDS: &str = " say says said saying think thinks thought believe believes reckon reckons figure figures assume assumes claim claims \
    insist insists swear swears suggest suggests hint hints guess guesses suspect suspects hear hears read reads report reports write \
    writes wrote mention mentions mentioned announce imply implies lists shows call calls consider considers bet bets hope hopes wish \
    wishes want wants imagine pretend dream dreams dreamt joke jokes joking doubt doubts wonder wonders convinced told tell tells telling \
    story novel game campaign film movie play scene script song lyrics poem line quote roleplay exercise practice interview purposes \
    argument simulation scenario hinge tinder bumble linkedin paper profile resume cv facebook instagram example universe timeline book episode chapter according act ";
/// Single words before a subject that make the clause a condition, a question or something imagined.
const GOVERNORS: &str = " say suppose supposing imagine picture pretend assume assuming unless whether had were was should do does did am are is \
    have has can could would will may might if lest wish think guess hope bet how who why which like translate whose ";
/// Words, besides `LEADS`, that may precede the words of a fact in a clause without "I".
const PLAIN: &str = " is are was am be been being it's that's there's here's have has had having got get do does did not never don't doesn't can \
    can't cannot couldn't haven't isn't it this that there of to for as who's a an the some any no my our mine me us i'm been always \
    only also mostly usually really very too pretty quite super half full part whole new old big little own used work working live \
    living based born raised grew come came from up by one two three four five six seven eight nine ten first second third last year \
    years month months week weeks old age aged name names name's surname job home place house flat address favourite favorite fav \
    proud owner fan call called named allergic married please prefer rather love like hate use using want keep give answer write \
    language background setup stack diet status location pronouns timezone hobbies hobby currently self ex long over more most \
    bit now these those next every with without and or vs since until till than ";
/// Verbs that mark a clause as a sentence.
const FINITE: &str = " is are was were has have had does do did can cannot could will would should must may might flew ran went \
    drives owns took bought sold kept ";
/// Beginnings of requests.
const IMPERATIVES: &str =
    " please stop avoid skip use keep call give write answer speak don't never always no ";
/// Auxiliary verbs and adverbs between the person and the verb of a fact.
const AUXILIARIES: &str = " the a an i we i'm i've i'd i'll we'll we're we've am are was were be been have had do did don't didn't won't can't cannot couldn't \
    can could will would not never no longer always also just really still often usually sometimes mostly only even now both all \
    currently actually kinda sorta to used love like get have tend started began going want wanted rather prefer hate need learned \
    learnt managed able happen n and then again too already never ever finally once twice recently gonna hope hoping plan planning \
    trying try about thinking of might may maybe wish should must ";
/// Words before "to" and a verb that leave the verb a fact, besides the fact's own words.
const CATENATIVES: &str = " have has had get gets got love like happen tend manage able need began begin started start continue learned learnt \
    managed allowed used due proud happy glad sorry afraid lucky moved from back go went next up commute travel to it ";
/// Words between the person and a noun for them: "I work as a nurse".
const COPULAS: &str = " am are be been being was were as became become work working works got identify trained qualified born have has \
    teach study studying ";
/// Words between the person and their possession.
const POSSESSION: &str = " have has had having got get getting own owned bought adopted inherited keep kept keeping with from my our am are \
    raise raising suffer take taking wear need manage use expecting run ";
/// Words between the person and their place of residence.
const RESIDENCE: &str = " live lives living lived based am are moved move home flat house apartment place settled stay staying reside rent \
    share from born at here ";
/// Beginnings of facts, each with the words that a supporting statement needs.
const PREDICATES: [(&str, &str); 6] = [
    ("Is a ", COPULAS),
    ("Is an ", COPULAS),
    ("Is the ", COPULAS),
    ("Has ", POSSESSION),
    ("Owns ", POSSESSION),
    ("Lives ", RESIDENCE),
];
/// Subjects that always mean the person.
const SELF_NOUNS: &str = " it it's this that there what name names surname nickname job work flat house home place address hobby favourite \
    favorite fav back knee knees ear ears eye eyes heart skin hair leg legs hand hands foot feet shoulder hip diet age birthday life \
    pronouns goal dream plan language tongue degree background diagnosis thing truth problem here one most half both all everything ";

/// Chinese words before "我" that govern it.
const CHINESE_GOVERNORS: &str = "说|讲|传|告诉|写|唱|梦|觉得|认为|以为|当我|当作|猜|据|显示|登记|标|记成|怀疑|希望|要求|让我|叫我|劝|逼|催|假|比方|若|倘|除非|哪怕|即使|就算|像|仿佛|演|扮|谁|系统|资料|档案|简历|报告|大意|意思是";
/// Chinese words that a clause without "我" may have before the words of a fact.
const CHINESE_PLAIN: &str = "这辈子|我们?|咱们?|本人|俺|自己|家里?|全家|这边|这里|那|这|[一二两三四五六七八九十几百千万半\\d]|年|月|日|号|天|周|星期|礼拜|末|点|岁|早上?|晚上?|中午|凌晨|上午|下午|夜里|白天|现在|目前|最近|近来|平时|如今|今天|明天|昨天|今年|明年|去年|前年|下个?|上个?|每|到|从小?|小时候|一直|一般|通常|其实|不过|但是?|而且|所以|因为|反正|对了|顺便|说一下|另外|还有|以及|大家好|你好|嗯|啊|哦|喔|哈|好|真的?|特别|超级?|太|最|更|比较|挺|非常|很|常常?|经常|总是?|老是?|只|又|再|也|都|就|还|刚刚?|才|已经?|正在?|在|是|有|会|能|可以|得|了|着|过|的|地|个|名|位|条|辆|台|套|间|家|不|没有?|别|从不|从没|从来|以前|曾经?|过去|当时?|以后|今后|请|麻烦|用|做|干|开|住|养|叫|姓|属|戴|学|教|卖|买|吃|喝|看|玩|打|跟|和|与|对|给|把|要|想|打算|准备|希望|喜欢|爱|讨厌|习惯|偏好|工作|上班|坐标|老家|现居|职业|身高|体重|生日|爱好|名字|比起|来|去|回|出|起|里|上|们|俩|啦|呢|呀|嘛|哪怕|无论|毕竟|可能|也许|大概|或许|做梦|戒|退休|毕业|结婚|怀孕|单身|大|小|多|少|旁边|附近|第|为|让|一点|下|以|而|则|且|或|带|接|取|成|拿|满|差|快|将|马上|终于|结果|原来|本来|后来|之前|之后";

/// Chinese nouns that refer to the person with any predicate.
const CHINESE_SELF_NOUNS: [&str; 14] = [
    "名字", "职业", "工作", "身份", "老家", "专业", "家", "爱好", "岗位", "职位", "籍贯", "母语", "病",
    "住处",
];

struct FrameRules {
    chinese: Regex,
    chinese_plain: Regex,
    /// The speaker's possession, relative or trait as the subject: "我的理想是".
    chinese_owned: Regex,
    /// A main clause that only affirms the rest: "you should know that", "I have to admit".
    factive: Regex,
}

static RULES: LazyLock<Option<FrameRules>> = LazyLock::new(|| {
    Some(FrameRules {
        chinese: Regex::new(&format!(r"(?:{CHINESE_GOVERNORS}).*(?:我|本人|俺)")).ok()?,
        chinese_plain: Regex::new(CHINESE_PLAIN).ok()?,
        chinese_owned: Regex::new(r"我们?的(\p{Han}{1,4}?)(?:是|在|有|叫|会|当|做)").ok()?,
        factive: Regex::new(r"^(?:just )?(?:so )?(?:(?:could|can|would|will) you )?(?:(?:you|u|y'all) (?:should |must |might |may |need to |ought to |better )?(?:also |already )?(?:know|remember)|(?:please )?(?:remember|note|know|keep in mind|bear in mind|don't forget|never forget|be aware)|(?:i|we|i've|i'd|i'm|we're)(?: should| must| have| had| forgot| just| already| already| did| also| better| do| can)*(?: to)?(?: (?:was told|have been told|was informed|been told|say|said|mention|mentioned|add|admit|mean|meant|know|told|tell|found out|realised|realized|noticed|learned|learnt|afraid|glad|happy|proud|lucky|sorry|confess|remember|confirm))(?: you| u| earlier| before)?|it(?:'s| is) (?:true|a fact|because|just)|would it help to know|does it help|(?:my|the) (?:doctor|doc|gp|dentist|therapist|physio) (?:says?|said|confirmed|told me))(?: that)?(?: as)?$").ok()?,
    })
});

/// Checks that nothing governs the words of a fact in their source clause.
pub(super) fn check(part: &str, fact: &str, said: &str, is_own: bool) -> Result<(), RefusedReason> {
    let plain = simplified(&said.to_lowercase().replace('\u{2019}', "'"));
    let words: Vec<&str> = plain
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    let subject = Subject::from_fact(part);
    let Some(at) = words.iter().position(|word| subject.share_in(&recall_words(word)) > 0.0) else {
        return Ok(());
    };
    let (before, behind) = words.split_at(at);
    if plain.chars().any(is_cjk) {
        return check_chinese(chinese_lead(&subject, &plain), &simplified(fact));
    }
    match before.iter().rposition(|word| is_in(NOMINATIVES, word)) {
        Some(own) => {
            let (lead, middle) = before.split_at(own);
            if !is_open(lead) {
                return Err(RefusedReason::Hypothetical);
            }
            check_middle(middle, behind, fact)
        }
        None if is_own => check_subject(before, behind, fact),
        None => Ok(()),
    }
}

/// Returns the part of a Chinese clause before the words of the fact.
fn chinese_lead<'t>(subject: &Subject, plain: &'t str) -> &'t str {
    let places: Vec<usize> = plain.char_indices().map(|(at, _)| at).chain([plain.len()]).collect();
    let has_word = |pair: &&[usize]| match pair {
        [from, _, to] => plain.get(*from..*to).is_some_and(|two| subject.share_in(&recall_words(two)) > 0.0),
        _ => false,
    };
    let first = places.windows(3).find(has_word).and_then(|pair| pair.first().copied());
    first.and_then(|first| plain.get(..first)).unwrap_or_default()
}

/// Checks that neither another subject nor a verb before "我" governs a Chinese clause.
fn check_chinese(lead: &str, fact: &str) -> Result<(), RefusedReason> {
    let Some(rules) = RULES.as_ref() else { return Err(RefusedReason::Hypothetical) };
    let lead = &lead.replace("医生说", "").replace("大夫说", "");
    if rules.chinese.is_match(lead) {
        return Err(RefusedReason::Hypothetical);
    }
    let noun = rules.chinese_owned.captures(lead).and_then(|found| found.get(1));
    if noun.is_some_and(|noun| !fact.contains(noun.as_str()) && !CHINESE_SELF_NOUNS.contains(&noun.as_str()))
    {
        return Err(RefusedReason::OtherPerson);
    }
    let is_own = ["我", "本人", "俺", "咱"].iter().any(|own| lead.contains(own));
    let rest = rules.chinese_plain.replace_all(lead, "");
    let is_plain = is_own
        || rest.chars().filter(|c| is_cjk(*c)).count() <= 1
        || telling_words(lead).iter().all(|word| fact.contains(word));
    if is_plain { Ok(()) } else { Err(RefusedReason::OtherPerson) }
}

fn is_in(list: &str, word: &str) -> bool {
    !word.is_empty() && list.contains(&format!(" {word} "))
}

fn is_open(lead: &[&str]) -> bool {
    let is_plain = |word: &&&str| is_in(LEADS, word) || word.ends_with("ly");
    let rest: Vec<&str> = lead.iter().skip_while(is_plain).copied().collect();
    let is_joint = lead.last().is_some_and(|last| ["and", "nor", "or", "n"].contains(last));
    let is_factive = RULES.as_ref().is_some_and(|rules| rules.factive.is_match(&rest.join(" ")));
    let leaves = lead.iter().any(|word| is_in(WORLDS, word));
    match rest.as_slice() {
        [] => true,
        _ if is_factive => true,
        _ if leaves => false,
        _ if is_joint => true,
        [only] => !is_in(GOVERNORS, only),
        [first, ..] => {
            is_in(OPENERS, first) || is_in(DETERMINERS, first) || first.chars().all(|c| c.is_ascii_digit())
        }
    }
}

/// Checks the words between the person and the first word of the fact.
fn check_middle(middle: &[&str], behind: &[&str], fact: &str) -> Result<(), RefusedReason> {
    if middle.iter().any(|word| ["who", "whose", "whom"].contains(word)) {
        return Err(RefusedReason::OtherPerson);
    }
    let holds = |word: &&str, list: &str| is_in(list, word) || word.contains('\'');
    let predicates =
        PREDICATES.iter().filter(|(begin, _)| fact.starts_with(begin) && !fact.contains(" and "));
    if predicates.into_iter().any(|(_, list)| !middle.iter().any(|word| holds(word, list))) {
        return Err(RefusedReason::OtherPerson);
    }
    let known = recall_words(fact);
    // The verb, and the participle after "is".
    let verbs = fact.split_whitespace().take(2).enumerate();
    let verb: HashSet<String> = verbs
        .filter(|(at, word)| if *at == 0 { word.ends_with(['s', 'd']) } else { word.ends_with("ing") })
        .flat_map(|(_, word)| recall_words(word))
        .collect();
    let has_verb = behind.first().is_some_and(|word| !verb.is_disjoint(&recall_words(word)));
    let last_part = middle.rsplit(|word| ["and", "then", "but"].contains(word)).next().unwrap_or_default();
    if has_verb && !last_part.iter().all(|word| is_in(AUXILIARIES, word) || word.ends_with("ly")) {
        return Err(RefusedReason::Hypothetical);
    }
    let is_verb =
        |word: &str| ["be", "become", "own"].contains(&word) || !verb.is_disjoint(&recall_words(word));
    let governs = middle.windows(3).any(|words| match words {
        [before, "to", after] => {
            is_verb(after) && !is_in(CATENATIVES, before) && known.is_disjoint(&recall_words(before))
        }
        _ => false,
    });
    if governs { Err(RefusedReason::Hypothetical) } else { Ok(()) }
}

/// Checks that a clause without "I" has no subject that the fact does not name: if the clause has a verb, it must
/// begin with words of a closed class or of the fact.
fn check_subject(before: &[&str], after: &[&str], fact: &str) -> Result<(), RefusedReason> {
    let verb = fact.split_whitespace().next().unwrap_or_default().to_lowercase();
    let is_verb = |word: &&str| {
        is_in(FINITE, word)
            || word.ends_with("n't")
            || word.ends_with("'s")
            || word.ends_with("ed")
            || (!verb.contains('\'') && **word == verb)
    };
    let is_own = before.first().is_some_and(|first| is_in(" me us ", first) || is_in(IMPERATIVES, first))
        || matches!(before, [.., "call" | "calls" | "called", "me"]);
    let is_noun = before.last().is_some_and(|last| is_in(" my our the a ", last));
    let until = usize::from(!is_noun);
    if is_own || !before.iter().chain(after.iter().take(until)).any(is_verb) {
        return Ok(());
    }
    let known = recall_words(fact);
    let is_known = |(at, word): (usize, &&str)| {
        let is_plain =
            is_in(PLAIN, word) || is_in(LEADS, word) || is_in(OPENERS, word) || is_in(SELF_NOUNS, word);
        let is_owner =
            word.ends_with("'s") && at > 0 && before.get(at - 1).is_some_and(|last| is_in(" my our ", last));
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        is_plain || is_owner || is_number || word.ends_with("ly") || !known.is_disjoint(&recall_words(word))
    };
    let is_relative = before.iter().any(|word| is_in(" who whose which ", word));
    if !is_relative && before.iter().enumerate().all(is_known) {
        Ok(())
    } else {
        Err(RefusedReason::OtherPerson)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_words_govern_a_fact() {
        assert!(RULES.is_some(), "every pattern compiles");
        for (said, fact, expect) in [
            ("I run a cheese shop", "Runs a cheese shop", true),
            ("honestly, in winter I work as a guide", "Is a guide", true),
            ("you should know that I'm deaf", "Is deaf", true),
            ("she thinks I play golf", "Plays golf", false),
            ("suppose I had asthma", "Has asthma", false),
            ("according to LinkedIn I'm a pilot", "Is a pilot", false),
            ("I hope to be a pilot", "Is a pilot", false),
            ("I see myself running a farm", "Runs a farm", false),
            ("I file papers for surgeons", "Is a surgeon", false),
            ("I signed up for a dog", "Has a dog", false),
            ("allergic to nuts", "Is allergic to nuts", true),
            ("Priya from accounts had twins", "Has twins", false),
            ("the one next door breeds huskies", "Breeds huskies", false),
            ("楼上那户养了鹦鹉", "养了鹦鹉", false),
            ("从小就有哮喘", "有哮喘", true),
            ("群里传我要离职", "要离职", false),
        ] {
            assert_eq!(check(fact, fact, said, true).is_ok(), expect, "{said} / {fact}");
        }
    }
}
