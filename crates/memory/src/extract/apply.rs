//! Decides which parts of a proposal are applied. Pure: maps a document, a proposal and a transcript to changes and
//! refusals.
//!
//! The order is DeerFlow's: confirmations, summaries, stale facts, extensions, new facts, removals, merges. There are
//! two differences. The store evicts facts last, after removals have made room. An extension is counted from the same
//! time as staleness, so that an extended fact is not offered again the next day.

use super::{
    answer::{Labels, Proposal, ProposedFact},
    offered::OfferedFacts,
    refused::RefusedReason,
    signals::Signal,
    support::{find_quote, stated, supported},
    transcript::Transcript,
    verify::{restates, verify, verify_summary},
};
use crate::{
    about::Subject,
    changes::{Changes, SupersedeReason, Supersession},
    document::MemoryDocument,
    fact::{Fact, FactCategory, FactId, FactOrigin, FactSource},
    operations::is_taken,
    options::{EvictionPolicy, MemoryOptions},
    summary::SummaryKey,
    text::{beginning, share_of_words},
    time::FactTime,
};
use pudu_store::recall_words;
use regex::Regex;
use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

/// Maximum number of new facts from one conversation.
const MAX_NEW_FACTS: usize = 20;
/// Minimum share of a merged fact's words that are in its sources.
const MIN_MERGED_SHARE: f64 = 0.6;
/// Minimum share of a summary's significant words that are in memory or in the person's statements.
const MIN_GROUNDED_SHARE: f64 = 0.5;
/// Maximum length of a refused fact's text in the report, in characters.
const MAX_REPORTED_CHARS: usize = 80;

/// Matches mentions of uploaded files, which belong to one conversation and mean nothing later.
static UPLOADS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let english = r"\b(?:upload(?:ed|s|ing)?|attach(?:ed|ment|ments)?)\b.{0,60}\b(?:file|files|document|documents|image|images|pdf|spreadsheet|csv)\b|\b(?:file|files|document|image|pdf|spreadsheet|csv)\b.{0,40}\b(?:uploaded|attached)\b";
    Regex::new(&format!("(?i)(?:{english})|上传.{{0,20}}(?:文件|文档|图片|表格)|附件")).ok()
});

/// A proposed fact or summary that is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFact {
    /// The beginning of its text.
    pub content: String,
    /// The reason.
    pub reason: RefusedReason,
}

/// The outcome of a proposal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// Changes for [`crate::MemoryStore::change`].
    pub changes: Changes,
    /// Facts and summaries that are not stored.
    pub refused: Vec<RefusedFact>,
}

/// The context in which a proposal is judged.
#[derive(Clone, Copy, Debug)]
pub struct Extraction<'a> {
    /// Current memory.
    pub document: &'a MemoryDocument,
    /// The conversation as the model read it.
    pub transcript: &'a Transcript,
    /// The part of memory that the model saw.
    pub offered: &'a OfferedFacts,
    /// Texts of memory that were injected into the conversation or quoted in it.
    pub recalled: &'a [String],
    /// The conversation's thread.
    pub thread: &'a str,
    /// Limits.
    pub options: &'a MemoryOptions,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

impl Extraction<'_> {
    /// Determines which parts of a proposal are applied.
    #[must_use]
    pub fn apply(&self, proposal: &Proposal) -> Applied {
        let mut work =
            Work { case: self, edited: BTreeMap::new(), gone: HashSet::new(), done: Applied::default() };
        work.reinforce(proposal);
        work.summarize(proposal);
        work.remove_stale(proposal);
        work.extend(proposal);
        let stored = work.store_new(proposal);
        work.remove(proposal, &stored);
        work.merge(proposal);
        let edited = work.edited.into_iter().filter(|(id, _)| !work.gone.contains(id)).map(|(_, fact)| fact);
        work.done.changes.facts.extend(edited);
        work.done
    }

    fn at(&self) -> FactTime {
        FactTime::from_millis(self.now)
    }

    /// Returns a fact if it is unchanged since the model saw it.
    fn seen(&self, id: &FactId) -> Option<&Fact> {
        self.document.fact(id).filter(|fact| self.offered.is_unchanged(fact))
    }
}

