//! Extracts statements, sentence by sentence, from people's own words. Omits questions, tasks, words that they report,
//! quote or only imagine, and texts that they submit for processing.
//!
//! A doubtful sentence is omitted: it then proves nothing, and the person can repeat it. Deliberately absent: grammar.
//! The patterns are English and Chinese words.

use super::own::CUT;
use crate::text::{sentences, simplified, straight_quotes};
use regex::Regex;
use std::sync::LazyLock;

/// Verbs that ask the agent to work on a text or to look at something.
const TASKS: &str = "translate|summari[sz]e|paraphrase|proofread|rewrite|rephrase|reword|edit (?:this|the|my|it)|fix|correct|polish|improve|explain|analy[sz]e|review|check|classify|extract|read|parse|convert|continue|complete|repeat|echo|print|write|draft|reply|respond|quote|transcribe|tag|grade|rate|evaluate|compare|format|spell-?check|describe|list|show|find|search|look|open|tell|give|create|make|generate|run|say|fetch|download|browse|visit|summary|translation|cite|recite|render|turn|put|sum|guess|sing|play|roleplay|act|debug|refactor|test|implement|solve|calculate|count|sort|shorten|expand|clean|store|save|note|add";
/// The same in Chinese.
const CHINESE_TASKS: &str = "翻译|翻成|译成|译为|总结|概括|润色|改写|解释|分析|检查|看看|看一下|读一下|阅读|列出|写一|写个|写封|写首|生成|比较|修改|续写|复述|重复|告诉我|搜索|查一|提取|校对|扮演|说说|介绍|纠正|改正|打开|存下|保存|记录|摘要|转述|朗读|念一";
/// Kinds of texts that a person may submit.
const HANDED: &str = "mail|email|e-mail|message|article|text|letter|log|logs|output|doc|document|page|webpage|transcript|prompt|post|review|answer|reply|conversation|chat|quote|story|essay|poem|lyrics|bio|cv|script|code|config|file|note|notes|ticket|paragraph|sentence|sentences|result|snippet|screenshot|comment|tweet|memo|report|readme|contract|form|subtitle|caption|example|test case|fixture|csv|json|yaml|table|dialogue|dialog|wiki|blog|tool|page says|website|pdf|slide|slides|minutes|interview|testimony|speech|diary|recipe|sample";
/// Words before a colon that introduce the person's own text.
const INTRODUCTIONS: &str = " ps note nb correction update fyi btw edit also answer reminder tldr context background about long story \
    short maybe perhaps you can could help me my i quick question here here's is the a an thing problem situation issue reason truth \
    for in of to so and but or it this by way with one more fact facts fun info details profile setup stack diet clear honest \
    intro anyway ok sorry lol need please just know should what's who am that hi hello hey as bit summary main only first second ";
/// The same in Chinese.
const CHINESE_INTRODUCTIONS: &str = "补充|更正|备注|另外|回答|说明|背景|情况|前提|自我介绍|对了|问题|原因|是这样|我|一下|先|的|简单|基本|关于|自己|说|下|如下|是|个|哦|啊|，|,| ";

