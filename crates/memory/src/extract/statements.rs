//! What a person states, sentence by sentence, within their own words: without questions, tasks, words that they report,
//! quote or only imagine, and texts that they hand over to be worked on.
//!
//! A sentence is left out in doubt: it proves nothing then, and the person can say it again. Deliberately absent: grammar. The
//! patterns are words of English and Chinese.

use super::own::CUT;
use crate::text::{sentences, straight};
use pudu_store::{recall_words, telling_words};
use regex::Regex;
use std::sync::LazyLock;

/// Verbs that ask for work on a text or for a look at something.
const TASKS: &str = "translate|summari[sz]e|paraphrase|proofread|rewrite|rephrase|reword|edit|fix|correct|polish|improve|explain|analy[sz]e|review|check|classify|extract|read|parse|convert|continue|complete|repeat|echo|print|write|draft|reply|respond|quote|transcribe|tag|grade|rate|evaluate|compare|format|spell-?check|describe|list|show|find|search|look|open|tell|give|create|make|generate|run|say|fetch|download|browse|visit|summary|translation|cite|recite|render|turn|put|sum|guess|sing|play|roleplay|act|debug|refactor|test|implement|solve|calculate|count|sort|shorten|expand|clean|store|save|note|add";
/// The same in Chinese.
const DENSE_TASKS: &str = "翻译|翻成|译成|译为|总结|概括|润色|改写|解释|分析|检查|看看|看一下|读一下|阅读|列出|写一|写个|写封|写首|生成|比较|修改|续写|复述|重复|告诉我|搜索|查一|提取|校对|扮演|说说|介绍|纠正|改正|打开|存下|保存|记录|摘要|转述|朗读|念一";
/// Things that are handed over.
const HANDED: &str = "mail|email|e-mail|message|article|text|letter|log|logs|output|doc|document|page|webpage|transcript|prompt|post|review|answer|reply|conversation|chat|quote|story|essay|poem|lyrics|bio|cv|script|code|config|file|note|notes|ticket|paragraph|sentence|sentences|result|snippet|screenshot|comment|tweet|memo|report|readme|contract|form|subtitle|caption|example|test case|fixture|csv|json|yaml|table|dialogue|dialog|wiki|blog|tool|page says|website|pdf|slide|slides|minutes|interview|testimony|speech|diary|recipe|sample";
/// Words before a colon that name no speaker.
const NOTES: [&str; 18] = [
    "ps",
    "note",
    "nb",
    "correction",
    "update",
    "fyi",
    "btw",
    "edit",
    "also",
    "answer",
    "reminder",
    "tldr",
    "补充",
    "更正",
    "备注",
    "另外",
    "回答",
    "说明",
];
/// Other people, of whom a person speaks.
const RELATIONS: &str = "wife|husband|spouse|girlfriend|boyfriend|fiance|fiancee|mother|father|mom|mum|dad|parents|brother|sister|son|daughter|kids|children|grandmother|grandfather|aunt|uncle|cousin|nephew|niece|friend|friends|boss|manager|colleague|colleagues|coworker|neighbour|neighbor|roommate|flatmate|teacher|professor|client|customer|landlord|doctor|assistant|intern|teammate|partner";
/// The same in Chinese.
const DENSE_RELATIONS: &str = "妻子|老婆|丈夫|老公|女朋友|男朋友|妈妈|母亲|爸爸|父亲|哥哥|弟弟|姐姐|妹妹|儿子|女儿|孩子|奶奶|爷爷|朋友|老板|上司|经理|同事|邻居|室友|老师|教授|客户|房东|医生|同学|领导";

/// Number of words that a clause has at most in front of what is stated: "Quick one".
const MAX_LEAD_WORDS: usize = 3;