struct Work<'a> {
    case: &'a Extraction<'a>,
    /// Facts that are kept and changed.
    edited: BTreeMap<FactId, Fact>,
    gone: HashSet<FactId>,
    done: Applied,
}

impl Work<'_> {
    fn refuse(&mut self, content: &str, reason: RefusedReason) {
        let content = beginning(content, MAX_REPORTED_CHARS);
        self.done.refused.push(RefusedFact { content, reason });
    }

    fn edit(&mut self, id: &FactId, change: impl FnOnce(&mut Fact)) {
        if let Some(fact) = self.case.seen(id) {
            change(self.edited.entry(id.clone()).or_insert_with(|| fact.clone()));
        }
    }

    fn supersede(&mut self, id: &FactId, by: Option<FactId>, reason: SupersedeReason) {
        if self.case.seen(id).is_some() && self.gone.insert(id.clone()) {
            self.done.changes.superseded.push(Supersession { id: id.clone(), by, reason });
        }
    }

    /// Records confirmations if the eviction policy uses them and the person confirms something.
    fn reinforce(&mut self, proposal: &Proposal) {
        let weighs = self.case.options.eviction == EvictionPolicy::Hybrid;
        if !weighs || !self.case.transcript.signals().contains(&Signal::Reinforcement) {
            return;
        }
        let (now, ids) = (self.case.at(), proposal.reinforced.iter().collect::<HashSet<_>>());
        for id in ids {
            self.edit(id, |fact| {
                fact.last_confirmed_at = Some(now);
                fact.confirmation_count = Some(fact.confirmation_count.unwrap_or_default().saturating_add(1));
            });
        }
    }

    fn summarize(&mut self, proposal: &Proposal) {
        for summary in &proposal.summaries {
            let text = without_uploads(&summary.text);
            let reason = if summary.labels.scope != "user" || summary.labels.authority != "descriptive" {
                RefusedReason::Labels
            } else if find_quote(self.case.transcript, &summary.quote).is_none() {
                RefusedReason::Quote
            } else if !self.is_grounded(&text) {
                RefusedReason::Support
            } else if let Err(reason) = self.verify_summary(&text) {
                reason
            } else if text.is_empty() {
                RefusedReason::Upload
            } else if text.chars().count() > self.case.options.max_summary_chars {
                RefusedReason::TooMuch
            } else {
                self.done.changes.summaries.push((summary.key, text));
                continue;
            };
            self.refuse(&summary.text, reason);
        }
    }

    /// Compares a summary with the person's statements, except for sentences that restate memory.
    fn verify_summary(&self, summary: &str) -> Result<(), RefusedReason> {
        let case = self.case;
        let stated = case.transcript.own().iter().flat_map(|line| &line.statements);
        let stated: Vec<String> = stated.cloned().collect();
        let facts = case.document.facts.iter().map(|fact| fact.content.as_str());
        let known =
            SummaryKey::ALL.iter().map(|key| case.document.summaries.get(*key).text.as_str()).chain(facts);
        verify_summary(summary, &stated, &known.collect::<Vec<_>>())
    }

    /// Whether most words of a summary are in memory or in the person's statements.
    fn is_grounded(&self, summary: &str) -> bool {
        let case = self.case;
        let mut known = stated(case.transcript);
        let summaries = SummaryKey::ALL.iter().map(|key| case.document.summaries.get(*key).text.as_str());
        let facts = case.document.facts.iter().map(|fact| fact.content.as_str());
        summaries.chain(facts).for_each(|text| known.extend(recall_words(text)));
        Subject::from_fact(summary).share_in(&known) >= MIN_GROUNDED_SHARE
    }

    /// Supersedes the offered facts that a review found outdated, least certain first, up to the limit.
    fn remove_stale(&mut self, proposal: &Proposal) {
        let case = self.case;
        let mut stale: Vec<&Fact> = proposal
            .stale_removals
            .iter()
            .filter(|id| case.offered.stale.contains(id))
            .filter_map(|id| case.seen(id))
            .collect();
        stale.sort_by(|a, b| a.confidence.total_cmp(&b.confidence));
        stale.dedup_by(|a, b| a.id == b.id);
        for fact in stale.into_iter().take(case.options.staleness_max_removals) {
            self.supersede(&fact.id, None, SupersedeReason::Stale);
        }
    }

    fn extend(&mut self, proposal: &Proposal) {
        let (now, longest) = (self.case.at(), self.case.options.max_extension_days);
        for (id, days) in &proposal.extensions {
            if !self.case.offered.stale.contains(id) {
                continue;
            }
            self.edit(id, |fact| {
                let age = fact.last_confirmed_at.unwrap_or(fact.created_at).days_until(now);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "days from 0 on; more than a u32 is the longest"
                )]
                let age = age.ceil() as u32;
                let more = u32::try_from(*days).unwrap_or(u32::MAX);
                fact.expected_valid_days = Some(age.saturating_add(more).min(longest));
            });
        }
    }

    /// Stores new facts. Returns the id of each proposed fact that was stored.
    fn store_new(&mut self, proposal: &Proposal) -> Vec<Option<FactId>> {
        let mut stored = Vec::new();
        for (index, proposed) in proposal.new_facts.iter().enumerate() {
            let outcome = match proposed {
                None => Err(RefusedReason::Malformed),
                Some(_) if stored.iter().flatten().count() >= MAX_NEW_FACTS => Err(RefusedReason::TooMuch),
                Some(proposed) => self.judge(proposed, replaced(proposal, index)),
            };
            match outcome {
                Ok(fact) => {
                    stored.push(Some(fact.id.clone()));
                    self.done.changes.facts.push(fact);
                }
                Err(reason) => {
                    self.refuse(proposed.as_ref().map_or("", |proposed| &proposed.content), reason);
                    stored.push(None);
                }
            }
        }
        stored
    }

    fn judge(&self, proposed: &ProposedFact, replaced: Option<&FactId>) -> Result<Fact, RefusedReason> {
        let case = self.case;
        if !is_lasting(&proposed.labels) {
            return Err(RefusedReason::Labels);
        }
        if proposed.confidence < case.options.min_confidence {
            return Err(RefusedReason::Confidence);
        }
        if proposed.content.chars().count() > case.options.max_content_chars {
            return Err(RefusedReason::TooMuch);
        }
        if speaks_of_uploads(&proposed.content) {
            return Err(RefusedReason::Upload);
        }
        find_quote(case.transcript, &proposed.quote).ok_or(RefusedReason::Quote)?;
        let line = supported(case.transcript, &proposed.quote, &proposed.content);
        let line = line.ok_or(RefusedReason::Support)?;
        verify(&proposed.content, &proposed.quote, &line.statements)?;
        if self.is_known(&proposed.content, replaced) {
            return Err(RefusedReason::Known);
        }
        let origin = FactOrigin { quote: Some(proposed.quote.clone()), ..line.origin.clone() };
        Ok(self.fact(proposed, FactSource::conversation(case.thread), Some(origin)))
    }

    /// Whether a text is in memory, was injected, or is among the new facts. A replacement may repeat the words of the
    /// fact that it replaces.
    fn is_known(&self, content: &str, replaced: Option<&FactId>) -> bool {
        let case = self.case;
        let stored = case.document.facts.iter().chain(&self.done.changes.facts);
        if stored.clone().any(|fact| fact.matches_text(content)) {
            return true;
        }
        let others = stored.filter(|fact| Some(&fact.id) != replaced).map(|fact| fact.content.as_str());
        let recalled = case.recalled.iter().map(String::as_str).filter(|_| replaced.is_none());
        others.chain(recalled).any(|known| restates(content, known))
    }

    fn fact(&self, proposed: &ProposedFact, source: FactSource, origin: Option<FactOrigin>) -> Fact {
        let (case, now) = (self.case, self.case.at());
        let is_new = |id: &FactId| self.done.changes.facts.iter().any(|fact| fact.id == *id);
        let taken = |id: &FactId| is_taken(case.document, id) || is_new(id);
        let id = FactId::derive(&proposed.content, now, taken);
        let category = FactCategory::parse(&proposed.category, None);
        let longest = case.options.staleness_days.saturating_mul(case.options.staleness_lifetimes);
        let days = proposed.valid_days.map(|days| u32::try_from(days).unwrap_or(u32::MAX).min(longest));
        Fact {
            source,
            origin,
            expected_valid_days: days,
            source_error: proposed.source_error.clone().filter(|_| category == FactCategory::Correction),
            ..Fact::new(id, &proposed.content, category, proposed.confidence, now)
        }
    }

    /// Supersedes facts that the person contradicts or retracts. Requires a stored replacement or a quote of the
    /// person's own words.
    fn remove(&mut self, proposal: &Proposal, stored: &[Option<FactId>]) {
        for removal in proposal.removals.iter().filter(|removal| removal.scope == "user") {
            let by = match removal.replacement {
                None if find_quote(self.case.transcript, &removal.quote).is_none() => continue,
                None => None,
                Some(index) => match index.and_then(|index| stored.get(index)).cloned().flatten() {
                    None => continue,
                    by => by,
                },
            };
            self.supersede(&removal.id, by, SupersedeReason::Replaced);
        }
    }

    fn merge(&mut self, proposal: &Proposal) {
        let mut merges = 0;
        for merge in &proposal.merges {
            let sources: Vec<&Fact> = merge.sources.iter().filter_map(|id| self.case.seen(id)).collect();
            if merges >= self.case.options.consolidation_max_groups
                || !self.may_merge(&merge.sources, &sources, &merge.fact)
            {
                self.refuse(&merge.fact.content, RefusedReason::Merge);
                continue;
            }
            merges += 1;
            let best = sources.iter().map(|fact| fact.confidence).fold(0.0, f64::max);
            let newest = sources.iter().map(|fact| fact.created_at).max().unwrap_or_default();
            let origin = sources.iter().rev().find_map(|fact| fact.origin.clone());
            let made = self.fact(&merge.fact, FactSource::parse("consolidation"), origin);
            let fact = Fact {
                confidence: merge.fact.confidence.min(best),
                created_at: newest,
                consolidated_from: merge.sources.iter().map(FactId::to_string).collect(),
                consolidated_at: Some(self.case.at()),
                ..made
            };
            for id in &merge.sources {
                self.supersede(id, Some(fact.id.clone()), SupersedeReason::Consolidated);
            }
            self.done.changes.facts.push(fact);
        }
    }

    /// Whether a merge has the right number of sources, all existing and in one offered group, and its fact says the
    /// same as they do.
    fn may_merge(&self, ids: &[FactId], sources: &[&Fact], merged: &ProposedFact) -> bool {
        let case = self.case;
        let is_offered = case.offered.groups.iter().any(|group| ids.iter().all(|id| group.contains(id)));
        let texts = sources.iter().map(|fact| fact.content.as_str());
        let is_known = self.done.changes.facts.iter().any(|fact| fact.matches_text(&merged.content));
        (2..=case.options.consolidation_max_sources).contains(&ids.len())
            && sources.len() == ids.len()
            && is_offered
            && is_lasting(&merged.labels)
            && !is_known
            && merged.content.chars().count() <= case.options.max_content_chars
            && !ids.iter().any(|id| self.gone.contains(id))
            && share_of_words(&merged.content, texts.clone()) >= MIN_MERGED_SHARE
            && verify(&merged.content, "", &texts.map(str::to_owned).collect::<Vec<_>>()).is_ok()
    }
}

/// Returns the existing fact that a new fact replaces.
fn replaced(proposal: &Proposal, index: usize) -> Option<&FactId> {
    let removal = proposal.removals.iter().find(|removal| removal.replacement == Some(Some(index)))?;
    (removal.scope == "user").then_some(&removal.id)
}

fn is_lasting(labels: &Labels) -> bool {
    labels.scope == "user" && labels.durability == "durable" && labels.authority == "descriptive"
}

fn speaks_of_uploads(text: &str) -> bool {
    UPLOADS.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Removes the sentences about uploads from a summary.
fn without_uploads(text: &str) -> String {
    if !speaks_of_uploads(text) {
        return text.trim().to_owned();
    }
    let sentences = text.split_inclusive(['.', '!', '?', '\n', '。', '！', '？']);
    sentences.filter(|sentence| !speaks_of_uploads(sentence)).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests;
