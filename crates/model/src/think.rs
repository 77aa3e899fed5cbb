//! Separates thoughts that a model writes at the beginning of its text, between `<think>` and `</think>`. Local servers
//! and some gateways leave them there, but they are not meant for users.
//!
//! Some models' templates put the opening tag into the prompt, so that a reply begins with thoughts and contains only
//! the closing tag. The first such reply is recognized at the closing tag, and its text so far is retracted; the
//! model's later replies are held back until that tag.

use pudu_base::Thinking;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// Length of the text that is searched again together with the next piece, in bytes; longer than a tag.
const TAIL_BYTES: usize = 16;
/// Maximum size of the text held back, in bytes.
const MAX_HELD_BYTES: usize = 128 * 1024;
/// Maximum size of whitespace before the opening tag, in bytes.
const MAX_SPACE_BYTES: usize = 4 * 1024;

/// Whether the last reply of a model began with thoughts whose opening tag was in the prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThinkHabit(Arc<AtomicBool>);

/// A model's habits with and without thinking, because its template may add the tag in only one of these modes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThinkHabits {
    on: ThinkHabit,
    off: ThinkHabit,
}

impl ThinkHabits {
    pub(crate) fn habit(&self, thinking: Thinking) -> &ThinkHabit {
        match thinking {
            Thinking::Off => &self.off,
            _ => &self.on,
        }
    }
}

/// Separates text from thoughts while it arrives.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    state: SplitState,
    /// Text that may be the beginning of a tag, or the end of the emitted text.
    held: String,
    /// Length of the held text that has been searched for the tag, in bytes.
    searched: usize,
    habit: ThinkHabit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SplitState {
    /// Nothing but whitespace has arrived.
    #[default]
    Begin,
    Thinking,
    /// Text is held back until the closing tag.
    Held,
    /// The thoughts have ended, and whitespace before the text is skipped.
    Gap,
    /// Text is emitted, although it may turn out to be thoughts.
    Doubtful,
    Speaking,
}

/// A piece of a reply's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Thought(String),
    Words(String),
    /// The text so far was thoughts.
    Retract,
}

impl ThinkSplitter {
    pub(crate) fn new(habit: &ThinkHabit) -> Self {
        Self { habit: habit.clone(), ..Self::default() }
    }

    /// Adds text and returns the parts that are certain.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Said> {
        if self.state == SplitState::Speaking {
            return if text.is_empty() { Vec::new() } else { vec![Said::Words(text.to_owned())] };
        }
        if self.state == SplitState::Doubtful {
            return self.doubt(text);
        }
        self.held.push_str(text);
        let mut said = Vec::new();
        while self.step(&mut said) {}
        said
    }

    /// Records that the provider sends thoughts separately. Nothing has to be held back any longer, and held text is
    /// returned.
    pub(crate) fn thinks_elsewhere(&mut self) -> Option<Said> {
        self.habit = ThinkHabit::default();
        (self.state == SplitState::Held).then(|| {
            self.state = SplitState::Speaking;
            Said::Words(std::mem::take(&mut self.held))
        })
    }

    /// Ends the text. Returns the held text as thoughts or words, depending on the state.
    pub(crate) fn end(&mut self) -> Option<Said> {
        let held = std::mem::take(&mut self.held);
        let said = match self.state {
            SplitState::Thinking => Said::Thought(held),
            // The text ended with the tag.
            SplitState::Doubtful if held.trim_end().ends_with(CLOSE) => {
                self.habit.set(true);
                return Some(Said::Retract);
            }
            SplitState::Doubtful | SplitState::Speaking => return None,
            SplitState::Begin | SplitState::Held | SplitState::Gap => {
                if self.state == SplitState::Held {
                    self.habit.set(false);
                }
                Said::Words(held)
            }
        };
        let is_empty = matches!(&said, Said::Thought(text) | Said::Words(text) if text.trim().is_empty());
        (!is_empty).then_some(said)
    }

    /// Processes the text up to the next change of state. Returns whether there was one.
    fn step(&mut self, said: &mut Vec<Said>) -> bool {
        match self.state {
            SplitState::Begin => self.begin(said),
            SplitState::Thinking => self.think(said),
            SplitState::Held => {
                let from = char_end(&self.held, self.searched.saturating_sub(CLOSE.len()));
                self.searched = self.held.len();
                let is_over = self.held.split_at(from).1.contains(CLOSE) || self.held.len() > MAX_HELD_BYTES;
                if is_over {
                    self.state = SplitState::Thinking;
                }
                is_over
            }
            SplitState::Gap => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    said.push(Said::Words(std::mem::take(&mut self.held)));
                    self.state = SplitState::Speaking;
                }
                false
            }
            SplitState::Doubtful | SplitState::Speaking => false,
        }
    }

    fn begin(&mut self, said: &mut Vec<Said>) -> bool {
        let trimmed = self.held.trim_start();
        if let Some(rest) = trimmed.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            self.state = SplitState::Thinking;
            return true;
        }
        let is_over = !OPEN.starts_with(trimmed) || self.held.len() > MAX_SPACE_BYTES;
        if is_over && self.habit.get() {
            self.state = SplitState::Held;
            return true;
        }
        if is_over {
            let text = std::mem::take(&mut self.held);
            self.state = SplitState::Doubtful;
            said.extend(self.doubt(&text));
        }
        false
    }

    fn think(&mut self, said: &mut Vec<Said>) -> bool {
        let end = self.held.find(CLOSE);
        // A possible beginning of the closing tag is held until more text arrives.
        let certain = end.unwrap_or_else(|| self.held.len() - held_back(&self.held));
        let rest = self.held.split_off(certain);
        let thought = std::mem::replace(&mut self.held, rest);
        if !thought.is_empty() {
            said.push(Said::Thought(thought));
        }
        if end.is_some() {
            self.held.drain(..CLOSE.len());
            self.state = SplitState::Gap;
        }
        end.is_some()
    }

    /// Emits text, and searches for the end of thoughts without an opening tag. The closing tag counts only at the end
    /// of a line: a text that is about the tags also contains the opening one, or continues after the closing one.
    fn doubt(&mut self, text: &str) -> Vec<Said> {
        if text.is_empty() {
            return Vec::new();
        }
        self.held.push_str(text);
        let words = || vec![Said::Words(text.to_owned())];
        let Some((before, behind)) = self.held.split_once(CLOSE) else {
            match self.held.contains(OPEN) {
                true => self.speak(),
                false => self.forget_beginning(),
            }
            return words();
        };
        if before.contains(OPEN) || before.ends_with(['`', '"', '\'']) {
            self.speak();
        } else if behind.starts_with(['\n', '\r']) {
            self.held = behind.to_owned();
            self.state = SplitState::Gap;
            self.habit.set(true);
            let mut said = vec![Said::Retract];
            while self.step(&mut said) {}
            return said;
        } else if !behind.is_empty() {
            self.speak();
        }
        words()
    }

    fn speak(&mut self) {
        self.held.clear();
        self.state = SplitState::Speaking;
    }

    fn forget_beginning(&mut self) {
        self.held.drain(..char_end(&self.held, self.held.len().saturating_sub(TAIL_BYTES)));
    }
}