/// Phrases that retract or cast doubt on any clause before them: "I think", "it fell through".
const GIVEN_UP: &str = r"(?i)\bthat's (?:the|my|our) (?:dream|goal|plan|idea|hope)\b|^\W*(?:ha|haha|lol|nah|well|ok|okay),? (?:no|not)\b|^\W*(?:not|nah|lies|as if|you wish|i wish)\W*$|^\W*(?:sorry|oops|whoops|i mean|i meant|correction)[,:] \w+(?: \w+)?\W*$|(?:^|[,.;…!–—-]\s*|\band (?:then )?)(?:(?:but|edit|well|ok|okay|and|so|then)[:,]?\s+)*(?:in reality\b|(?:i|we) (?:think|guess|reckon|believe|suppose)\W*$|(?:i|we) (?:think|guess),|or (?:was|is|maybe|were)\b|(?:or|at least) so (?:i|they)\b|forget (?:it|that)|(?:ok|okay|all right|alright),? fine\b|fine,|(?:that|it|this)(?:'s| is| was) (?:not (?:right|true|correct)|wrong|a lie|over|gone|no more|off)|(?:it|that|they)?(?:'s| is| are)?\s?all gone|(?:it|that|this|i|we|they|he|she)?\s?(?:chickened|backed|bailed|pulled|dropped|opted) out|(?:it|that|this|which|they)?\s?(?:fell through|expired|ran out|went away|didn't (?:happen|last|work out|stick)|never happened|got cancelled|was cancelled)|(?:\w+ ){0,2}changed (?:my|his|her|their|our) mind)|[，。！…](?:要不就是|或者是|还是说|也可能|记不清|没查过|不太确定|反悔|没成|泡汤|行吧|好吧|其实(?:不|没|一)|早(?:就)?(?:不|没|转|换|改)|拿错|记错|搞错|说错|全还给|又挂)|又挂了|来着(?:$|[，。])";
/// Words that retract a message's own statements or the previous message's: "just kidding".
const RETRACTED: &str = r"(?i)\b(?:(?:just|only|totally|obviously) kidding|kidding!|(?:i'?m |im |was )?(?:just |only )?(?:kidding|joking|messing (?:with|around)|pulling your leg|teasing|trolling)|jk|gotcha|psych|had you (?:there|going)|(?:that|this) (?:was|is) a joke|(?:this|that) is (?:just )?a test|not (?:really )?true|not real|for testing|ignore that|forget i said (?:that|anything)|i lied|april fools?|made that up)\b|[.…!,]\W*(?:in (?:my|your) dreams|in the shower|in my head|in another life|i wish|as if|said (?:nobody|no one) ever)\W*$|愚人节|想得美|(?:[🙄🤡🙃]|\s/s)\W*$|开玩笑|当我没说|别当真|才怪|(?:^|[。！!…，,])\W*假的\W*$|(?:^|[.!?…]\s*)(?:well,? |nah,? |no,? )?not really\W*$|骗你|逗你|闹着玩|说着玩|开个玩笑|吹牛|吹的|想多了|(?:在|做)梦里|我乱说|随便说|只是测试|这是测试|瞎编";
/// Maximum length of a message that can retract the previous one, in characters.
const MAX_RETRACTION_CHARS: usize = 40;
/// Maximum number of words in a clause before a statement: "Quick one".
const MAX_LEAD_WORDS: usize = 3;

/// Patterns to find a person's statements among other sentences.
struct StatementRules {
    /// Pieces between quotation marks.
    quoted: Regex,
    /// A text submitted after a colon, or below a line that announces it.
    handed: Regex,
    /// The person as a subject after a colon, with the words before it.
    introduced: Regex,
    chinese_introduction: Regex,
    /// A message that is not meant literally: role-play, a song, a template.
    unmeant: Regex,
    /// A message that retracts itself or the previous one.
    retracted: Regex,
    given_up: Regex,
    question: Regex,
    task: Regex,
    /// A lasting preference that is worded as a task.
    lasting: Regex,
    sarcastic: Regex,
    /// A request to remember something, in any form.
    reminder: Regex,
    reported: Regex,
    own_report: Regex,
    imagined: Regex,
    /// Mentions a user or an assistant, as prompts and documents do.
    scripted: Regex,
    /// A clause in which people talk about themselves.
    own_clause: Regex,
    /// The beginning of such a clause after another clause.
    later: Regex,
    contrast: Regex,
    concession: Regex,
    /// A task on a text, which may follow in the same sentence.
    text_task: Regex,
}

static RULES: LazyLock<Option<StatementRules>> = LazyLock::new(|| StatementRules::compile().ok());

