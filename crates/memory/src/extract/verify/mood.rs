//! The mood of a clause: whether it states something as true, past, negated, uncertain, wanted or imagined.

use super::super::refused::RefusedReason;
use crate::text::simplified;
use regex::Regex;
use std::{collections::BTreeSet, sync::LazyLock};

/// The mood of a clause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mood {
    /// Whether it is negated, that is, has an odd number of negations.
    negative: bool,
    /// Whether its statement is no longer true: "used to", "quit", "no longer".
    former: bool,
    /// Whether its verb is in the past.
    past: bool,
    /// Expressions of doubt.
    doubts: BTreeSet<String>,
    /// Whether it is wanted or planned.
    wanted: bool,
    /// Whether it mentions a wish or need, in the wider wording that facts use: "needs", "asks for".
    names_wish: bool,
    /// Whether it is a request or a preference.
    asked: bool,
    /// Whether it is a condition or only imagined.
    pub(super) unreal: bool,
}

/// Patterns of words, in both languages.
struct MoodRules {
    neutral: Regex,
    negations: Regex,
    anymore: Regex,
    former: Regex,
    past: Regex,
    over: Regex,
    present: Regex,
    began: Regex,
    learnt: Regex,
    fact_past: Regex,
    state: Regex,
    perfect: Regex,
    doubts: Regex,
    wanted: Regex,
    wants: Regex,
    asked: Regex,
    unreal: Regex,
    conditional: Regex,
    imagined: Regex,
}

