//! The prompts of a server, which people start by name.

use crate::{answer, failure, handle::KeeperHandle, server::McpServer};
use pudu_base::{BoxFuture, NamedPrompt, PromptSpec, foreign};
use rmcp::{
    RoleClient,
    model::{
        CallToolResult, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PaginatedRequestParams,
        Prompt, PromptArgument, Role,
    },
    service::{Peer, ServiceError},
};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::timeout;

/// Maximum number of prompts per server.
const MAX_PROMPTS: usize = 128;
/// Maximum number of pages in a list.
const MAX_PAGES: usize = 16;
/// Maximum length of a prompt's description, in characters.
const MAX_ABOUT_CHARS: usize = 300;
/// Maximum length of a placeholder, in characters.
const MAX_HINT_CHARS: usize = 80;

/// A prompt of a server.
pub(crate) struct McpPrompt {
    server: Arc<McpServer>,
    line: KeeperHandle,
    prompt: Prompt,
    spec: PromptSpec,
}

/// Requests a server's prompts.
pub(crate) async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Prompt>, ServiceError> {
    let (mut prompts, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = peer.list_prompts(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        let is_empty = page.prompts.is_empty();
        prompts.extend(page.prompts);
        cursor = page.next_cursor;
        if cursor.is_none() || is_empty || prompts.len() >= MAX_PROMPTS {
            break;
        }
    }
    prompts.truncate(MAX_PROMPTS);
    Ok(prompts)
}

impl McpPrompt {
    /// Creates a prompt. `name` is the name for people, which may differ from the server's.
    pub(crate) fn new(server: Arc<McpServer>, line: KeeperHandle, name: String, prompt: Prompt) -> Self {
        let about = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
        let hint = |argument: &PromptArgument| match argument.required {
            Some(true) => format!("<{}>", argument.name),
            _ => format!("[{}]", argument.name),
        };
        let hints: Vec<String> = prompt.arguments.iter().flatten().map(hint).collect();
        let spec = PromptSpec {
            name,
            about: foreign::line(about, MAX_ABOUT_CHARS),
            argument_hint: foreign::line(&hints.join(" "), MAX_HINT_CHARS),
            server: server.name().to_owned(),
        };
        Self { server, line, prompt, spec }
    }

    async fn ask(&self, text: &str) -> Result<String, String> {
        let mut params = GetPromptRequestParams::new(self.prompt.name.clone());
        params.arguments = arguments(self.prompt.arguments.as_deref().unwrap_or_default(), text)?;
        let wire = self.line.wire().await?;
        let limit = self.server.call_timeout;
        let answer = timeout(limit, wire.peer.get_prompt_once(params)).await;
        match answer.map_err(|_| format!("no answer within {limit:?} (tool_call_timeout)"))? {
            Ok(GetPromptResponse::Complete(result)) => Ok(flatten(result)),
            Ok(_) => Err("it asks for something that is not in this version".to_owned()),
            Err(error) => Err(failure::of_request(&error, &self.server.label)),
        }
    }
}

impl NamedPrompt for McpPrompt {
    fn spec(&self) -> &PromptSpec {
        &self.spec
    }

    fn get<'a>(&'a self, arguments: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(self.ask(arguments))
    }
}

/// Reads the arguments of a prompt: `name=value` words, in any order, with the value in quotes if it has spaces, or else
/// the words in the order of the arguments; the last argument gets the rest.
fn arguments(known: &[PromptArgument], text: &str) -> Result<Option<Map<String, Value>>, String> {
    let named = shell_words(text).and_then(|words| {
        let pair = |word: &String| {
            let (name, value) = word.split_once('=')?;
            known.iter().any(|argument| argument.name == name).then(|| (name.to_owned(), value.into()))
        };
        words.iter().map(pair).collect::<Option<Map<String, Value>>>()
    });
    let given = match named.filter(|named| !named.is_empty()) {
        Some(named) => named,
        None => positional(known, text),
    };
    let is_missing =
        |argument: &&PromptArgument| argument.required == Some(true) && !given.contains_key(&argument.name);
    let missing: Vec<String> =
        known.iter().filter(is_missing).map(|argument| format!("`{}`", argument.name)).collect();
    match missing.is_empty() {
        true => Ok((!given.is_empty()).then_some(given)),
        false => Err(format!("the arguments lack {}", missing.join(", "))),
    }
}

fn positional(known: &[PromptArgument], text: &str) -> Map<String, Value> {
    let words = text.trim().splitn(known.len().max(1), char::is_whitespace).map(str::trim);
    let pairs = known.iter().zip(words.filter(|word| !word.is_empty()));
    pairs.map(|(argument, word)| (argument.name.clone(), word.into())).collect()
}

/// Splits a text into words; quotes keep spaces. Returns `None` if a quote is open.
fn shell_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') if word.ends_with('=') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()))
            }
            (_, c) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    quote.is_none().then_some(words)
}

/// Returns a prompt's messages as one text. The author of each is named if there are several.
fn flatten(result: GetPromptResult) -> String {
    let is_single = result.messages.len() <= 1;
    let text = |message: rmcp::model::PromptMessage| {
        let author = if message.role == Role::Assistant { "Assistant" } else { "User" };
        let text = answer::read(&CallToolResult::success(vec![message.content])).text;
        if is_single { text } else { format!("{author}: {text}") }
    };
    result.messages.into_iter().map(text).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_read_by_name_or_by_position() {
        let argument = |(name, required): (&str, bool)| PromptArgument::new(name).with_required(required);
        let check = |known: &[(&str, bool)], text: &str, expect: Result<Value, &str>| {
            let known: Vec<PromptArgument> = known.iter().copied().map(argument).collect();
            let read = arguments(&known, text).map(|given| json!(given));
            assert_eq!(read.as_ref().map_err(String::as_str), expect.as_ref().map_err(|why| *why), "{text}");
        };
        let two = [("topic", true), ("tone", false)];
        check(&two, "deer kind and warm", Ok(json!({"topic": "deer", "tone": "kind and warm"})));
        check(&two, "tone=kind topic=\"small deer\"", Ok(json!({"topic": "small deer", "tone": "kind"})));
        check(&two, "a=b c", Ok(json!({"topic": "a=b", "tone": "c"})));
        check(&two, "tone=kind", Err("the arguments lack `topic`"));
        check(&two, " ", Err("the arguments lack `topic`"));
        check(&[("text", true)], "don't = panic", Ok(json!({"text": "don't = panic"})));
        check(&[], "anything", Ok(json!(null)));
    }
}