/// Patterns, each for one reason why words are no statement of the person.
struct StatementRules {
    /// Pieces between quotation marks.
    quoted: Regex,
    /// A text that is handed over behind a colon, or below a line that says so.
    handed: Regex,
    /// A line of a conversation, with its speaker.
    spoken_by: Regex,
    /// A message that is not meant.
    unmeant: Regex,
    question: Regex,
    task: Regex,
    /// A wish that holds from now on, though it is worded as a task.
    lasting: Regex,
    sarcastic: Regex,
    /// A request to remember something, whatever its form.
    reminder: Regex,
    reported: Regex,
    own_report: Regex,
    imagined: Regex,
    /// Speaks of a user or an assistant, as prompts and documents do.
    scripted: Regex,
    /// A clause in which the person speaks of themselves.
    own_clause: Regex,
    first_person: Regex,
    nominative: Regex,
    wish: Regex,
    third_person: Regex,
    relation: Regex,
}

static RULES: LazyLock<Option<StatementRules>> = LazyLock::new(|| StatementRules::compile().ok());

impl StatementRules {
    fn compile() -> Result<Self, regex::Error> {
        let lead = r"^\W*(?:(?:please|pls|can you|could you|would you|will you|you|hey|hi|hello|ok|okay|so|and|now|then|first|also|next|just|kindly|i want you to|i need you to|i'd like you to|help me(?: to)?|let's|thanks|quickly|pudu)\b\W*)*";
        let dense_lead = r"^\W*(?:请|麻烦|帮我|帮忙|你|能不能|能否|可以|可不可以|给我|把|将|现在|先|再|然后|那|好的|这句话?|这段话?|下面的?|这个|它|，|,)*";
        Ok(Self {
            quoted: Regex::new(
                r#"“[^”\n]{8,}”|„[^“”\n]{8,}[“”]|«[^»\n]{8,}»|「[^」\n]{3,}」|『[^』\n]{3,}』|《[^》\n]{3,}》|“[^”\n]*[\p{Han}][^”\n]*”|"[^"\n]{8,}"|"[^"\n]*\p{Han}{2}[^"\n]*"|(?:^|[\s(:,])'[^'\n]{8,}?'(?:$|[\s.,;:!?)])|‘[^’\n]{8,}’|`[^`\n]+`|[=;{}()][^\n#]{0,40}\s(?:#|//)[^\n]*"#,
            )?,
            handed: Regex::new(&format!(
                r"(?im)^(?:[^\n]*?\b(?:{TASKS}|{HANDED})\b[^\n:：]{{0,120}}[:：](?:[^/\d]|\z)|[^\n]*?(?:{DENSE_TASKS}|这段|以下|下面|如下|这封|这篇|这个网页|内容|原文|写道|例句|日志|输出|结果)[^\n:：]{{0,60}}[:：]|[^\n]*\b(?:the following|below|(?:of|about|at|check|read|see) (?:this|these)|(?:this|these|the|a|an) (?:\w+ ){{0,3}}(?:{HANDED}))\b[^\n]{{0,60}}\n|{lead}(?:{TASKS})\b[^\n]{{0,120}}\n|[^\n]*(?:这段|以下|下面|如下|这封|这篇)[^\n]{{0,40}}\n|(?:from|via|by|in)\b[^\n]{{0,60}}[:：]\s*\n|[^\n]*?\b(?:begins?|starts?|goes|ends?|reads?|says|shows?|runs)\b[^\n:：]{{0,20}}[:：](?:[^/\d]|\z)|\W*(?:the|this|that|a|an|his|her|their)\b[^\n:：]{{0,60}}[:：]\s*(?:i|my|we|our)\b|(?-i:\p{{Lu}}[\w.'-]{{1,20}}(?: \p{{Lu}}[\w.'-]{{1,20}})?)[:：]\s*\n)"
            ))?,
            spoken_by: Regex::new(
                r"^\W*(\p{Lu}[\w.'-]{1,20}(?: \p{Lu}[\w.'-]{1,20})?|@\w+|\p{Han}{2,4})\s?[:：]\s*(?i:i|i'm|i've|my|we|our|我|咱)",
            )?,
            unmeant: Regex::new(
                r"(?i)\b(?:role-?play(?:ing)?|stay in character|just kidding|only kidding|i'?m (?:just )?(?:kidding|joking)|(?:that|this) (?:was|is) a joke|(?:this|that) is (?:just )?a test|not (?:really )?true|not real|for testing|ignore that|lorem ipsum|fill(?:er|-in) text|made that up|for (?:this|the) (?:exercise|scenario|simulation|role|sake of (?:the )?argument)|which (?:band|song|singer)|what song|who (?:sings|sang|sung)|name (?:that|this) song|stuck in my head|verified purchase|posted \d+ (?:minutes?|hours?|days?) ago|posted by u/\w+|yours (?:faithfully|sincerely|truly))\b|\bdear (?:sir|madam|hiring|mr\b|mrs\b|ms\b)|[♪♫]|★★|^\W*(?:please )?act as\b|^\W*q[:.)].*\n\W*a[:.)]|\byou(?:'re| are) (?:my|the|an?) [\w-]+(?: [\w-]+)?[.,;!]*\s+(?:and )?(?:i am|i'm)\b|\bi(?:'m| am) [^.!?\n]{1,60}\byou(?:'re| are) (?:my|the|an?)\b|\bfrom now on,? (?:i'm|i am|you're|you are)\b|(?:🙄|🤡|\s/s)\W*$|开玩笑|我乱说|随便说|只是测试|这是测试|瞎编|角色扮演|你是(?:我的?)?(?:病人|客人|顾客|老师|学生|医生|面试官|敌人)|这首歌|谁唱|哪首歌|尊敬的|此致|敬上",
            )?,
            question: Regex::new(
                r#"(?i)[?？]["'”’)\]\s]*$|^\W*(?:(?:and|but|so|ok|hey|please)\b\W*)*(?:(?:what|who|where|when|why|how|which|whose)(?:'s|\s+(?:is|are|do|does|did|was|were|can|could|should|would|will|have|has|am|much|many|to|about|if|else|kind|colou?r|of))\b|(?:is|are|am|was|were|do|does|did|can|could|would|will|should|shall|may|have|has)\s+(?:i|you|we|he|she|it|they|this|that|there|the|my|your|these|those|any|some|an?)\b)|[吗么呢][\s。.!！]*$|^\W*(?:请问|什么|谁|怎么|怎样|为什么|哪|如何|是否|有没有)"#,
            )?,
            task: Regex::new(&format!(
                r"(?i){lead}(?:{TASKS})\b|^\W*(?:please )?(?:call|ping|remind|wake|notify) me (?:when|if|once|later|back|at|in|on|tomorrow|asap|after|before|about|to)\b|{dense_lead}(?:{DENSE_TASKS})"
            ))?,
            lasting: Regex::new(
                r"(?i)^\W*(?:please\s+)?(?:always|never|from now on|in (?:the )?future|by default|whenever)\b|\b(?:from now on|every time|in (?:the )?future|by default|from here on)(?:[.!\s]*$|,)|^\W*(?:请|麻烦)?(?:以后|今后|总是|永远|一律|从现在起|从今)",
            )?,
            sarcastic: Regex::new(
                r"(?i)🙄|🤡|\byeah,? right\b|\b(?:oh|wow|ah),? (?:great|wonderful|joy|perfect|fantastic|lovely|brilliant)\b|\b(?:sure|right|yeah),? because\b|\bjust love (?:it when|how|when|wait\w*|being|getting|having)\b|\blike i'd ever\b|\bas if i\b|^\W*my (?:absolute |new )?favou?rite\W*$|呵呵|才怪|^\W*(?:对对对|是是是|好好好)|狗头|\[doge\]|可真(?:是)?(?:太)?(?:喜欢|爱|开心|棒|行|会|好)|可太(?:喜欢|爱)|真是(?:太)?(?:爱|喜欢)死",
            )?,
            reminder: Regex::new(
                r"(?i)^\W*(?:(?:please|pls|could you|can you|would you|will you|hey|hi|and|also|so)\b\W*)*(?:keep in mind|bear in mind|remember|note|don't forget|be aware)(?: please)?(?: that)?\W+(?:i'm|i am|i've|i|my|we|our)\b",
            )?,
            reported: Regex::new(
                r"(?i)\b(?:complain(?:s|ed)|assum(?:es|ed)|swears?|swore|insist|(?:was|is|were|are) like,|ha(?:s|ve) me down|tell(?:s|ing)? people|keeps? (?:telling|saying)|exact words|told by|(?:wants|needs|asks|expects|begs|forces|urges|would like) (?:me|us) to|thinks i|figures|reckons|(?:everyone|everybody|people|they) (?:thinks?|assumes?|believes?|calls?))\b|抱怨|吐槽|以[为為]|(?:算命|星座|网上|传言|大师|朋友圈)的?(?:们)?(?:都)?说|网友|\b(?:asking for (?:a|my|someone|somebody)|(?:they|people|some|others|you) say|says|said|saying|stated|states that|told (?:me|us|him|her|them|you)|wrote|writes that|claims? (?:that|to|he|she|they|i|you)|claimed|mentioned|mentions that|according to|reportedly|allegedly|heard (?:that|from)|asks? (?:you|me|us|to)|asked (?:me|us|you) to|quot(?:e|es|ed|ing)|announced|reads that|insists|believes (?:that|i|he|she)|thinks (?:that|i|he|she|they)|pretends|posted|tweeted|replied)\b|(?:他|她|们|人|友|事|板|师|妈|爸|生|姐|哥|弟|妹|档|章|件|里|面|据|听|上|位|户|员|婆|公|网页|站|它|书|报|导|道|闻|社)(?:们)?(?:都|也|曾|刚|又)?(?:说|称|写着|讲|表示|提到|认为|觉得|要求|声称)|写道|声称|据称|告诉我|写着|转告|转发",
            )?,
            own_report: Regex::new(
                r"(?i)\bshould(?:'ve| have) (?:said|mentioned)\b|\b(?:i|we)(?:'ve| have| just| already| once| also)?\s+(?:keep telling (?:you|people)|keep saying|said|told (?:you|u)|mentioned|wrote|stated|announced|posted|replied|say|quote)\b|我(?:刚|已经|之前|也|都)?(?:说|讲|提到)",
            )?,
            imagined: Regex::new(
                r"(?i)\b(?:for example|for instance|e\.g\.),? (?:i|my)\b|^\W*(?:please |let's |let us |just )?(?:imagine|pretend|suppose|supposing|assume|assuming|say that|hypothetically|what if|if i (?:were|was|had|lived|became|would)|once upon)\b|\b(?:imagine|pretend|role-?play(?:ing)?|hypothetical(?:ly)?|let's say|if i (?:were|was|lived|had been)|in (?:the|this|my|a|our) (?:[\w&'-]+ ){0,2}(?:story|novel|game|movie|film|play|scene|dream|role|script|screenplay|campaign|larp|rpg|d&d|session|simulation)|(?:my|the) (?:persona|character) (?:for|in)|(?:my|the|his|her) (?:character|protagonist|hero|narrator|persona)|fictional|make-believe|in character|(?:weird|strange|funny|crazy|odd|mad)(?:est)? dreams?|dreams? (?:last night|where|in which|that i)|nightmare|would have been|i wish i (?:were|was|had|lived))\b|假如|假设|假装|例如|比如|比方|你就当我|就当我是|如果我(?:是|有|住|在)|要是我|想象|扮演|演一段|来演|演个|对戏|故事里|小说里|游戏里|剧本|角色|梦里|虚构|设定",
            )?,
            scripted: Regex::new(
                r"(?i)\b(?:(?:the|this|our|every|any|all|each) (?:user|users|reader|readers|assistant|human|ai|model|bot|chatbot|agent|llm|operator|recipient|speaker|author|applicant|patient|narrator)|dear (?:assistant|ai|model|agent|bot)|ai (?:assistants?|agents?|models?)|system prompt|ignore (?:all |the |your )?(?:previous|above|prior)|you (?:must|shall|are) (?:now |always )?(?:remember|store|save|memori[sz]e|an? (?:ai|assistant|helpful|bot|agent)|instructed)|(?:store|save|add|write|put|commit) (?:this|that|it|the following)?\s*(?:fact )?(?:in|into|to) (?:your |long-term |the |permanent )*memory|to be remembered|newfacts|<[a-z_/-]+>)\b|用户|读者|助手|系统提示|人工智能|写入记忆|存入记忆|加入记忆|长期记忆",
            )?,
            own_clause: Regex::new(
                r"(?i)^\W*(?:(?:and|but|since|as|because|given(?: that)?|btw|by the way)\b\W*)?(?:(?:i|i'm|i’m|i've|i’ve|i'd|we|we're|we've)\b|my\b|our\b|我|我们|咱)",
            )?,
            first_person: Regex::new(
                r"(?i)\b(?:i|me|my|mine|myself|we|us|our|ours|i'm|i’m)\b|我|咱|俺|本人|私|僕|저|나는|\b(?:ich|mein|meine|wir|je|moi|mon|ma|yo|mi|mis|io|eu)\b",
            )?,
            nominative: Regex::new(r"(?i)\b(?:i|i'm|i’m|i've|we|we're|ich|wir|je|yo|io|eu)\b")?,
            wish: Regex::new(
                r"(?i)^\W*(?:please|always|never|don'?t|don’t|do not|call me|use|be|stop|avoid|no\b|remember|from now on|keep|answer|speak|skip|prefer|only|less|more|start|end|address|default)|^\W*(?:请|以后|今后|不要|别|总是|永远|记住|叫我|用|从现在)",
            )?,
            third_person: Regex::new(
                r"(?i)^\W*(?:and |but |because |so )?(?:he|she|they|it|his|her|their|you|your|he's|she's|they're|you're)\b|^\W*(?:他|她|它|你|您)",
            )?,
            relation: Regex::new(&format!(
                r"(?i)\b(?:my|our|the|a|their|his|her)\s+(?:\w+\s+)?({RELATIONS})(?:'s|’s)?\b|我(?:的|们|们的)?({DENSE_RELATIONS})"
            ))?,
        })
    }