/// Phrases that contain a negating word but do not negate.
const NEUTRAL: &str = r"(?i)\b(?:am|'m|are|is|'re|get|got|getting|be) used to\b|\b(?:don't|do not|never|won't|not to|not) (?:ever )?(?:forget|hesitate|worry)(?:ting)?\b|\bnot (?:only|just|to mention|merely|least)\b|\bno (?:doubt|wonder|matter|problem|worries|thanks|thank you|offen[cs]e|joke|kidding|later than|earlier than|less than|more than)\b|\bcan't wait\b|\bcan't help\b|\bnothing but\b|\bwish me luck\b|\b(?:bus|tram|truck|full|pit|next|last) stops?\b|\bnon-?stop\b|\bnone of your\b|^\W*no\W*$|,? (?:isn't|aren't|don't|doesn't|won't|wasn't) (?:it|they|you|i|that)\W*$|不仅|不但|不管|不论|不只是?|不光|不得不|不好意思|对不起|不错|没错|没问题|没关系|不用谢|别忘了|别忘|别人|别墅|特别|区别|级别|性别|分别|识别|告别|类别|个别|无论|无锡|无线|无人机|无糖|非常|非洲|除非|是非|不断|不久|不同|不少|不过|不如|差不多|是不是|能不能|要不要|有没有|来不及|了不起|不锈钢|不动产|未来|未婚";
const NEGATIONS: &str = r"(?i)\b(?:not|no|never|neither|none|nothing|nobody|nowhere|without|cannot|\w+n't|hardly|rarely|seldom|barely|scarcely|lacks?|lacking|too \w+ (?:for|to)|refus(?:e|es|ed|ing|al)|avoid(?:s|ed|ing|ance)?|declin(?:e|es)|dislik(?:e|es|ed|ing)|hat(?:e|es|ed|ing)|loath(?:e|es|ed|ing)|detests?|despis(?:e|es|ed)|disagrees?|distrusts?|unable|anything but|far from|free of|stop|skips?|instead of|except|nor|fail(?:s|ed|ing)? to|flunked|the last (?:person|one|thing)|the only [\w ]{1,30} (?:i|we) (?:can|could)|zero|nonsense|rubbish|untrue|wasted on (?:me|us)|let alone|much less|mixed (?:that|it|this) up)\b|不|没|别|无|非|未|甭|勿|讨厌|很少|极少|拒绝|痛恨|是错的|(?:写|打|记|说|念)成|搞错|弄错|写错|瞎扯|瞎说|胡说|谣言|反感|厌恶|避免|停止|恨";
const ANYMORE: &str = r"(?i)\bno longer\b|\bno more\b|\b(?:not|\w+n't|never|no)\b(.{0,80}?)\b(?:any ?more|any longer)\b|已经不|不再|再也不|再也没";
const FORMER: &str = r"(?i)\b(?:used to (?:be|have|own|live|\w+)|quit|quitt?ed|stopped|ceased|gave up|given up|giving up|former|formerly|previously|ex-\w+|back (?:in (?:19|20|my|the|our|those|college|school|high|uni)\w*|then|when)|let .{1,40} lapse|lapsed|when (?:i|we) (?:was|were|lived|worked|studied|had)|as a (?:child|kid|teenager|student|boy|girl)|in my (?:twenties|thirties|youth|childhood|student days)|in (?:college|high school|my 20s|my 30s)|(?:un(?:subscribed|installed|followed|enrolled)|cancell?ed|sold|resigned|got rid of|gotten rid of|gone off|went off|cut out|called (?:it )?off|out of the [\w-]+ (?:business|game)|days? (?:of|as|in|with) .{1,40} (?:are|is) (?:over|gone|behind me)|gave away|given away|threw away|dropped out|broke up|split up|divorced|moved (?:away|out)|got fired|got laid off|was laid off|was fired|laid off|retired|died|passed away|forgot|forgotten|closed down|shut down|abandoned|deleted|returned)|(?:i|we|just|already) left|until (?:19|20)\d\d|till (?:19|20)\d\d|until last|until recently|last used|in the past|(?:is|are) (?:history|over|behind me|behind us|dead|finished)|in a past life|years ago|once (?:was|were|had|spoke|lived|worked|owned|played|knew))\b|以前|曾经|曾是|曾在|过去|从前|当年|那时|早先|戒(?:了|掉|烟|酒|糖|除)|离职|辞职|辞了|退休|卖了|卖掉|分手|离婚|搬走|搬离|搬出|退出|退订|注销|取消了|放弃了|扔了|丢了|弄丢|毕业了|的时候我?(?:每|常|总|经常|还|就|都)|小时候|上学时|大学时|前任|前夫|前妻|原来(?:在|是|住)|本来(?:在|是|住)|去世|不在了|本来(?:要|想|打算)|没.{1,3}成|年前我?(?:在|是|住|做|当)|前年我?(?:在|是|住)|[\p{Han}--[不经超通难错越路太好]]过(?:[^年生节来去程分于渡度敏日]|$)|那会儿?|上一[份个任]|上家|前公司|老东家|那几年|那些年|那两年|\p{Han}了(?:[一两三四五六七八九十几\d]+)[回次遍]|那阵子|那年|早年|年轻(?:的时候|时)|再没|(?:收|关|停|退|转让|盘|拆|散|黄|结束|断|删|卸载?)(?:起来|掉|出去)?了|拆迁|转行|改行|倒闭|戒的|算了|不干了";
const PAST: &str = r"(?i)(?:^\W*|\b(?:i|we)\s+)(?:\w+ly\s+|just\s+|once\s+|also\s+|always\s+|even\s+|both\s+|all\s+)?(was|were|had|did|ran|went|spoke|taught|wrote|drove|kept|built|lost|broke|flew|drew|held|stood|slept|wore|sang|swam|rode|paid|spent|led|ate|drank|sat|felt|thought|knew|made|gave|took|came|said|saw|lived|grew|fell|found|fought|froze|hid|sold|sent|shut|threw|tore|stuck|swept|caught|brought|chose|outgrew|got (?:over|rid)|[a-z]+[^e\W]ed)\b";
/// Past verbs with any subject.
const OVER: &str = r"(?i)\b(?:my|our|the|that|this|it|\w+ing|there)\b.{0,40}\b(?:was|were|had|ran out|went|lost|broke|ended|closed|expired|fell|died|left|folded|finished|lapsed|disappeared|got (?:\w+ed|taken|stolen|broken|sold))\b";
/// Words for the present. A clause with such a word is not past.
const PRESENT: &str =
    r"(?i)\b(?:am|is|are|i'm|we're|it's|have|has|i've|we've|do|does|don't|can|can't|will|still|born)\b";
