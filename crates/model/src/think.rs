//! Thoughts that a model writes into its text, between `<think>` and `</think>` at the beginning, as local servers and
//! some gateways leave them. They are no words for people.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Parts words from thoughts while they come in pieces.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    state: SplitState,
    /// Text that may be the beginning of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SplitState {
    /// Nothing but white space has come.
    #[default]
    Begin,
    Thinking,
    /// The thoughts are over, and white space before the words is left out.
    Gap,
    Speaking,
}

/// A piece of a reply's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Thought(String),
    Words(String),
}

impl ThinkSplitter {
    /// Takes more text and returns what is certain by now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Said> {
        if self.state == SplitState::Speaking {
            return if text.is_empty() { Vec::new() } else { vec![Said::Words(text.to_owned())] };
        }
        self.held.push_str(text);
        let mut said = Vec::new();
        while self.step(&mut said) {}
        said
    }

    /// Ends the text: what was held is what it seems.
    pub(crate) fn end(&mut self) -> Option<Said> {
        let held = std::mem::take(&mut self.held);
        let said = match self.state {
            SplitState::Thinking => Said::Thought(held),
            SplitState::Begin | SplitState::Gap | SplitState::Speaking => Said::Words(held),
        };
        let (Said::Thought(text) | Said::Words(text)) = &said;
        (!text.trim().is_empty()).then_some(said)
    }

    /// Goes as far as one change of state; whether there was one.
    fn step(&mut self, said: &mut Vec<Said>) -> bool {
        match self.state {
            SplitState::Begin => {
                let begun = self.held.trim_start();
                if let Some(rest) = begun.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.state = SplitState::Thinking;
                    return true;
                }
                !OPEN.starts_with(begun) && self.speak(said)
            }
            SplitState::Thinking => self.think(said),
            SplitState::Gap => {
                self.held = self.held.trim_start().to_owned();
                !self.held.is_empty() && self.speak(said)
            }
            SplitState::Speaking => false,
        }
    }

    fn speak(&mut self, said: &mut Vec<Said>) -> bool {
        said.push(Said::Words(std::mem::take(&mut self.held)));
        self.state = SplitState::Speaking;
        false
    }

    fn think(&mut self, said: &mut Vec<Said>) -> bool {
        let end = self.held.find(CLOSE);
        // What may be the beginning of the closing tag waits for the rest.
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
}

/// Returns how many bytes at the end may begin the closing tag.
fn held_back(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|length| CLOSE.get(..*length).is_some_and(|part| text.ends_with(part)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that comes in pieces of so many characters into thoughts and words.
    fn split(text: &str, size: usize) -> (String, String) {
        let (mut splitter, mut thoughts, mut words) =
            (ThinkSplitter::default(), String::new(), String::new());
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
            }
        }
        (thoughts, words)
    }

    #[test]
    fn row_39_thoughts_in_the_text_are_no_words_however_it_is_cut() {
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
                assert_eq!(split(text, size), (thoughts.to_owned(), words.to_owned()), "{text:?} by {size}");
            }
        }
    }
}