impl StatementRules {
    fn compile() -> Result<Self, regex::Error> {
        let lead = r"^\W*(?:(?:please|pls|can you|could you|would you|will you|you|hey|hi|hello|ok|okay|so|and|now|then|first|also|next|just|kindly|i want you to|i need you to|i'd like you to|help me(?: to)?|let's|thanks|quickly|pudu)\b\W*)*";
        let chinese_lead = r"^\W*(?:请|麻烦|帮我|帮忙|你|能不能|能否|可以|可不可以|给我|把|将|现在|先|再|然后|那|好的|这句话?|这段话?|下面的?|这个|它|，|,)*";
        Ok(Self {
            quoted: Regex::new(
                r#"“[^”\n]{8,}”|„[^“”\n]{8,}[“”]|«[^»\n]{8,}»|「[^」\n]{3,}」|『[^』\n]{3,}』|《[^》\n]{3,}》|“[^”\n]*[\p{Han}][^”\n]*”|"[^"\n]{8,}"|"[^"\n]*\p{Han}{2}[^"\n]*"|(?:^|[\s(:,])'[^'\n]{8,}?'(?:$|[\s.,;:!?)])|‘[^’\n]{8,}’|`[^`\n]+`|[=;{}()][^\n#]{0,40}\s(?:#|//)[^\n]*"#,
            )?,
            handed: Regex::new(&format!(
                r"(?im)^(?:[^\n]*?\b(?:{TASKS}|{HANDED})\b[^\n:：]{{0,120}}[:：](?:[^/\d]|\z)|[^\n]*?(?:{CHINESE_TASKS}|这段|以下|下面|如下|这封|这篇|这个网页|内容|原文|写道|例句|日志|输出|结果)[^\n:：]{{0,60}}[:：]|[^\n]*\b(?:the following|below|(?:of|about|at|check|read|see) (?:this|these)|(?:this|these|the|a|an) (?:\w+ ){{0,3}}(?:{HANDED}))\b[^\n]{{0,60}}\n|{lead}(?:{TASKS})\b[^\n]{{0,120}}\n|[^\n]*(?:这段|以下|下面|如下|这封|这篇)[^\n]{{0,40}}\n|(?:from|via|by|in)\b[^\n]{{0,60}}[:：]\s*\n|[^\n]*?\b(?:begins?|starts?|goes|ends?|reads?|says|shows?|runs)\b[^\n:：]{{0,20}}[:：](?:[^/\d]|\z)|\W*(?:the|this|that|a|an|his|her|their)\b[^\n:：]{{0,60}}[:：]\s*(?:i|my|we|our)\b|(?-i:\p{{Lu}}[\w.'-]{{1,20}}(?: \p{{Lu}}[\w.'-]{{1,20}})?)[:：]\s*\n)"
            ))?,
            introduced: Regex::new(
                r"^([^:：]{1,120}?)[:：]\s*(?:(?i:i|i'm|i've|i'd|my|we|our)\b|我|咱|本人|俺)",
            )?,
            chinese_introduction: Regex::new(&format!("^(?:{CHINESE_INTRODUCTIONS})*$"))?,
            unmeant: Regex::new(
                r"(?i)\b(?:role-?play(?:ing)?|stay in character|lorem ipsum|you killed my|fill(?:er|-in) text|for (?:this|the) (?:exercise|scenario|simulation|role|sake of (?:the )?argument)|which (?:band|song|singer)|what song|who (?:sings|sang|sung)|name (?:that|this) song|stuck in my head|verified purchase|posted \d+ (?:minutes?|hours?|days?) ago|posted by u/\w+|yours (?:faithfully|sincerely|truly))\b|\bdear (?:sir|madam|hiring|mr\b|mrs\b|ms\b)|[♪♫]|(?:^|[.!?]\s*)my (?:absolute |new )?favou?rite[.!]*\W*$|★★|^\W*(?:please )?act as\b|^\W*(?:ok |so )?you(?:'ll)? (?:be|play|act)\b|\bi(?:'ll| will) (?:be|play) (?:the|a|an|your)\b.{0,40}[,:;]|来一?[场局段出]|我是[^，。！]{1,8}[，,]\s*你是|你是[^，。！]{1,8}[，,]\s*我是|(?:我们|咱们|来)玩个?.{0,4}游戏|(?:^|[，。])\W*你(?:来|就)?当|你(?:来|就)?(?:演|扮)|我(?:来)?(?:演|扮)|^\W*q[:.)].*\n\W*a[:.)]|\byou(?:'re| are) (?:my|the|an?) [\w-]+(?: [\w-]+)?[.,;!]*\s+(?:and )?(?:i am|i'm)\b|\bi(?:'m| am) [^.!?\n]{1,60}\byou(?:'re| are) (?:my|the|an?)\b|\bfrom now on,? (?:i'm|i am|you're|you are)\b|角色扮演|你是(?:我的?)?(?:病人|客人|顾客|老师|学生|医生|面试官|敌人)|这首歌|谁唱|哪首歌|尊敬的|此致|敬上",
            )?,
            retracted: Regex::new(RETRACTED)?,
            given_up: Regex::new(GIVEN_UP)?,
            question: Regex::new(
                r#"(?i)[?？]["'”’)\]\s\p{So}]*$|^\W*(?:(?:and|but|so|ok|hey|please)\b\W*)*(?:(?:what|who|where|when|why|how|which|whose)(?:'s|\s+(?:is|are|do|does|did|was|were|can|could|should|would|will|have|has|am|much|many|to|about|if|else|kind|colou?r|of))\b|(?:what|who|where|when|why|how|which|whose) (?:\w+ ){0,3}(?:do|does|did|can|could|should|would|will|shall|am|is|are) (?:i|we|my|you|the)\b|(?:is|are|am|was|were|do|does|did|can|could|would|will|should|shall|may|have|has)\s+(?:i|you|we|he|she|it|they|this|that|there|the|my|your|these|those|any|some|an?)\b)|[吗么呢][\s。.!！～~]*$|^\W*(?:请问|什么|谁|怎么|怎样|为什么|哪|如何|是否|有没有)"#,
            )?,
            task: Regex::new(&format!(
                r"(?i){lead}(?:{TASKS})\b|^\W*(?:please )?(?:call|ping|remind|wake|notify) me (?:when|if|once|later|back|at|in|on|tomorrow|asap|after|before|about|to)\b|{chinese_lead}(?:{CHINESE_TASKS})"
            ))?,
            lasting: Regex::new(
                r"(?i)^\W*(?:please\s+)?(?:(?:give|send|keep|write)(?: me| your| all| the)* (?:answers|replies|responses)|always|never|from now on|in (?:the )?future|by default|whenever)\b|\b(?:from now on|every time|in (?:the )?future|by default|from here on)(?:[.!\s]*$|,)|^\W*(?:请|麻烦)?(?:以后|今后|总是|永远|一律|从现在起|从今)",
            )?,
            sarcastic: Regex::new(
                r"(?i)[🙄🤡🙃]|\byeah,? right\b|^\W*(?:oh|ah|yeah|sure|right|wow|yes|yep),? (?:sure|yeah|right|yes|absolutely|of course|totally|definitely|obviously)\b|^\W*(?:sure|right|obviously|clearly),? (?:i|i'm|my|we)\b|\b(?:said|says) (?:nobody|no one) ever\b|\b(?:oh|wow|ah),? (?:great|wonderful|joy|perfect|fantastic|lovely|brilliant)\b|\b(?:sure|right|yeah),? because\b|\bjust love (?:it when|how|when|wait\w*|being|getting|having)\b|\blike i'd ever\b|\blove that for me\b|^\W*(?:sure|right|yeah|yes|ok|of course),? and (?:i'm|i am)\b|\bbecause obviously\b|(?:真棒|真好|太棒了|太好了|得)[，,！!]\s*又|可把我.{1,4}坏了|\bas if i\b|呵呵|才怪|^\W*(?:对对对|是是是|好好好)|狗头|\[doge\]|可真(?:是)?(?:太)?(?:喜欢|爱|开心|棒|行|会|好)|真是太(?:幸运|荣幸|幸福|开心|棒|好)了|可太|真是(?:太)?(?:爱|喜欢)死",
            )?,
            reminder: Regex::new(
                r"(?i)^\W*(?:(?:please|pls|could you|can you|would you|will you|hey|hi|and|also|so)\b\W*)*(?:keep in mind|bear in mind|remember|note|don't forget|be aware)(?: please)?(?: that)?\W+(?:i'm|i am|i've|i|my|we|our)\b",
            )?,
            reported: Regex::new(
                r"(?i)\b(?:(?:was|is|were|are) like,|ha(?:s|ve|d) me (?:down|listed|as|at)|tell(?:s|ing)? people|keeps? (?:telling|saying)|exact words|told by|(?:wants|needs|asks|expects|begs|forces|urges|would like) (?:me|us) to|(?:everyone|everybody|people|they) (?:thinks?|assumes?|believes?))\b|抱怨|吐槽|以[为為]|(?:算命|星座|网上|传言|大师|朋友圈)的?(?:们)?(?:都)?说|网友|\b(?:asking for (?:a|my|someone|somebody)|(?:they|people|some|others|you) say|says|said|saying|stated|states that|told (?:me|us|him|her|them|you)|wrote|writes that|claims? (?:that|to|he|she|they|i|you)|claimed|mentioned|mentions that|according to|reportedly|allegedly|heard (?:that|from)|asks? (?:you|me|us|to)|asked (?:me|us|you) to|quot(?:e|es|ed|ing)|announced|reads that|insists|believes (?:that|i|he|she)|thinks (?:that|i|he|she|they)|pretends|posted|tweeted|replied)\b|(?:他|她|们|人|友|事|板|师|妈|爸|生|姐|哥|弟|妹|档|章|件|里|面|据|听|上|位|户|员|婆|公|网页|站|它|书|报|导|道|闻|社)(?:们)?(?:都|也|曾|刚|又)?(?:说|称|写着|讲|表示|提到|认为|觉得|要求|声称)|(?:跟|对|和)(?:我|他|她|人|大家|别人)们?[说讲]|写道|[说称]自己|自称|声称|据称|告诉我|写着|转告|转发",
            )?,
            own_report: Regex::new(
                r"(?i)\b(?:my|the) (?:doctor|doc|gp|dentist|therapist|physio) (?:says?|said|confirmed|told me)\b|(?:医生|大夫)(?:都)?说我|\bshould(?:'ve| have) (?:said|mentioned)\b|\b(?:i|we)(?:'ve| have| just| already| once| also)?\s+(?:keep telling (?:you|people)|keep saying|said|told (?:you|u)|mentioned|wrote|stated|announced|posted|replied|say|quote)\b|我(?:刚|已经|之前|也|都)?(?:说|讲|提到)",
            )?,
            imagined: Regex::new(
                r"(?i)^\W*(?:(?:that|this|the|a|which|what|some|an?|old|new|famous|from|in|like|first|last|opening|there's) ){0,4}(?:song|lyrics?|verse|chorus|poem|novel|quote|slogan|proverb|line|tagline|motto|movie|film)\b.{0,60}\b(?:i|i'm|my|we)\b|\b(?:for example|for instance|e\.g\.),? (?:i|my)\b|^\W*(?:please |let's |let us |just )?(?:imagine|pretend|suppose|supposing|assume|assuming|say that|hypothetically|what if|if i (?:were|was|had|lived|became|would)|once upon)\b|\b(?:imagine|pretend|role-?play(?:ing)?|hypothetical(?:ly)?|let's say|if i (?:were|was|lived|had been)|in (?:the|this|my|a|our) (?:[\w&'-]+ ){0,2}(?:story|novel|game|movie|film|play|scene|dream|role|chapter|episode|scenario|timeline|universe|script|screenplay|campaign|larp|rpg|d&d|session|simulation)|(?:my|the) (?:persona|character) (?:for|in)|(?:my|the|his|her) (?:character|protagonist|hero|narrator|persona)|fictional|make-believe|in character|(?:weird|strange|funny|crazy|odd|mad)(?:est)? dreams?|dreams? (?:last night|where|in which|that i)|nightmare|would have been|i wish i (?:were|was|had|lived))\b|设想|试想|假如|假设|假装|梦见|梦到|例如|比如|比方|你就当我|就当我是|如果我(?:是|有|住|在)|要是我|想象|扮演|演一段|来演|演个|对戏|故事里|小说里|游戏里|剧本|角色|梦里|虚构|设定",
            )?,
            scripted: Regex::new(
                r"(?i)^\s*[-*•]\s*[\w ]{1,20}:\s*[a-z]+s\b|\b(?:(?:the|this|our|every|any|all|each) (?:user|users|reader|readers|assistant|human|ai|model|bot|chatbot|agent|llm|operator|recipient|speaker|author|applicant|patient|narrator)|dear (?:assistant|ai|model|agent|bot)|ai (?:assistants?|agents?|models?)|system prompt|ignore (?:all |the |your )?(?:previous|above|prior)|you (?:must|shall|are) (?:now |always )?(?:remember|store|save|memori[sz]e|an? (?:ai|assistant|helpful|bot|agent)|instructed)|(?:store|save|add|write|put|commit) (?:this|that|it|the following)?\s*(?:fact )?(?:in|into|to) (?:your |long-term |the |permanent )*memory|to be remembered|newfacts|(?:dummy|fake|placeholder|made-up|mock|sample|test) (?:\w+ )?(?:data|stuff|user|person|name|birthday|address|account|profile|values?|entry|customer)|<[a-z_/-]+>)\b|随便填|(?:测试|示例|假|虚拟)(?:数据|用户|账号|名字)|用户|读者|助手|系统提示|人工智能|写入记忆|存入记忆|加入记忆|长期记忆",
            )?,
            later: Regex::new(
                r"(?i)(?:[,;–—-]\s*(?:(?:but|and|as|since|because|cause)\s+)?|\b(?:but|because)\s+)(?:actually\s+|in fact\s+)?(?:i|i'm|i've|we|we're|we've|my|our)\b|[，,]?(?:其实|但是?|不过|可是?|实际上)\s*(?:我|咱|本人|俺)|[，,](?:我|咱|本人|俺)",
            )?,
            concession: Regex::new(
                r"(?i)^\W*(?:whatever|no matter|regardless|despite|although|even (?:if|though))\b",
            )?,
            contrast: Regex::new(r"(?i)\b(?:but|actually|in fact)\b|其实|但|不过|可|实际")?,
            text_task: Regex::new(
                r"(?i)\b(?:translate|summari[sz]e|paraphrase|proofread|rewrite|rephrase|reword|edit|fix|correct|polish|improve|quote|transcribe|repeat|echo|print|say|spell|recite|parse|classify|sing|play|act|put this|turn this)\b|翻|译|润色|改写|改成|总结|续写|复述|重复|朗读|念|造句|这[句段封篇]",
            )?,
            own_clause: Regex::new(
                r"(?i)^\W*(?:(?:and|but|since|as|because|given(?: that)?|btw|by the way)\b\W*)?(?:(?:i|i'm|i’m|i've|i’ve|i'd|we|we're|we've)\b|my\b|our\b|我|我们|咱)",
            )?,
        })
    }