/// Past verbs for the beginning of something that continues.
const BEGAN: &str = r"(?i)(?:^\W*|\b(?:i|we)\s+)(?:\w+ly\s+|just\s+|also\s+)?(?:bought|got|adopted|married|inherited|moved to|moved into|moved here|moved from|joined|became|started|began|founded|switched|changed|decided|chose|opened|learned|learnt|finished|graduated|earned|won|grew up|was born|were born|was diagnosed|was raised|was promoted|was hired|was elected|had a (?:baby|son|daughter)|named|signed|subscribed|enrolled|installed|migrated|upgraded|converted|turned|need|agreed|preferred|signed up|turned)\b";
/// Phrases that introduce something that is still true.
const LEARNT: &str = r"(?i)\b(?:i|we)\s+(?:was|were|have been|just|have|'ve)?\s*(?:told|informed|learned|learnt|found out|realised|realized|noticed|decided|mentioned|said|diagnosed)\s+(?:you |that |with )?";
const FACT_PAST: &str = r"(?i)^\W*(?:(?:once|never|also|recently|formerly|previously|already|always|only|just|and) )*(?:was|were|had|did|used to|quit|sold|left [^h]|bought|got|grew|born|lived|ran|went|broke|gave|lost|forgot|spoke|taught|wrote|drove|kept|met|built|began|became|stopped|chose|won|made|took|came|[a-z]+[^e\W]ed)\b|\b(?:was|were|used to|had)\b";
/// Participles that describe a state.
const STATE: &str = r"(?i)^\W*(?:(?:been|just|still|happily|currently|not|also) )*(?:interested|married|engaged|based|certified|qualified|licensed|trained|employed|unemployed|self-employed|retired|divorced|separated|tired|allergic|named|called|color|colour|left-handed|gifted|experienced|used to)\b";
const PERFECT: &str = r"(?i)\b(?:have|has|had|'ve|'s)\s+(?:(?:\w+ly|just|already|also|never|always|not|since|ever|even|both|all|only|once|twice)\s+)?(?:\w{2,}[^e\W]ed|been|learnt|gone|done|had|made|written|lived|grown|seen|met|taken)\b|\bgot\b|\bborn\b|\bgrew\b";
const DOUBTS: &str = r"(?i)\b(?:maybe|perhaps|might|possibly|probably|presumably|potentially|likely|hopefully|ideally|eventually|with any luck|meaning to|becoming|looking into|have yet to|i (?:think|guess|reckon|believe|suppose)\W*$|supposedly|apparently|allegedly|reportedly|seemingly|unsure|undecided|unclear|almost|nearly|wonder|wondering|considering|contemplating|tempted|guess|suppose|suspect|doubt|not sure|not certain|don't know|do not know|no idea|no clue|who knows|not quite|could be|could have|may be|may have|i may|we may|(?:i|it) seems?|thinking (?:about|of)|toying with|(?:this |so )?close to|on the verge of|such an? [\w -]{1,40} that|i see myself|(?:i|we) (?:see|picture) (?:myself|ourselves)|on the fence|i think (?:i|i'm|i've|it|that|we|my)\b|i believe (?:i|i'm|i've|we|my)\b|i feel like|(?:kind|sort) of (?:a|an|vegan|like)|i'm (?:kind|sort) of|it depends|depends on|if i remember|if i recall|in theory|as far as i (?:know|remember)|waiting for the (?:test|result|results|diagnosis)|rumou?r has it)\b|可能|也许|或许|大概|说不定|不确定|不清楚|不知道|没准|八成|多半|十有八九|恐怕|好像|似乎|应该是|估计|应该|记得|来着|(?:是|有|算|我).{0,12}吧$|考虑|琢磨|犹豫|纠结|差点|差一点|听说|据说|怀疑|没想好|没决定|拿不准|我猜|貌似|看情况";
const WANTED: &str = r"(?i)\b(?:want(?:s|ed)?|wanna|would like|would love|kill for|give anything|supposed to|meant to|(?:i|we)'d (?:like|love)|hop(?:e|es|ing)|dream(?:s|t|ed|ing)? (?:of|about)|my dream|wish(?:es)?|plan(?:s|ned|ning)?|intend(?:s|ed)?|intention|aim(?:s|ing)?|goals?|aspires?|aspiring|going to|gonna|looking (?:to|for)|try|tries|trying|needed|(?:what|all) (?:i|we) (?:need|want)|saving (?:up )?(?:for|to)|some ?day|one day|bucket list|(?:heart|sights|eyes?|mind) (?:set )?on|applying|applied|apply|longs? to|yearn|am about to|about to|soon|(?:i|we) (?:should|ought to)(?: really| probably)? (?:be|do|get|have|learn|start|go|eat|drink|stop|try)|once (?:i|we))\b|从(?:明天|后天|下|今天|现在).{0,4}(?:开始|起)|想(?:要|当|去|买|养|学|做|有|在|换|找|成|开|搬|住|考|回|吃|喝|看|用|被|让)|希望|羡慕|^求|(?:等|到).{0,6}退休|梦想|渴望|打算|计划|目标|将来|有朝一日|愿望|攒钱|准备(?:去|买|考|换|搬)|恨不得|巴不得|申请|快要|即将";
/// Words that name a wish in a fact.
const WANTS: &str = r"(?i)\b(?:wants?|wanted|would|hop(?:e|es|ing)|dream\w*|wish(?:es)?|plan\w*|intend\w*|aim\w*|goals?|aspir\w*|intention|seek\w*|needs?|should|must|going to|looking|trying|tries|try|saving|saves|applying|applies|applied|interested|prefers?|asks?|expects?|longs|about to|soon|someday|one day|to be called|should|ought)\b|想|希望|梦想|渴望|打算|计划|目标|要|愿|攒|准备|申请|偏好|请|不要|别|需要|叫";
/// Words that mark a statement as a request or a preference.
const ASKED: &str = r"(?i)^\W*(?:please|pls|always|never|don't|do not|call|use|be|stop|avoid|no\b|remember|from now on|keep|answer|speak|skip|prefer|only|less|more|start|end|address|default|talk|write|reply|respond|give|let|make|and|in|with|when|whenever|by default|just|explain|show|send|format|add|put|no)\b|\b(?:please|prefer|like|need|rather|can you|could you|should)\b|^\W*(?:请|以后|今后|不要|别|总是|永远|记住|叫我|用|从现在|麻烦|回答|全部|一律|称呼)|请|更?喜欢|需要|叫我|用.{0,8}回";
const UNREAL: &str = r"(?i)^\W*(?:(?:and|so|but|or|then)\W+)?(?:do|does|did|am|are|is|was|were|had|have|can|could|should|would|will|may|might) (?:i|we|my|our)\b|\b(?:would|it'd|'d) be (?:\w+ly |so )?(?:nice|great|cool|good|lovely|awesome|amazing|fun|a dream)\b|[吗么][\s。.!！?？~～]*$|我(?:可|又)?哪[^里个些天儿种年怕]|哪里(?:会|有|懂|能|是)|装作|装成|假装|冒充|如果|要是|假如|假设|假使|倘若|万一|(?:我|要|真|能|会|可以|有).{0,12}的话$|\bif (?:i|we|only|my|it)\b|\bunless\b|\bshould (?:i|we) ever\b|\b(?:i|we) wish\b|\bwish i\b|\bwould(?:'ve| have)\b|\bcould've\b|\bonce (?:i|we)(?:'ve| have|'re|'m)\b|\bonce (?:i|we) (?:have|get|am|are|can|finish|earn|retire|own|live|move)\b|\bas soon as (?:i|we)\b|\bwhen i(?:'m| am) (?:rich|older|old|retired)\b|\b(?:let's|let us) (?:assume|say|pretend|imagine|suppose)\b|^\W*(?:say|assume|suppose|imagine|picture|pretend)(?: that)? (?:i|we|my)\b|\bassuming\b|\bprovided (?:that )?(?:i|we)\b|\bin an ideal world\b|\bin another life\b|\bas if i\b|就好了|该多好|^\W*要能|多好啊|哪(?:会|有|能|敢|来的)|怎么可能|谁说";
/// A conditional and its verb.
const CONDITIONAL: &str =
    r"(?i)\b(?:i|we)(?:'d| would)\b(?: (?:never|always|probably|really|just|much|still|also))*(?: (\w+))?";
