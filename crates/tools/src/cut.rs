//! Fits texts into what a model can take, and says what was left out.

/// Keeps the beginning.
pub(crate) fn end(text: &str, most: usize) -> String {
    let Some((at, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let (kept, cut) = text.split_at(at);
    format!("{kept}\n[… {} characters more …]", cut.chars().count())
}

/// Keeps both ends.
pub(crate) fn middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most.div_ceil(2), most / 2);
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let (first, rest) = text.split_at(at(head));
    let (_, last) = rest.split_at(at(count - tail) - first.len());
    format!("{first}\n[… {} characters left out …]\n{last}", count - most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_characters_and_say_how_many() {
        assert_eq!(end("grüße", 5), "grüße");
        assert_eq!(end("grüße", 3), "grü\n[… 2 characters more …]");
        assert_eq!(middle("grüße", 5), "grüße");
        assert_eq!(middle("ägrüßeü", 4), "äg\n[… 3 characters left out …]\neü");
        assert_eq!(middle("abc", 0), "\n[… 3 characters left out …]\n");
    }
}