    /// Whether a colon attributes the words after it to another speaker, a text or a role.
    fn is_introduced(&self, sentence: &str) -> bool {
        let Some(lead) = self.introduced.captures(sentence).and_then(|found| found.get(1)) else {
            return false;
        };
        let lead = lead.as_str().to_lowercase();
        let is_known = |word: &str| word.is_empty() || INTRODUCTIONS.contains(&format!(" {word} "));
        let is_plain = lead.split(|c: char| !c.is_alphanumeric() && c != '\'').all(is_known);
        !is_plain && !self.chinese_introduction.is_match(&lead)
    }

    fn is_statement(&self, sentence: &str) -> bool {
        let sentence = &simplified(sentence);
        let is_wish = self.lasting.is_match(sentence) || self.reminder.is_match(sentence);
        let reported = self.reported.is_match(&self.own_report.replace_all(sentence, ""));
        !sentence.trim().is_empty()
            && !self.is_introduced(sentence)
            && (!self.task.is_match(sentence) || is_wish)
            && !reported
            && !self.sarcastic.is_match(sentence)
            && !self.imagined.is_match(sentence)
            && !self.scripted.is_match(sentence)
    }
}

/// Whether a message only retracts the previous one: "just kidding".
pub(super) fn is_retraction(own: &str) -> bool {
    let plain = simplified(&straight_quotes(own));
    own.chars().count() <= MAX_RETRACTION_CHARS
        && RULES.as_ref().is_none_or(|rules| rules.retracted.is_match(&plain))
}