/// Verbs after "would" that make it polite, not conditional: "I'd like".
const SOFTENED: [&str; 11] = [
    "like",
    "love",
    "rather",
    "prefer",
    "say",
    "call",
    "describe",
    "appreciate",
    "welcome",
    "ask",
    "consider",
];
/// Words that make a whole sentence conditional.
const IMAGINED: &str = r"(?i)\b(?:i (?:could|may|might) be (?:wrong|mistaken)|correct me if|don't quote me|not (?:100|a hundred))|(?:本来|原本).*(?:结果|但|可|后来)|了[一两三四五六七八九十几半\d]+多?(?:年|个月|天).*(?:后来|如今|之后)|^\W*(?:if (?:i|we|only) .{0,60}\b(?:i|we)(?:'d| would)\b)|(?:如果|要是|假如|假设|假使|倘若|万一|的话).*[，, ].*(?:就|会|能|肯定|一定|该|还)|等我.{1,12}我?就|等.{1,8}了我就|的话我?就";

static RULES: LazyLock<Option<MoodRules>> = LazyLock::new(|| {
    let rule = |pattern: &str| Regex::new(pattern).ok();
    Some(MoodRules {
        neutral: rule(NEUTRAL)?,
        negations: rule(NEGATIONS)?,
        anymore: rule(ANYMORE)?,
        former: rule(FORMER)?,
        past: rule(PAST)?,
        over: rule(OVER)?,
        present: rule(PRESENT)?,
        began: rule(BEGAN)?,
        learnt: rule(LEARNT)?,
        fact_past: rule(FACT_PAST)?,
        state: rule(STATE)?,
        perfect: rule(PERFECT)?,
        doubts: rule(DOUBTS)?,
        wanted: rule(WANTED)?,
        wants: rule(WANTS)?,
        asked: rule(ASKED)?,
        unreal: rule(UNREAL)?,
        conditional: rule(CONDITIONAL)?,
        imagined: rule(IMAGINED)?,
    })
});

