//! Chooses the facts to evict when there are too many. Pure functions: DeerFlow's two policies, with one difference.
//!
//! Both policies reserve room for corrections, which DeerFlow's `confidence` policy does not. An evicted correction is
//! recorded and returned like any other evicted fact; none is dropped silently.

use crate::{
    changes::EvictedFact,
    fact::{Fact, FactCategory, FactId},
    options::{EvictionPolicy, MemoryOptions},
    time::FactTime,
};
use std::collections::{HashMap, HashSet};

/// Value of `1 + heat` at which the score for use reaches its maximum: 8 uses without decay.
const FULL_HEAT: f64 = 9.0;

/// Usage of a fact: DeerFlow's `accessHeat` as of the time `at`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FactHeat {
    pub(crate) heat: f64,
    pub(crate) at: FactTime,
}

pub(crate) type HeatMap = HashMap<FactId, FactHeat>;

/// Returns the facts to evict, least valuable first, and the number of places reserved for corrections.
pub(crate) fn evict(
    facts: &[Fact],
    heat: &HeatMap,
    options: &MemoryOptions,
    now: FactTime,
) -> (Vec<EvictedFact>, usize) {
    if facts.len() <= options.max_facts {
        return (Vec::new(), 0);
    }
    let mut ranked: Vec<(&Fact, EvictedFact)> =
        facts.iter().map(|fact| (fact, score(fact, heat, options, now))).collect();
    // Of two facts with the same score, the newer one is kept.
    ranked.sort_by(|(a, scored_a), (b, scored_b)| {
        scored_b.score.total_cmp(&scored_a.score).then(b.created_at.cmp(&a.created_at)).then(a.id.cmp(&b.id))
    });
    let is_correction = |fact: &Fact| fact.category == FactCategory::Correction;
    let reserved = reserved_places(options);
    let corrections = ranked.iter().filter(|(fact, _)| is_correction(fact)).take(reserved);
    let mut kept: HashSet<&FactId> = corrections.map(|(fact, _)| &fact.id).collect();
    let reserved = kept.len();
    for (fact, _) in &ranked {
        if kept.len() >= options.max_facts {
            break;
        }
        kept.insert(&fact.id);
    }
    let gone = ranked.iter().rev().filter(|(fact, _)| !kept.contains(&fact.id));
    (gone.map(|(_, scored)| scored.clone()).collect(), reserved)
}

fn reserved_places(options: &MemoryOptions) -> usize {
    let (share, cap) = options.reserved_corrections;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few hundred places"
    )]
    let places = (options.max_facts as f64 * share).ceil().max(0.0) as usize;
    places.min(cap).min(options.max_facts)
}

fn score(fact: &Fact, heat: &HeatMap, options: &MemoryOptions, now: FactTime) -> EvictedFact {
    let confidence = ("confidence", fact.confidence.clamp(0.0, 1.0));
    let components = match options.eviction {
        EvictionPolicy::Confidence => vec![confidence],
        EvictionPolicy::Hybrid => vec![
            confidence,
            ("confirmationFreshness", freshness(fact, options, now)),
            ("accessHeat", warmth(heat.get(&fact.id), options, now)),
        ],
    };
    let score = match components.as_slice() {
        [(_, only)] => *only,
        parts => parts.iter().zip(options.eviction_weights).map(|((_, part), weight)| part * weight).sum(),
    };
    EvictedFact { id: fact.id.clone(), category: fact.category.name().to_owned(), score, components }
}

fn freshness(fact: &Fact, options: &MemoryOptions, now: FactTime) -> f64 {
    let [half_life, _] = options.eviction_half_lives;
    match fact.last_confirmed_at {
        Some(at) => decay(at.days_until(now), half_life),
        None => 0.5 * decay(fact.created_at.days_until(now), half_life),
    }
}

fn warmth(heat: Option<&FactHeat>, options: &MemoryOptions, now: FactTime) -> f64 {
    let [_, half_life] = options.eviction_half_lives;
    let Some(FactHeat { heat, at }) = heat.filter(|heat| heat.heat.is_finite() && heat.heat > 0.0) else {
        return 0.0;
    };
    let left = heat * decay(at.days_until(now), half_life);
    (left.ln_1p() / FULL_HEAT.ln()).min(1.0)
}

fn decay(days: f64, half_life: f64) -> f64 {
    if half_life <= 0.0 { 0.0 } else { (-days / half_life).exp2() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    fn fact(name: &str, category: FactCategory, confidence: f64, created_day: i64) -> Fact {
        let at = FactTime::from_millis(created_day * DAY);
        Fact::new(FactId::new(name).unwrap(), name, category, confidence, at)
    }

    fn check(facts: &[Fact], options: &MemoryOptions, heat: &HeatMap, expect: &[&str]) {
        let (gone, _) = evict(facts, heat, options, FactTime::from_millis(180 * DAY));
        assert_eq!(gone.iter().map(|gone| gone.id.as_str()).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn the_least_valuable_fact_is_evicted_first() {
        let facts = [
            fact("a", FactCategory::Goal, 0.9, 0),
            fact("b", FactCategory::Goal, 0.7, 0),
            fact("c", FactCategory::Goal, 0.8, 0),
            fact("d", FactCategory::Goal, 0.8, 1),
        ];
        let options = |max_facts, eviction| MemoryOptions { max_facts, eviction, ..MemoryOptions::default() };
        let none = HeatMap::new();
        check(&facts, &options(4, EvictionPolicy::Confidence), &none, &[]);
        check(&facts, &options(2, EvictionPolicy::Confidence), &none, &["b", "c"]);
        let heat = HeatMap::from([(
            FactId::new("b").unwrap(),
            FactHeat { heat: 8.0, at: FactTime::from_millis(180 * DAY) },
        )]);
        check(&facts, &options(3, EvictionPolicy::Hybrid), &none, &["b"]);
        check(&facts, &options(3, EvictionPolicy::Hybrid), &heat, &["c"]);
        let mut confirmed = facts;
        confirmed[1].last_confirmed_at = Some(FactTime::from_millis(180 * DAY));
        check(&confirmed, &options(3, EvictionPolicy::Hybrid), &none, &["c"]);
    }

    #[test]
    fn corrections_have_reserved_places() {
        let mut facts: Vec<Fact> =
            (0..20).map(|n| fact(&format!("goal{n}"), FactCategory::Goal, 0.9, n)).collect();
        facts.extend((0..4).map(|n| fact(&format!("fix{n}"), FactCategory::Correction, 0.1, n)));
        for policy in [EvictionPolicy::Confidence, EvictionPolicy::Hybrid] {
            let options = MemoryOptions { max_facts: 20, eviction: policy, ..MemoryOptions::default() };
            let (gone, reserved) = evict(&facts, &HeatMap::new(), &options, FactTime::from_millis(20 * DAY));
            assert_eq!(reserved, 2);
            let gone: Vec<&str> = gone.iter().map(|gone| gone.id.as_str()).collect();
            assert_eq!(gone, ["fix0", "fix1", "goal0", "goal1"], "every eviction is reported");
        }
    }
}