/// Returns the sentences in which a person states something. `own` is the text in their own words.
pub(super) fn statements(own: &str) -> Vec<String> {
    // Nothing counts as a statement if the rules did not compile.
    let Some(rules) = RULES.as_ref() else { return Vec::new() };
    let plain = straight_quotes(own);
    let simple = simplified(&plain);
    if rules.unmeant.is_match(&simple) || rules.retracted.is_match(&simple) {
        return Vec::new();
    }
    let mut text = rules.quoted.replace_all(&plain, CUT).into_owned();
    if let Some(found) = rules.handed.find(&simplified(&text)) {
        // The sentences before may be statements; the line that announces the text is not.
        let before = found.as_str().rfind(['.', '!', '。', '！']).map_or(0, |at| at + 1);
        let prefix = text.get(..found.start() + before).unwrap_or_default();
        text = format!("{prefix} {CUT}");
    }
    let mut stated = Vec::new();
    for sentence in sentences(&text) {
        if let Some(mark) = rules.given_up.find(&simplified(sentence)) {
            if sentence.get(..mark.start()).is_some_and(|before| !before.contains(char::is_alphanumeric)) {
                stated.pop();
            }
            stated.extend(later_clauses(rules, sentence.get(mark.end()..).unwrap_or_default()));
        } else if rules.question.is_match(&simplified(sentence)) && !rules.reminder.is_match(sentence) {
            stated.extend(own_clauses(rules, sentence));
        } else if rules.is_statement(sentence) {
            stated.push(sentence.trim().to_owned());
        } else {
            stated.extend(later_clauses(rules, sentence));
        }
    }
    stated
}