/// Whether a text is negated.
fn is_negative(rules: &MoodRules, text: &str) -> bool {
    let pairs = text.to_lowercase().contains("neither");
    let negations = rules
        .negations
        .find_iter(text)
        .filter(|found| !(pairs && found.as_str().eq_ignore_ascii_case("nor")));
    negations.count() % 2 == 1
}

/// Whether a text has a true conditional.
fn is_conditional(rules: &MoodRules, text: &str) -> bool {
    rules.conditional.captures_iter(text).any(|found| {
        let verb = found.get(1).map_or("", |verb| verb.as_str()).to_lowercase();
        !SOFTENED.contains(&verb.as_str())
    })
}

/// Whether a text has a past verb, apart from verbs for the beginning of something that continues.
fn has_past(rules: &MoodRules, text: &str) -> bool {
    let began: BTreeSet<usize> = rules.began.find_iter(text).map(|found| found.start()).collect();
    let is_over = rules.over.is_match(text) && !rules.present.is_match(text) && !is_negative(rules, text);
    is_over
        || (!rules.state.is_match(text)
            && rules.past.find_iter(text).any(|found| !began.contains(&found.start())))
}

/// Whether a whole sentence only imagines something.
pub(super) fn is_imagined(sentence: &str) -> bool {
    RULES.as_ref().is_none_or(|rules| rules.imagined.is_match(&simplified(sentence)))
}

impl Mood {
    /// Determines the mood of a clause. Every clause is unreal if the patterns did not compile.
    pub(super) fn from_clause(clause: &str) -> Self {
        let Some(rules) = RULES.as_ref() else { return Self { unreal: true, ..Self::default() } };
        let plain = simplified(&clause.replace('\u{2019}', "'"));
        let plain = rules.neutral.replace_all(&plain, " ");
        let held = rules.learnt.replace(&plain, " I ");
        let is_over = rules.anymore.is_match(&held);
        // "Not … any more" is past, not a negation.
        let held = rules.anymore.replace_all(&held, " $1 ");
        let began = rules.began.is_match(&held);
        let former = rules.former.is_match(&held);
        Self {
            negative: is_negative(rules, &held),
            former: is_over || former || has_past(rules, &held),
            past: (began && !rules.state.is_match(&held))
                || former
                || (rules.fact_past.is_match(&held) && !rules.state.is_match(&held))
                || rules.perfect.is_match(&held),
            doubts: rules.doubts.find_iter(&held).map(|found| found.as_str().to_lowercase()).collect(),
            wanted: rules.wanted.is_match(&held),
            names_wish: rules.wants.is_match(&held),
            asked: rules.asked.is_match(&held),
            unreal: rules.unreal.is_match(&held) || is_conditional(rules, &held),
        }
    }

    /// Compares the mood of a fact's clause with its source clause's.
    pub(super) fn compare(&self, said: &Self) -> Result<(), RefusedReason> {
        if said.unreal && !self.unreal {
            return Err(RefusedReason::Hypothetical);
        }
        if !said.doubts.is_subset(&self.doubts) {
            return Err(RefusedReason::Uncertain);
        }
        self.compare_time(said)?;
        match (said.wanted, self.names_wish) {
            (true, false) => Err(RefusedReason::Hypothetical),
            (false, true) if self.wanted && !said.asked => Err(RefusedReason::Hypothetical),
            _ => Ok(()),
        }
    }

    /// Compares the times. If the source says that something is over, the fact may state it as past or as negated.
    fn compare_time(&self, said: &Self) -> Result<(), RefusedReason> {
        let is_over = self.former || self.past;
        match (said.former, is_over) {
            (true, false) if self.negative == said.negative => Err(RefusedReason::Outdated),
            (false, true) if !said.past => Err(RefusedReason::Outdated),
            (false, _) | (true, true) if self.negative != said.negative => Err(RefusedReason::Opposite),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
