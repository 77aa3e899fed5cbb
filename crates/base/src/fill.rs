//! Templates of prompts.

/// Replaces the placeholders of a template in one pass. Placeholders inside inserted text are not replaced.
#[must_use]
pub fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::new(), template);
    let next = |rest: &str| parts.iter().filter_map(|part| Some((rest.find(part.0)?, part))).min();
    while let Some((at, (place, part))) = next(rest) {
        let (before, from) = rest.split_at(at);
        filled.extend([before, part]);
        rest = from.strip_prefix(place).unwrap_or_default();
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_text_is_not_filled_in_again() {
        let parts = [("{a}", "{b}{c}"), ("{b}", "{a}")];
        assert_eq!(fill("{a}|{b}|{c}|{a}", &parts), "{b}{c}|{a}|{c}|{b}{c}");
        assert_eq!(fill("", &parts), "");
    }
}