/// Words that mark a statement, and openings of Chinese requests, which can contain the same words.
struct DeclarativeRules {
    said: Regex,
    /// The person as the recipient of a service: "give me".
    asked_for: Regex,
    chinese_request: Regex,
}

static DECLARATIVE: LazyLock<Option<DeclarativeRules>> = LazyLock::new(|| {
    Some(DeclarativeRules {
        said: Regex::new(
            r"(?i)\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|mine|ours|is|are|was|were|has|had|will|\w+'s)\b|^\W*(?:the|this|that|these|those|there|it|he|she|they|everyone|nobody|paid|got|bought|went|met|had|saw|finally|today|yesterday|last|big news)\b|\p{Han}",
        )
        .ok()?,
        asked_for: Regex::new(r"(?i)\b(?:do|can|could|should) (?:i|we)\b|\b(?:i|we) (?:need|want)\b|(?:给|帮|告诉|教|让)(?:我们|我)|我(?:们)?需要").ok()?,
        chinese_request: Regex::new(r"^\W*(?:请|麻烦)?(?:把|将|给|帮|用.{1,6}(?:总结|写|做|画|说)|根据|按|翻译|总结|概括|润色|解释|写|列|找|讲|安排|推荐|设置|优化|修复|计算|比较|画|查|算|做|改|谢谢|你好|为|为了|检查|搜|计划|想)").ok()?,
    })
});

