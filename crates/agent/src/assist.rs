//! Writing help from a model, outside of runs: follow-up questions, and rewording of a text.
//!
//! Each request is one model call that counts against the requester's budgets. Its texts are not stored.

use crate::{
    Agent,
    budget::{Meter, metered},
};
use pudu_base::{
    Human, Message, Model, ModelCaller, ModelError, Request, RunId, Sampling, SpendingTally, Thinking,
    ThreadId, UserId, fill, foreign,
};
use pudu_harness::side_call;
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::Spender;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of characters of a message that the model reads.
const MAX_READ_CHARS: usize = 2_000;
/// Maximum length of a follow-up question, in characters.
const MAX_QUESTION_CHARS: usize = 300;
/// Maximum number of tokens of a reply.
const MAX_REPLY_TOKENS: u32 = 8_192;

/// Prompt for follow-up questions.
const FOLLOW_UPS: &str = "Below is the end of a conversation between a person and an assistant. Write {count} short questions that \
     this person may well ask next: in the language of the conversation, in their words, each about what was said. \
     Answer with a JSON list of strings alone.\n\n<conversation>\n{conversation}\n</conversation>";

/// Prompt for rewording.
const WORDING: &str = "Below is a request that a person is about to send to an assistant. Reword it clearly and completely, in \
     its language{locale}. Keep its meaning, request, names, numbers, code and paths; add nothing of your \
     own and do not answer it. Answer with the new text alone.\n\n<request>\n{text}\n</request>";

/// The user who requests help, with their thread and model.
#[derive(Clone, Debug)]
pub struct AssistFor {
    /// The user whose budgets the call counts against.
    pub user: UserId,
    /// The user's current thread, if any.
    pub thread: Option<ThreadId>,
    /// The model; the default if `None` or unknown.
    pub model: Option<String>,
}

/// Why a model could not help.
#[derive(Debug, thiserror::Error)]
pub enum AssistError {
    /// No suitable model is configured.
    #[error("no model is configured")]
    NoModel,
    /// The model failed, or the budget is used up.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model timed out, or the daemon is stopping.
    #[error("the model did not answer in time")]
    TooLate,
    /// The answer has no usable content.
    #[error("the model's answer is not usable")]
    Useless,
}

impl Agent {
    /// Suggests up to `count` follow-up questions. `conversation` has pairs of role (`user` or `assistant`) and text,
    /// oldest first.
    ///
    /// # Errors
    /// If the model fails, or the budgets are used up.
    pub async fn follow_ups(
        &self,
        requester: &AssistFor,
        conversation: &[(String, String)],
        count: usize,
    ) -> Result<Vec<String>, AssistError> {
        let line = |(role, text): &(String, String)| {
            let who = if role == "user" { "Person" } else { "Assistant" };
            format!("{who}: {}", part(text))
        };
        let lines: Vec<String> = conversation.iter().map(line).collect();
        let (wanted, lines) = (count.to_string(), lines.join("\n\n"));
        let prompt = fill(FOLLOW_UPS, &[("{count}", &wanted), ("{conversation}", &lines)]);
        let questions = questions(&self.assist(requester, prompt).await?, count);
        if questions.is_empty() { Err(AssistError::Useless) } else { Ok(questions) }
    }

    /// Rewords a text that a user is about to send. `locale` is their language, if known.
    ///
    /// # Errors
    /// If the model fails, or the budgets are used up.
    pub async fn reword(
        &self,
        requester: &AssistFor,
        text: &str,
        locale: Option<&str>,
    ) -> Result<String, AssistError> {
        let locale = locale.map(|locale| format!(" (their page is in {})", foreign::line(locale, 40)));
        let parts = [("{text}", &*foreign::text(text)), ("{locale}", locale.as_deref().unwrap_or_default())];
        let answer = self.assist(requester, fill(WORDING, &parts)).await?;
        let bare = answer.trim();
        let bare = bare.strip_prefix("<request>").unwrap_or(bare);
        let bare = bare.strip_suffix("</request>").unwrap_or(bare).trim();
        if bare.is_empty() { Err(AssistError::Useless) } else { Ok(bare.to_owned()) }
    }

    /// Makes one model call.
    async fn assist(&self, requester: &AssistFor, prompt: String) -> Result<String, AssistError> {
        let AssistFor { user, thread, model } = requester.clone();
        let model: Arc<dyn Model> =
            self.setup().model(model.as_deref()).cloned().ok_or(AssistError::NoModel)?;
        if model.only_echoes() {
            return Err(AssistError::NoModel);
        }
        let request = Request {
            messages: vec![Arc::new(Message::Human(Human::guiding("assistance", prompt)))],
            thinking: Thinking::Off,
            sampling: Sampling { max_tokens: Some(MAX_REPLY_TOKENS), ..Sampling::default() },
            ..Request::default()
        };
        // Requesters are API clients, and are recorded as in their runs.
        let person = user.to_string();
        let spender = Spender { account: API_ACCOUNT.to_owned(), person, user, room: None };
        let thread = thread.unwrap_or_else(|| ThreadId::from(""));
        let model = metered(model, &Meter::new(self, thread, RunId::fresh(), spender));
        let mut spending = SpendingTally::default();
        let answer = side_call(&*model, request, ModelCaller::Assistance, &mut spending, |_| {});
        let answer = tokio::time::timeout(CALL_TIMEOUT, self.0.suspend.run_until_cancelled(answer)).await;
        Ok(answer.ok().flatten().ok_or(AssistError::TooLate)??)
    }
}

fn part(text: &str) -> String {
    foreign::text(&text.chars().take(MAX_READ_CHARS).collect::<String>())
}

/// Parses the questions in an answer: a JSON list of strings, with any text around it.
fn questions(answer: &str, count: usize) -> Vec<String> {
    let list = answer.find('[').zip(answer.rfind(']')).and_then(|(from, to)| answer.get(from..=to));
    let list: Vec<Value> = list.and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default();
    let questions = list.iter().filter_map(Value::as_str).map(|text| foreign::line(text, MAX_QUESTION_CHARS));
    questions.filter(|question| !question.trim().is_empty()).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_parsed_from_an_answer_and_garbage_has_none() {
        let check = |answer: &str, expect: &[&str]| assert_eq!(questions(answer, 2), expect, "{answer}");
        check(r#"["a?", "b?", "c?"]"#, &["a?", "b?"]);
        check("Here:\n```json\n[\"a\\n?\", 7, \" \", \"b?\"]\n```", &["a ?", "b?"]);
        for garbage in ["", "a?", "] [", "[", "[1, 2]", "{\"a\": []}", "[\"a\""] {
            check(garbage, &[]);
        }
    }
}
