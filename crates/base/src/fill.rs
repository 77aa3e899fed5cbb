//! Templates of prompts.

/// Fills the places of a template in one pass: places inside an inserted part are not filled.
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
    fn a_part_is_not_filled_in_once_more() {
        let parts = [("{a}", "{b}{c}"), ("{b}", "{a}")];
        assert_eq!(fill("{a}|{b}|{c}|{a}", &parts), "{b}{c}|{a}|{c}|{b}{c}");
        assert_eq!(fill("", &parts), "");
    }
}
