//! Shortens texts to a limit, and marks the omission. All lengths are in characters.

/// Which part of a long text is kept, and its maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its beginning.
    End(usize),
    /// Both ends.
    Middle(usize),
}

impl Cut {
    /// Returns the maximum length of the kept part.
    #[must_use]
    pub fn most(self) -> usize {
        match self {
            Self::End(most) | Self::Middle(most) => most,
        }
    }

    /// Cuts a text that is too long. Other texts are returned unchanged.
    #[must_use]
    pub fn apply(self, text: String) -> String {
        let (head, tail) = match self {
            Self::End(most) => (most, 0),
            Self::Middle(most) => (most.div_ceil(2), most / 2),
        };
        let Some((first, middle, last)) = ends(&text, head, tail) else { return text };
        let left = middle.chars().count();
        match self {
            Self::End(_) => format!("{first}\n[… {left} more characters …]"),
            Self::Middle(_) => format!("{first}\n[… {left} characters left out …]\n{last}"),
        }
    }
}

/// Splits a text into its first `head` characters, the middle, and its last `tail` characters. Returns `None` if the
/// middle is empty.
#[must_use]
pub fn ends(text: &str, head: usize, tail: usize) -> Option<(&str, &str, &str)> {
    // A character takes at least one byte.
    if text.len() <= head.saturating_add(tail) {
        return None;
    }
    let first = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let last = match tail {
        0 => text.len(),
        tail => text.char_indices().nth_back(tail - 1).map_or(0, |(at, _)| at),
    };
    let (rest, last) = text.split_at(last);
    let (first, middle) = rest.split_at_checked(first)?;
    (!middle.is_empty()).then_some((first, middle, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_characters_and_state_how_many_are_missing() {
        let check = |cut: Cut, text: &str, expect: &str| assert_eq!(cut.apply(text.to_owned()), expect);
        check(Cut::End(5), "grüße", "grüße");
        check(Cut::End(3), "grüße", "grü\n[… 2 more characters …]");
        check(Cut::Middle(5), "grüße", "grüße");
        check(Cut::Middle(4), "ägrüßeü", "äg\n[… 3 characters left out …]\neü");
        check(Cut::Middle(0), "abc", "\n[… 3 characters left out …]\n");
        check(Cut::End(0), "", "");
    }

    #[test]
    fn ends_never_meet_and_never_split_a_character() {
        let check = |text: &str, head, tail, expect| assert_eq!(ends(text, head, tail), expect, "{text}");
        check("日本語です", 2, 1, Some(("日本", "語で", "す")));
        check("日本語です", 3, 2, None);
        check("日本語です", 9, 9, None);
        check("日本語です", 0, 0, Some(("", "日本語です", "")));
        check("👩‍👩‍👧", 1, 1, Some(("👩", "\u{200d}👩\u{200d}", "👧")));
        check("", 0, 0, None);
        check("abc", usize::MAX, usize::MAX, None);
    }
}
