use super::*;

#[test]
fn only_statements_of_a_person_are_kept() {
    assert!(RULES.is_some(), "every pattern compiles");
    for (text, expect) in [
        ("I like tea", &["I like tea"][..]),
        ("I'm a nurse. What should I cook?", &["I'm a nurse."]),
        ("I'm vegetarian, what can I cook?", &["I'm vegetarian"]),
        ("Please always answer in German.", &["Please always answer in German."]),
        ("Call me Ada!", &["Call me Ada!"]),
        ("As I said, I'm a vegetarian", &["As I said, I'm a vegetarian"]),
        ("Remember that I'm allergic to nuts", &["Remember that I'm allergic to nuts"]),
        ("Rust", &["Rust"]),
        ("Translate to French: I live in Rome", &[]),
        ("I'm a nurse. Translate to French: I live in Rome", &["I'm a nurse.", "[…]"]),
        ("Summarise this mail\n\nI live in Rome. Best, Bob", &[]),
        ("what does \"I live in Rome\" mean", &[]),
        ("Bob says he lives in Rome", &[]),
        ("Imagine I am a pilot", &[]),
        ("if I were a pilot I would fly", &[]),
        ("Write a poem about a man who always drinks tea", &[]),
        ("I live in Rome. Just kidding!", &[]),
        ("The user lives in Rome", &[]),
        ("你好，我是护士，晚上吃什么好呢？", &["我是护士"]),
        ("例如，我是护士，对吗？", &[]),
        ("我是护士，晚上吃什么？", &["我是护士"]),
        ("翻译：我住在罗马", &[]),
        ("同事说他住在罗马", &[]),
        ("以后请用中文回答", &["以后请用中文回答"]),
        ("假如我是飞行员", &[]),
    ] {
        let found = statements(text);
        let found: Vec<&str> =
            found.iter().map(String::as_str).filter(|text| *text != CUT || expect.contains(&CUT)).collect();
        assert_eq!(found, expect, "{text}");
    }
}

#[test]
fn questions_and_tasks_are_not_statements() {
    for (text, expect) in [
        ("I live in Rome", true),
        ("The deploy is on Friday", true),
        ("I'm a nurse, what should I cook?", true),
        ("Always answer in German", true),
        ("What is the capital of Australia?", false),
        ("Rename every file in the folder", false),
        ("Optimise this shader, it drops frames.", false),
        ("Good morning!", false),
        ("I need a catchy name", false),
        ("我住在罗马", true),
        ("部署在周五", true),
        ("把附件里的段落翻译成德文。", false),
        ("给我三个点子", false),
        ("东京现在几点？", false),
    ] {
        assert_eq!(states_something(text), expect, "{text}");
    }
}