/// Whether a text states something, apart from requests and greetings.
#[must_use]
pub fn states_something(text: &str) -> bool {
    let (Some(rules), Some(declarative)) = (RULES.as_ref(), DECLARATIVE.as_ref()) else { return true };
    let is_declarative = |sentence: &str| {
        let own = declarative.asked_for.replace_all(sentence, " ");
        let is_request = declarative.chinese_request.is_match(sentence) && !own.contains('我');
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

/// Returns the clauses in which people talk about themselves before a question.
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

/// Returns the person's own clauses after a task or after other people's words: "people think I am a Scot, but I'm
/// Irish".
fn later_clauses(rules: &StatementRules, sentence: &str) -> Vec<String> {
    let plain = simplified(sentence);
    let is_text = rules.text_task.is_match(&plain)
        || rules.imagined.is_match(&plain)
        || rules.scripted.is_match(&plain);
    if is_text || rules.sarcastic.is_match(&plain) || rules.is_introduced(&plain) {
        return Vec::new();
    }
    let is_report = rules.reported.is_match(&plain) && !rules.concession.is_match(&plain);
    let starts = rules.later.find_iter(&plain).map(|found| (found.start(), found.as_str()));
    let starts = starts.filter(|(_, start)| !is_report || rules.contrast.is_match(start));
    let Some((start, _)) = starts.min() else { return Vec::new() };
    let rest =
        sentence.get(start..).unwrap_or_default().trim_start_matches([',', '，', ' ', ';', '-', '–', '—']);
    (rules.is_statement(rest) && !rules.question.is_match(&simplified(rest)))
        .then(|| rest.trim().to_owned())
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