    fn is_statement(&self, sentence: &str) -> bool {
        let wished = self.lasting.is_match(sentence) || self.reminder.is_match(sentence);
        let reported = self.reported.is_match(&self.own_report.replace_all(sentence, ""));
        let speaker = self.spoken_by.captures(sentence).and_then(|found| found.get(1));
        let is_another = speaker.is_some_and(|name| !NOTES.contains(&name.as_str().to_lowercase().as_str()));
        !sentence.trim().is_empty()
            && !is_another
            && (!self.task.is_match(sentence) || wished)
            && !reported
            && !self.sarcastic.is_match(sentence)
            && !self.imagined.is_match(sentence)
            && !self.scripted.is_match(sentence)
    }
}

/// Returns the sentences in which a person states something. `own` are their own words.
pub(super) fn statements(own: &str) -> Vec<String> {
    // Without its rules nothing is a statement.
    let Some(rules) = RULES.as_ref() else { return Vec::new() };
    if rules.unmeant.is_match(own) {
        return Vec::new();
    }
    let plain = straight(own);
    let mut text = rules.quoted.replace_all(&plain, CUT).into_owned();
    if let Some(found) = rules.handed.find(&text) {
        // What stands before may be a statement; the line that hands over is none.
        let before = found.as_str().rfind(['.', '!', '。', '！']).map_or(0, |at| at + 1);
        let kept = text.get(..found.start() + before).unwrap_or_default();
        text = format!("{kept} {CUT}");
    }
    let mut stated = Vec::new();
    for sentence in sentences(&text) {
        if rules.question.is_match(sentence) && !rules.reminder.is_match(sentence) {
            stated.extend(own_clauses(rules, sentence));
        } else if rules.is_statement(sentence) {
            stated.push(sentence.trim().to_owned());
        }
    }
    stated
}

