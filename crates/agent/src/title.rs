//! Thread titles. A thread's first title is the beginning of its first question. If a title model is configured, it
//! then writes a better title.

use crate::{
    Agent,
    budget::{Meter, metered},
};
use pudu_base::{
    Assistant, Human, Message, Model, ModelCaller, Request, RunId, SpendingTally, ThreadId, ThreadState,
    fill, foreign,
};
use pudu_harness::side_call;
use pudu_store::Spender;
use std::sync::Arc;

/// Maximum length of the first question in a title, in characters.
const MAX_QUESTION_CHARS: usize = 50;
/// Number of questions up to which a thread's title is improved.
const MAX_QUESTIONS: usize = 4;
/// Maximum length of a message in the model's prompt, in characters.
const MAX_READ_CHARS: usize = 500;

/// Default instruction to the model.
const PROMPT: &str = "Write a title for this conversation, in its language: {max_words} words at most, no quotation marks, no full stop, nothing besides the title.\n\nPerson: {user_msg}\n\nAssistant: {assistant_msg}";

/// The rules for titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitleRules {
    /// Maximum number of words in a title written by the model.
    pub max_words: usize,
    /// Maximum length of a title, in characters.
    pub max_chars: usize,
    /// Instruction to the model: `{max_words}`, `{user_msg}` and `{assistant_msg}` are filled in.
    pub prompt: Option<String>,
}

impl Default for TitleRules {
    fn default() -> Self {
        Self { max_words: 6, max_chars: 60, prompt: None }
    }
}

/// The rules for titles, with the model that writes them, if any.
#[derive(Clone)]
pub struct TitleSetup {
    /// The rules.
    pub rules: TitleRules,
    /// The model. If `None`, titles are the beginnings of questions.
    pub model: Option<Arc<dyn Model>>,
}

impl TitleRules {
    /// Returns the title of a thread that begins with this message; `None` if the message has no text.
    fn local(&self, first: &Human) -> Option<String> {
        let words = first.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = if words.is_empty() { first.files.first()?.name.clone() } else { words };
        Some(cut(&words, MAX_QUESTION_CHARS.min(self.max_chars), "..."))
    }

    fn prompt(&self, first: &Human, answer: &str) -> String {
        let part = |text: &str| foreign::text(&text.chars().take(MAX_READ_CHARS).collect::<String>());
        let (words, question, answer) = (self.max_words.to_string(), part(&first.text), part(answer));
        let parts = [("{max_words}", &*words), ("{user_msg}", &*question), ("{assistant_msg}", &*answer)];
        fill(self.prompt.as_deref().unwrap_or(PROMPT), &parts)
    }

    /// Returns the title in a model's answer, if any.
    fn read(&self, answer: &str) -> Option<String> {
        let line = answer.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        let quotes = |c: char| c.is_whitespace() || "\"'“”‘’「」《》*#`".contains(c);
        // Titles are shown as plain text.
        let title = line.replace("**", "").replace('`', "");
        let title = title.trim_matches(quotes).trim_end_matches(['.', '。']);
        (!title.is_empty()).then(|| cut(title, self.max_chars, "…"))
    }
}

/// Cuts a text to a number of characters, and appends `sign` if it was cut. DeerFlow's clients recognise a provisional
/// title by its "...".
fn cut(text: &str, max_chars: usize, sign: &str) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}{sign}", text.split_at(at).0.trim_end()),
        None => text.to_owned(),
    }
}

/// Returns the initial title of a thread.
pub fn first(titles: Option<&TitleSetup>, state: &ThreadState) -> Option<String> {
    let titles = titles?;
    questions(state).find_map(|question| titles.rules.local(question))
}

/// Returns the title of a thread, if it has one.
pub async fn thread_title(agent: &Agent, thread: &ThreadId) -> Option<String> {
    agent.0.db.title(thread).await.ok().flatten().filter(|title| !title.is_empty())
}

fn questions(state: &ThreadState) -> impl Iterator<Item = &Human> {
    state.messages.values().filter_map(|message| match &**message {
        Message::Human(human) => Some(human),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    })
}

/// Lets the configured model write the title of a thread that only has a title from its first question. The run does
/// not wait.
pub fn improve(agent: &Agent, state: &ThreadState, reply: Option<&Assistant>, of: TitledRun) {
    let setup = agent.setup();
    let Some(TitleSetup { rules, model: Some(model) }) = setup.titles.clone() else { return };
    if questions(state).nth(MAX_QUESTIONS).is_some() {
        return;
    }
    let titled = questions(state).find_map(|question| Some((question, rules.local(question)?)));
    let Some(((first, local), reply)) = titled.zip(reply) else { return };
    let prompt = rules.prompt(first, &reply.text);
    let (agent, suspend) = (agent.clone(), agent.0.suspend.clone());
    agent.0.tasks.clone().spawn(async move {
        let request = Request {
            messages: vec![Arc::new(Message::Human(Human::guiding("title", prompt)))],
            ..Request::default()
        };
        if agent.0.db.title(&of.thread).await.ok().flatten().as_ref() != Some(&local) {
            return;
        }
        let model = metered(model, &Meter::new(&agent, of.thread.clone(), of.run, of.spender));
        let mut spending = SpendingTally::default();
        let answer = side_call(&*model, request, ModelCaller::Title, &mut spending, |_| {});
        let Some(answer) = suspend.run_until_cancelled(answer).await else { return };
        match answer.as_deref().map(|answer| rules.read(answer)) {
            Ok(Some(title)) => {
                if let Err(error) = agent.0.db.replace_title(&of.thread, &local, &title).await {
                    tracing::warn!(thread = %of.thread, %error, "failed to store title");
                }
            }
            Ok(None) => tracing::warn!(model = model.name(), "dropped title: the model wrote none"),
            Err(error) => tracing::warn!(model = model.name(), %error, "failed to write title"),
        }
    });
}

/// The run whose thread gets a title.
pub struct TitledRun {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The user who pays for the title.
    pub spender: Spender,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_beginning_of_the_first_question() {
        let check = |text: &str, expect: Option<&str>| {
            let title = TitleRules::default().local(&Human::new("1", text));
            assert_eq!(title.as_deref(), expect, "{text}");
        };
        check("", None);
        check(" \n ", None);
        check("what is\n\n there?", Some("what is there?"));
        check(&"字".repeat(51), Some(&format!("{}...", "字".repeat(50))));
    }

    #[test]
    fn a_models_title_is_one_line_without_ornaments() {
        let check = |answer: &str, expect: Option<&str>| {
            assert_eq!(TitleRules::default().read(answer).as_deref(), expect, "{answer}");
        };
        check("\"Sales of March\"", Some("Sales of March"));
        check("Here is a title:\n\n**Sales of March.**\n", Some("Sales of March"));
        check("「三月销售」", Some("三月销售"));
        check("**销售：**三月 `x`", Some("销售：三月 x"));
        check("\"\"", None);
        check("", None);
        check(&"x".repeat(100), Some(&format!("{}…", "x".repeat(60))));
    }

    #[test]
    fn messages_are_not_taken_for_the_prompt() {
        let rules = TitleRules {
            prompt: Some("{max_words}|{user_msg}|{assistant_msg}".into()),
            ..TitleRules::default()
        };
        let prompt = rules.prompt(&Human::new("1", "{assistant_msg}{max_words}"), "{user_msg}");
        assert_eq!(prompt, "6|{assistant_msg}{max_words}|{user_msg}");
    }
}
