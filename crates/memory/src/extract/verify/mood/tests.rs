use super::*;

#[test]
fn every_pattern_compiles() {
    assert!(RULES.is_some());
}