/// Words that a statement has, and beginnings of Chinese requests that have such words, too.
struct DeclarativeRules {
    said: Regex,
    /// Words for the person as the one to serve: "give me".
    asked_for: Regex,
    dense_request: Regex,
}

static DECLARATIVE: LazyLock<Option<DeclarativeRules>> = LazyLock::new(|| {
    Some(DeclarativeRules {
        said: Regex::new(
            r"(?i)\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|mine|ours|is|are|was|were|has|had|will|\w+'s)\b|^\W*(?:the|this|that|these|those|there|it|he|she|they|everyone|nobody|paid|got|bought|went|met|had|saw|finally|today|yesterday|last|big news)\b|\p{Han}",
        )
        .ok()?,
        asked_for: Regex::new(r"(?i)\b(?:do|can|could|should) (?:i|we)\b|\b(?:i|we) (?:need|want)\b|(?:给|帮|告诉|教|让)(?:我们|我)|我(?:们)?需要").ok()?,
        dense_request: Regex::new(r"^\W*(?:请|麻烦)?(?:把|将|给|帮|用.{1,6}(?:总结|写|做|画|说)|根据|按|翻译|总结|概括|润色|解释|写|列|找|讲|安排|推荐|设置|优化|修复|计算|比较|画|查|算|做|改|谢谢|你好|为|为了|检查|搜|计划|想)").ok()?,
    })
});

