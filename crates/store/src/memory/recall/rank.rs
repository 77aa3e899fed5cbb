//! Ranks hits by BM25 over the statistics of one scope, and limits the number of entries read to find the best.
//!
//! The index lists the entries that contain a word. This is cheap for rare words, and expensive for words in a tenth of
//! all entries, which contribute little. So the rarest words of a question are looked up until a budget is exhausted,
//! followed by pairs of common words. The best matches are then read and scored by all words of the question.

use super::words::is_faint;
use std::collections::HashMap;

/// Maximum number of index postings read in one search of a kind.
pub(super) const MAX_POSTINGS: i64 = 2_000;
/// Maximum number of entries that are read and scored.
const MAX_SCORED: usize = 128;
/// Maximum number of common words that are looked up in pairs.
const MAX_PAIRED_WORDS: usize = 6;
/// Divisor for the cost of a pair: the index skips through the postings of both words.
const SKIP_SHARE: i64 = 8;

/// In a small scope, a character is rare if at most this number of entries contain it.
const MAX_RARE: i64 = 2;
/// In a large scope, a character is rare if at most one entry in this number contains it.
const RARE_SHARE: i64 = 25;

/// BM25's usual parameters: the weight of repetitions (`K1`) and of the entry's length (`B`).
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The statistics of a scope that are needed for a question.
pub(super) struct ScopeStatistics {
    /// Number of entries in the scope.
    pub(super) docs: i64,
    /// Total number of words in the entries.
    pub(super) words: i64,
    /// The question's words, each with the number of entries that contain it.
    pub(super) asked: Vec<(String, i64)>,
}

/// Words that are looked up together, as indices into the question's words.
pub(super) type Probe = Vec<usize>;

/// An entry to be scored.
pub(super) struct Bag<'t> {
    pub(super) id: i64,
    pub(super) at: i64,
    pub(super) words: &'t str,
}

/// Score of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) id: i64,
    at: i64,
    pub(super) score: f64,
    pub(super) share: f64,
    pub(super) matched: usize,
}

#[expect(clippy::cast_precision_loss, reason = "counts of entries are far below 2^52")]
impl ScopeStatistics {
    /// Returns the BM25 weight (IDF) of a word.
    fn weight(&self, place: usize) -> f64 {
        let with = self.asked.get(place).map_or(0, |(_, docs)| *docs) as f64;
        (1.0 + ((self.docs as f64 - with).max(0.0) + 0.5) / (with + 0.5)).ln()
    }

    /// Returns the words to look up, single or in pairs.
    pub(super) fn probes(&self) -> Vec<Probe> {
        let mut known: Vec<usize> = (0..self.asked.len()).filter(|place| self.count(*place) > 0).collect();
        known.sort_by_key(|place| (self.count(*place), *place));
        let (mut probes, mut left) = (Vec::new(), MAX_POSTINGS);
        let mut common = Vec::new();
        for place in known {
            // The rarest word is always looked up, even if only its newest entries are read.
            if self.count(place) <= left || probes.is_empty() {
                left = left.saturating_sub(self.count(place));
                probes.push(vec![place]);
            } else {
                common.push(place);
            }
        }
        common.truncate(MAX_PAIRED_WORDS);
        for (at, first) in common.iter().enumerate() {
            for second in common.iter().skip(at + 1) {
                let cost = self.pair_cost(*first, *second);
                if cost <= left {
                    left -= cost;
                    probes.push(vec![*first, *second]);
                }
            }
        }
        probes
    }

    fn count(&self, place: usize) -> i64 {
        self.asked.get(place).map_or(0, |(_, docs)| *docs)
    }

    /// Estimates the cost of a pair, as if the words occurred independently.
    fn pair_cost(&self, first: usize, second: usize) -> i64 {
        let (first, second) = (self.count(first), self.count(second));
        first.saturating_mul(second) / self.docs.max(1) + (first + second) / SKIP_SHARE
    }

    /// Returns the ids of the entries to score, chosen by the results of the probes.
    pub(super) fn worth_scoring(&self, found: &[(&Probe, Vec<i64>)]) -> Vec<i64> {
        let mut matched = HashMap::<i64, u128>::new();
        for (probe, ids) in found {
            let bits = probe.iter().fold(0, |bits, place| bits | (1u128 << (place % 128)));
            ids.iter().for_each(|id| *matched.entry(*id).or_default() |= bits);
        }
        let weights: Vec<f64> = (0..self.asked.len()).map(|place| self.weight(place)).collect();
        let sum = |bits: u128| -> f64 {
            weights
                .iter()
                .enumerate()
                .filter(|(place, _)| bits >> (place % 128) & 1 == 1)
                .map(|(_, w)| w)
                .sum()
        };
        let mut all: Vec<(f64, i64)> = matched.into_iter().map(|(id, bits)| (sum(bits), id)).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        all.into_iter().take(MAX_SCORED).map(|(_, id)| id).collect()
    }

