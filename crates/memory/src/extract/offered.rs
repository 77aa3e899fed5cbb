//! The part of memory that a prompt shows. An answer can change only this part, and only facts unchanged since then.

use super::transcript::Transcript;
use crate::{
    document::MemoryDocument,
    fact::{Fact, FactId},
    options::MemoryOptions,
    time::FactTime,
};
use pudu_store::{recall_words, telling_words};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Topics in which a new fact can replace an old one without sharing a word: "moved to Rome", "lives in Paris". Each
/// topic lists stems of English words, and Chinese words.
const TOPICS: [(&str, &[&str]); 6] = [
    ("live move resid flat apart home hous citi town born reloc", &["住", "搬", "家在", "老家", "城市"]),
    (
        "work job employ compani hire quit join boss manag career retir studi student teach",
        &["工作", "上班", "公司", "离职", "入职", "辞职", "退休", "读书", "老师"],
    ),
    ("name call nicknam", &["叫", "名字", "姓"]),
    (
        "like love prefer hate favourit favorit enjoy dislik switch use want",
        &["喜欢", "爱", "讨厌", "偏好", "习惯", "换成", "改用", "希望"],
    ),
    (
        "eat drink vegan vegetarian diet allerg meat food alcohol smoke",
        &["吃", "喝", "素", "过敏", "抽烟", "酒"],
    ),
    (
        "marri divorc wife husband partner girlfriend boyfriend children kid babi daughter son engag",
        &["结婚", "离婚", "老婆", "老公", "女朋友", "男朋友", "孩子", "儿子", "女儿"],
    ),
];

/// Maximum number of facts that are shown because the conversation mentions them.
const MAX_RELATED: usize = 40;

/// Facts shown to a model, and the ones that it must review or may merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedFacts {
    /// Revisions of the shown facts: those related to the conversation, and those in `stale` and `groups`.
    pub shown: HashMap<FactId, u64>,
    /// Facts that are due for review. Empty if there are too few to start a review.
    pub stale: Vec<FactId>,
    /// Facts that may be merged, grouped by category.
    pub groups: Vec<Vec<FactId>>,
}

impl OfferedFacts {
    /// Determines the facts for a prompt. `now` is in milliseconds since 1970.
    #[must_use]
    pub fn from_document(
        document: &MemoryDocument,
        transcript: &Transcript,
        options: &MemoryOptions,
        now: i64,
    ) -> Self {
        let now = FactTime::from_millis(now);
        let (stale, groups) = (stale(document, options, now), groups(document, options));
        let mut shown: HashSet<&FactId> = stale.iter().chain(groups.iter().flatten()).collect();
        shown.extend(related(document, transcript).into_iter().map(|fact| &fact.id));
        let shown = document.facts.iter().filter(|fact| shown.contains(&fact.id));
        Self { shown: shown.map(|fact| (fact.id.clone(), fact.revision)).collect(), stale, groups }
    }

    /// Whether a fact is unchanged since it was shown.
    pub(super) fn is_unchanged(&self, fact: &Fact) -> bool {
        self.shown.get(&fact.id) == Some(&fact.revision)
    }
}

/// Returns the topics of a text, as indices.
fn topics(text: &str) -> impl Iterator<Item = usize> {
    let (words, text) = (recall_words(text), text.to_lowercase());
    let is_in = move |(stems, dense): &(&str, &[&str])| {
        stems.split(' ').any(|stem| words.contains(stem)) || dense.iter().any(|word| text.contains(word))
    };
    TOPICS.iter().enumerate().filter(move |(_, topic)| is_in(topic)).map(|(place, _)| place)
}

/// Returns the facts that share words or a topic with the conversation, the ones with the largest share of words first.
fn related<'a>(document: &'a MemoryDocument, transcript: &Transcript) -> Vec<&'a Fact> {
    let spoken: HashSet<&String> = transcript.own().iter().flat_map(|line| &line.spoken).collect();
    let topics_spoken: HashSet<usize> =
        transcript.own().iter().flat_map(|line| &line.statements).flat_map(|said| topics(said)).collect();
    let share = |fact: &Fact| {
        let words = telling_words(&fact.content);
        let words = if words.is_empty() { recall_words(&fact.content).into_iter().collect() } else { words };
        let found = words.iter().filter(|word| spoken.contains(word)).count();
        // In thousandths, because integers implement `Ord`.
        let share = found * 1_000 / words.len().max(1);
        share.max(usize::from(topics(&fact.content).any(|topic| topics_spoken.contains(&topic))))
    };
    let mut related: Vec<(usize, &Fact)> = document.facts.iter().map(|fact| (share(fact), fact)).collect();
    related.retain(|(share, _)| *share > 0);
    related.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.id.cmp(&second.id)));
    related.into_iter().take(MAX_RELATED).map(|(_, fact)| fact).collect()
}

fn stale(document: &MemoryDocument, options: &MemoryOptions, now: FactTime) -> Vec<FactId> {
    if !options.staleness_review {
        return Vec::new();
    }
    let open = |fact: &&Fact| !options.staleness_protected.iter().any(|name| name == fact.category.name());
    let due = document.facts.iter().filter(open).filter(|fact| fact.is_stale(options.staleness_days, now));
    let due: Vec<FactId> = due.map(|fact| fact.id.clone()).collect();
    if due.len() >= options.staleness_min { due } else { Vec::new() }
}

fn groups(document: &MemoryDocument, options: &MemoryOptions) -> Vec<Vec<FactId>> {
    if !options.consolidation {
        return Vec::new();
    }
    let mut groups: BTreeMap<&str, Vec<FactId>> = BTreeMap::new();
    for fact in document.facts.iter().filter(|fact| fact.category.name() != "correction") {
        groups.entry(fact.category.label()).or_default().push(fact.id.clone());
    }
    let mut groups: Vec<Vec<FactId>> =
        groups.into_values().filter(|group| group.len() >= options.consolidation_min).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups.truncate(options.consolidation_max_groups);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FactCategory, MemoryScope,
        extract::transcript::tests::{bot, me},
    };
    use pudu_base::UserId;

    #[test]
    fn only_facts_that_the_conversation_mentions_are_shown() {
        let mut document = MemoryDocument::empty(MemoryScope::for_user(UserId::local()));
        let facts = ["Lives in Paris", "Has a dog named Bo", "Is allergic to nuts", "住在北京", "养了一只猫"];
        document.facts = (facts.iter().enumerate())
            .map(|(n, text)| {
                let (id, now) = (FactId::new(&format!("f{n}")).unwrap(), FactTime::default());
                Fact::new(id, text, FactCategory::Context, 0.9, now)
            })
            .collect();
        for (said, expect) in [
            ("I moved to Rome", &["f0", "f3"][..]),
            ("My dog is ill", &["f1"]),
            ("I stopped eating nuts", &["f2"]),
            ("我搬到上海了", &["f0", "f3"]),
            ("My car is red", &[]),
        ] {
            let transcript = Transcript::from_turns(&[me(said), bot("ok")]).unwrap();
            let offered = OfferedFacts::from_document(&document, &transcript, &MemoryOptions::default(), 0);
            let mut shown: Vec<&str> = offered.shown.keys().map(FactId::as_str).collect();
            shown.sort_unstable();
            assert_eq!(shown, expect, "{said}");
        }
    }
}