/// Whether a text says something, and does not only ask for something or greet.
#[must_use]
pub fn states_something(text: &str) -> bool {
    let (Some(rules), Some(declarative)) = (RULES.as_ref(), DECLARATIVE.as_ref()) else { return true };
    let is_declarative = |sentence: &str| {
        let own = declarative.asked_for.replace_all(sentence, " ");
        let is_request = declarative.dense_request.is_match(sentence) && !own.contains('我');
        declarative.said.is_match(&own) && !is_request
    };
    let says = |sentence: &str| {
        if rules.lasting.is_match(sentence) || rules.reminder.is_match(sentence) {
            return true;
        }
        match rules.question.is_match(sentence) || rules.task.is_match(sentence) {
            true => !own_clauses(rules, sentence).is_empty(),
            false => is_declarative(sentence),
        }
    };
    sentences(&text.replace('\u{2019}', "'")).into_iter().any(says)
}

/// Returns what somebody says of themselves on the way to a question: the clauses before it.
fn own_clauses(rules: &StatementRules, question: &str) -> Vec<String> {
    if !rules.is_statement(question) {
        return Vec::new();
    }
    let clauses: Vec<&str> = question.split([',', '，', '—', '–', ':', '：']).collect();
    let before = clauses.split_last().map(|(_, before)| before).unwrap_or_default();
    let is_lead = |clause: &&&str| {
        !rules.own_clause.is_match(clause) && clause.split_whitespace().count() <= MAX_LEAD_WORDS
    };
    let own = before
        .iter()
        .skip_while(is_lead)
        .take_while(|clause| rules.own_clause.is_match(clause) && !rules.question.is_match(clause));
    own.filter(|clause| rules.is_statement(clause)).map(|clause| clause.trim().to_owned()).collect()
}

/// Whether a sentence is about somebody or something else than a fact makes of it: about a colleague, where the fact
/// names none.
pub(super) fn is_of_another(sentence: &str, fact: &str) -> bool {
    let Some(rules) = RULES.as_ref() else { return true };
    let known = recall_words(fact);
    let is_named = |noun: &str| telling_words(noun).iter().all(|word| known.contains(word));
    let related = rules.relation.captures(sentence).and_then(|found| found.get(1).or(found.get(2)));
    let speaks_of_self = rules.nominative.is_match(sentence) || sentence.matches('我').count() > 1;
    if let Some(noun) = related.filter(|_| !speaks_of_self) {
        return !is_named(noun.as_str());
    }
    if rules.first_person.is_match(sentence) {
        return false;
    }
    if rules.third_person.is_match(sentence) {
        return true;
    }
    // An answer in a few words, or a wish, is the person's; else its subject has to be the fact's.
    let words = telling_words(sentence);
    !rules.wish.is_match(sentence)
        && words.first().is_some_and(|first| words.len() > 1 && !known.contains(first))
}

#[cfg(test)]
mod tests;