    /// Scores entries and sorts them, the best first. Among equal scores the newer entry is first.
    pub(super) fn rank(&self, bags: &[Bag<'_>]) -> Vec<Fit> {
        let weights: Vec<f64> = (0..self.asked.len()).map(|place| self.weight(place)).collect();
        let significant = self.significant();
        let all: f64 = weights
            .iter()
            .zip(&significant)
            .filter(|(_, significant)| **significant)
            .map(|(weight, _)| weight)
            .sum();
        let mut fits: Vec<Fit> = bags.iter().map(|bag| self.fit(bag, &weights, &significant, all)).collect();
        fits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)).then(b.id.cmp(&a.id)));
        fits
    }

    /// Returns, for each word, whether its presence suggests that an entry is about the question. A single character
    /// does if it is the whole question, or if it is rare and no entry contains it together with its neighbours: 猫 is
    /// in one entry, and "猫叫" is in none. Such a pair does not count, because the character replaces it.
    fn significant(&self) -> Vec<bool> {
        let is_alone: Vec<bool> = (0..self.asked.len()).map(|place| self.is_rare_alone(place)).collect();
        let stands_for = |pair: &str| {
            self.asked.iter().zip(&is_alone).any(|((word, _), alone)| *alone && pair.contains(word.as_str()))
        };
        let is_telling = |((word, count), alone): (&(String, i64), &bool)| match is_faint(word) {
            true => self.asked.len() == 1 || *alone,
            false => *count > 0 || !stands_for(word),
        };
        self.asked.iter().zip(&is_alone).map(is_telling).collect()
    }

    /// Returns whether a word is a single character that few entries contain, and that none contains together with its
    /// neighbours in the question.
    fn is_rare_alone(&self, place: usize) -> bool {
        let Some((word, count)) = self.asked.get(place) else { return false };
        let is_in_pair =
            |(pair, count): &(String, i64)| *count > 0 && pair != word && pair.contains(word.as_str());
        let max_count = MAX_RARE.max(self.docs / RARE_SHARE);
        is_faint(word) && (1..=max_count).contains(count) && !self.asked.iter().any(is_in_pair)
    }

    fn fit(&self, bag: &Bag<'_>, weights: &[f64], significant: &[bool], all: f64) -> Fit {
        let mut times = vec![0u32; self.asked.len()];
        let mut length = 0.0;
        for word in bag.words.split(' ') {
            length += 1.0;
            if let Some(times) =
                self.asked.iter().position(|(asked, _)| asked == word).and_then(|at| times.get_mut(at))
            {
                *times += 1;
            }
        }
        let norm = K1 * (1.0 - B + B * length / (self.words as f64 / self.docs.max(1) as f64).max(1.0));
        let (mut score, mut weight_sum, mut matched) = (0.0, 0.0, 0);
        let is_whole: Vec<bool> =
            self.asked.iter().map(|(word, _)| self.asked.len() == 1 || !is_faint(word)).collect();
        let words =
            weights.iter().zip(significant).zip(times).zip(&is_whole).filter(|((_, times), _)| *times > 0);
        for (((weight, significant), times), is_whole) in words {
            let times = f64::from(times);
            score += weight * times * (K1 + 1.0) / (times + norm);
            if *significant {
                weight_sum += weight;
                matched += usize::from(*is_whole);
            }
        }
        Fit { id: bag.id, at: bag.at, score, share: weight_sum / all.max(f64::MIN_POSITIVE), matched }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(docs: i64, asked: &[(&str, i64)]) -> ScopeStatistics {
        let asked = asked.iter().map(|(word, docs)| ((*word).to_owned(), *docs)).collect();
        ScopeStatistics { docs, words: docs * 4, asked }
    }

    #[test]
    fn rare_words_are_looked_up_and_common_ones_in_pairs() {
        type RankedRow = (&'static [(&'static str, i64)], &'static [&'static [usize]]);
        let table: [RankedRow; 5] = [
            (&[], &[]),
            (&[("unknown", 0)], &[]),
            (&[("b", 20), ("a", 10), ("unknown", 0)], &[&[1], &[0]]),
            (&[("common", 5_000), ("rare", 10), ("other", 6_000)], &[&[1], &[0, 2]]),
            // No word is rare, so the newest entries with the rarest word are found.
            (&[("x", 90_000), ("y", 50_000)], &[&[1]]),
        ];
        for (asked, expected) in table {
            assert_eq!(statistics(100_000, asked).probes(), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_rare_character_replaces_its_pair() {
        for (docs, asked, expected) in [
            (20, &[("猫叫", 0), ("猫", 1), ("叫", 9)][..], &[false, true, false][..]),
            (20, &[("猫叫", 1), ("猫", 1), ("叫", 1)], &[true, false, false]),
            (20, &[("猫叫", 0), ("猫", 9)], &[true, false]),
            (20, &[("猫", 9)], &[true]),
            (100, &[("猫叫", 0), ("猫", 4)], &[false, true]),
            (20, &[("cat", 0), ("name", 3)], &[true, true]),
        ] {
            assert_eq!(statistics(docs, asked).significant(), expected, "{asked:?}");
        }
    }

    #[test]
    fn the_best_match_is_first_and_ties_go_to_the_newest() {
        let statistics = statistics(100, &[("cat", 5), ("name", 50), ("unknown", 0)]);
        let bags = [
            Bag { id: 1, at: 10, words: "cat a b c" },
            Bag { id: 2, at: 20, words: "cat a b c" },
            Bag { id: 3, at: 5, words: "cat name" },
            Bag { id: 4, at: 5, words: "name" },
            Bag { id: 5, at: 99, words: "nothing of it" },
        ];
        let ranked = statistics.rank(&bags);
        assert_eq!(ranked.iter().map(|fit| fit.id).collect::<Vec<_>>(), [3, 2, 1, 4, 5]);
        assert_eq!(ranked.last().map(|fit| (fit.score, fit.share, fit.matched)), Some((0.0, 0.0, 0)));
        let found = [(&vec![0], vec![1, 2, 3]), (&vec![1], vec![3, 4])];
        assert_eq!(statistics.worth_scoring(&found), [3, 2, 1, 4]);
    }
}
