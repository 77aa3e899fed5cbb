use super::*;

#[test]
fn every_pattern_is_one() {
    assert!(RULES.is_some());
}
