use super::*;

#[track_caller]
fn check(said: &str, fact: &str, expect: Result<(), RefusedReason>) {
    assert_eq!(verify(fact, said, &[said.to_owned()]), expect, "{said} / {fact}");
}

#[test]
fn a_fact_agrees_with_its_statement() {
    use RefusedReason::{Hypothetical, Language, Opposite, OtherPerson, Outdated, Secret, Uncertain};
    for (said, fact, expect) in [
        ("I like tea", "Likes tea", Ok(())),
        ("I don't like tea", "Likes tea", Err(Opposite)),
        ("I don't like tea", "Dislikes tea", Ok(())),
        ("I like tea", "Does not like tea", Err(Opposite)),
        ("I used to live in Rome", "Lives in Rome", Err(Outdated)),
        ("I used to live in Rome", "No longer lives in Rome", Ok(())),
        ("I live in Rome", "Lived in Rome", Err(Outdated)),
        ("Maybe I'm allergic to bees", "Is allergic to bees", Err(Uncertain)),
        ("I want to become a pilot", "Is a pilot", Err(Hypothetical)),
        ("I want to become a pilot", "Wants to become a pilot", Ok(())),
        ("I live in Rome", "Wants to live in Rome", Err(Hypothetical)),
        ("My sister likes jazz, I don't", "Likes jazz", Err(OtherPerson)),
        ("My password is hunter2", "Password is hunter2", Err(Secret)),
        ("Ich wohne nicht in Köln", "Wohnt in Köln", Err(Language)),
        ("Ich wohne in Köln.", "Ich wohne in Köln", Ok(())),
        ("我不喝咖啡", "喝咖啡", Err(Opposite)),
        ("我以前住在北京", "住在北京", Err(Outdated)),
        ("我可能对花生过敏", "对花生过敏", Err(Uncertain)),
        ("我想当飞行员", "是飞行员", Err(Hypothetical)),
    ] {
        check(said, fact, expect);
    }
}

#[test]
fn a_restatement_adds_no_word_and_no_opposite() {
    for (text, known, expect) in [
        ("Likes tea", "Likes green tea", true),
        ("likes TEA.", "Likes tea", true),
        ("Likes coffee", "Likes tea", false),
        ("I drink tea", "I don't drink tea", false),
        ("喜欢茶", "喜欢绿茶", true),
        ("喜欢茶", "不喜欢茶", false),
        ("Can eat nuts", "Can't eat nuts", false),
        ("Lives in Rome", "Used to live in Rome", false),
        ("Prefers Go over Rust", "Prefers Rust over Go", false),
        ("", "a", false),
    ] {
        assert_eq!(restates(text, known), expect, "{text} / {known}");
    }
}
