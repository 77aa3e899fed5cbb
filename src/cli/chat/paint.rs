//! Styles of text on a terminal: ANSI sequences, or none.

/// Whether text is styled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    on: bool,
}

/// The look of text. Looks can be combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextLook(u16);

impl TextLook {
    pub(super) const BOLD: Self = Self(1);
    pub(super) const DIM: Self = Self(1 << 1);
    pub(super) const ITALIC: Self = Self(1 << 2);
    pub(super) const UNDERLINE: Self = Self(1 << 3);
    pub(super) const STRIKE: Self = Self(1 << 4);
    pub(super) const CODE: Self = Self(1 << 5);
    pub(super) const WARN: Self = Self(1 << 6);
    pub(super) const ADDED: Self = Self(1 << 7);
    pub(super) const REMOVED: Self = Self(1 << 8);

    /// Returns the combination of both looks.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Terminal code (SGR parameter) of each text look.
const CODES: [(TextLook, &str); 9] = [
    (TextLook::BOLD, "1"),
    (TextLook::DIM, "2"),
    (TextLook::ITALIC, "3"),
    (TextLook::UNDERLINE, "4"),
    (TextLook::STRIKE, "9"),
    (TextLook::CODE, "36"),
    (TextLook::WARN, "33"),
    (TextLook::ADDED, "32"),
    (TextLook::REMOVED, "31"),
];

impl Paint {
    /// Enables styles unless `NO_COLOR` is set.
    pub(super) fn new(no_color: Option<&str>) -> Self {
        Self { on: no_color.is_none_or(str::is_empty) }
    }

    /// Returns whether styles are enabled.
    pub(super) fn is_on(self) -> bool {
        self.on
    }

    /// Returns a text with a look.
    pub(super) fn text(self, look: TextLook, text: &str) -> String {
        let codes: Vec<&str> =
            CODES.iter().filter(|(one, _)| look.has(*one)).map(|(_, code)| *code).collect();
        if !self.on || codes.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", codes.join(";"))
    }
}

/// Removes control characters that a terminal would interpret.
pub(super) fn tame(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_combine_and_may_be_unwanted() {
        let check = |no_color: Option<&str>, look: TextLook, expect: &str| {
            assert_eq!(Paint::new(no_color).text(look, "x"), expect);
        };
        check(None, TextLook::default(), "x");
        check(None, TextLook::BOLD, "\x1b[1mx\x1b[0m");
        check(Some(""), TextLook::BOLD.with(TextLook::CODE), "\x1b[1;36mx\x1b[0m");
        check(Some("1"), TextLook::BOLD, "x");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(tame("a\x1b[2Jb\u{9b}31mc\r\n\td\x07"), "a[2Jb31mc\n\td");
    }
}