impl ThinkHabit {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, thinks_first: bool) {
        self.0.store(thinks_first, Ordering::Relaxed);
    }
}

/// Returns the last character boundary at or before this position.
fn char_end(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the number of bytes at the end that may be the beginning of the closing tag.
fn held_back(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|length| CLOSE.get(..*length).is_some_and(|part| text.ends_with(part)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text, which arrives in pieces of `size` characters, into thoughts and words.
    fn split(text: &str, size: usize, habit: &ThinkHabit) -> (String, String) {
        let (mut splitter, mut thoughts, mut words) =
            (ThinkSplitter::new(habit), String::new(), String::new());
        let letters: Vec<char> = text.chars().collect();
        let mut said: Vec<Said> = Vec::new();
        for piece in letters.chunks(size) {
            said.extend(splitter.push(&piece.iter().collect::<String>()));
        }
        said.extend(splitter.end());
        for part in said {
            match part {
                Said::Thought(text) => thoughts.push_str(&text),
                Said::Words(text) => words.push_str(&text),
                Said::Retract => words.clear(),
            }
        }
        (thoughts, words)
    }

    #[test]
    fn row_39_thoughts_are_separated_from_text_for_any_chunking() {
        for (text, thoughts, words) in [
            ("<think>hm, 1 < 2</think>\n\nHello <think>", "hm, 1 < 2", "Hello <think>"),
            ("\n<think>\na</thin</think>b", "\na</thin", "b"),
            ("Hello <think>x</think>", "", "Hello <think>x</think>"),
            ("<thinking>x", "", "<thinking>x"),
            ("<think>never closed </thi", "never closed </thi", ""),
            ("<thi", "", "<thi"),
            ("  plain", "", "  plain"),
            ("<think></think>x", "", "x"),
            ("", "", ""),
        ] {
            for size in 1..=text.chars().count().max(1) {
                let (found, habit) = (split(text, size, &ThinkHabit::default()), ThinkHabit::default());
                habit.set(true);
                let held = split(text, size, &habit);
                if !thoughts.is_empty() {
                    assert_eq!(held, found, "{text:?} by {size}");
                }
                assert_eq!(found, (thoughts.to_owned(), words.to_owned()), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn thoughts_opened_in_the_prompt_are_retracted_once_and_then_held_back() {
        for (text, words, is_thought) in [
            ("Hm, 1 < 2\n</think>\n\nHello", "Hello", true),
            ("Hm.</think>\r\nHello </think>\nyou", "Hello </think>\nyou", true),
            ("äöü\n</think>\n", "", true),
            ("Hm.\n</think>", "", true),
            ("The mark `</think>`\nends thoughts", "The mark `</think>`\nends thoughts", false),
            ("First <think>\nthen </think>\nand on", "First <think>\nthen </think>\nand on", false),
            ("A </think> inside\nof </think>\nit", "A </think> inside\nof </think>\nit", false),
        ] {
            for size in 1..=text.chars().count() {
                let habit = ThinkHabit::default();
                assert_eq!(
                    split(text, size, &habit),
                    (String::new(), words.to_owned()),
                    "{text:?} by {size}"
                );
                assert_eq!(habit.get(), is_thought, "{text:?} by {size}");
                if is_thought {
                    let (thoughts, held) = split(text, size, &habit);
                    assert_eq!((held.as_str(), thoughts.is_empty()), (words, false), "{text:?} by {size}");
                }
            }
        }
        let habit = ThinkHabit::default();
        habit.set(true);
        let mut splitter = ThinkSplitter::new(&habit);
        assert_eq!(splitter.push("Hello"), []);
        assert_eq!(
            splitter.end(),
            Some(Said::Words("Hello".into())),
            "a reply without thoughts is emitted at its end"
        );
        assert!(!habit.get());
        habit.set(true);
        let mut splitter = ThinkSplitter::new(&habit);
        assert_eq!(splitter.thinks_elsewhere(), None);
        assert_eq!(splitter.push("Hello"), [Said::Words("Hello".into())], "thoughts were sent separately");
    }
}
