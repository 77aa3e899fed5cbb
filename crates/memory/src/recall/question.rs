//! Distinguishes questions about the person, which memory may answer, from questions about the world.

use regex::Regex;
use std::sync::LazyLock;

/// Patterns of questions.
struct QuestionRules {
    /// A request for instructions: "how do I", "我该".
    how_to: Regex,
    /// A mention of the person or of an earlier conversation.
    own: Regex,
    /// A word of English or Chinese, in which the two kinds of questions can be distinguished.
    known: Regex,
}

static RULES: LazyLock<Option<QuestionRules>> = LazyLock::new(|| {
    Some(QuestionRules {
        how_to: Regex::new(
            r"(?i)\bhow (?:often |long |much |many )?(?:do|can|could|should|would|did) (?:i|we)\b|\b(?:what|which|where|when|who)(?: \w+)? (?:can|could|should|would) (?:i|we)\b|\b(?:should|can|could|must|may) (?:i|we)\b|\bdo (?:i|we) (?:need|have to)\b|\b(?:i|we) (?:need|would like|am looking for|have to)\b|\b(?:tell|give|show|find|help|remind|send|write|explain) (?:me|us)\b|(?:我|我们)(?:该|应该|想|要|需要|能不能|能|可以|怎么|如何)|(?:给|帮|告诉|教)(?:我们|我)",
        )
        .ok()?,
        own: Regex::new(
            r"(?i)\b(?:my|mine|myself|our|ours|me|i|i'm|i've|we|us)\b|\b(?:remember|last time|earlier|again|we talked|you know about|did i|have i|was i|am i)\b|我|咱|俺|记得|上次|之前|刚才",
        )
        .ok()?,
        known: Regex::new(r"(?i)\b(?:the|is|are|do|does|what|how|which|when|where|who|why|a|an|of|to|in|for|and|my|i|it|this)\b|[\p{Han}]").ok()?,
    })
});

/// Returns whether a question is about the person. Questions in languages other than English and Chinese count as
/// personal.
pub(super) fn is_personal(question: &str) -> bool {
    let Some(rules) = RULES.as_ref() else { return true };
    let plain = question.replace('\u{2019}', "'");
    if !rules.known.is_match(&plain) {
        return true;
    }
    rules.own.is_match(&rules.how_to.replace_all(&plain, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_person_are_distinguished_from_others() {
        assert!(RULES.is_some(), "every pattern compiles");
        for (question, expect) in [
            ("What is my dog called?", true),
            ("What am I allergic to?", true),
            ("Which Thai place would suit me?", true),
            ("Did I tell you about the trip?", true),
            ("What did we say last time?", true),
            ("How do I undo a commit?", false),
            ("What is the capital of Australia?", false),
            ("Tell me a joke", false),
            ("My laptop does not start, what can I do?", true),
            ("我的狗叫什么名字？", true),
            ("我住在哪里？", true),
            ("我该怎么洗白衬衫？", false),
            ("东京现在几点？", false),
            ("Wie heißt mein Hund?", true),
        ] {
            assert_eq!(is_personal(question), expect, "{question}");
        }
    }
}
