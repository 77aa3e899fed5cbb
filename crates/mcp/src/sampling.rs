//! MCP sampling: a server asks the run's model. A user approves each request, which counts against the budgets of the
//! run's user.

use crate::asks::{AskAnswer, rejected};
use pudu_base::{
    Assistant, CallHost, Cut, EffectRequest, Finish, Human, Message, SamplePrompt, SampledText, foreign,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum size of a question, in bytes: a person reads it before it is asked.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
/// Maximum length of the prompt in the approval line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Asks people for approval and then the model.
pub(crate) async fn sample(server: &str, params: &Value, host: &dyn CallHost) -> AskAnswer {
    let (request, prompt) = request(params).map_err(|why| rejected(&why))?;
    let decision = host.approve(effect(server, &prompt)).await;
    if !decision.approved {
        return Err(rejected("a person did not allow it"));
    }
    let SampledText { text, model } = host.sample(request).await.map_err(|why| rejected(&why))?;
    Ok(json!({
        "role": "assistant",
        "content": { "type": "text", "text": text },
        "model": model,
        "stopReason": "endTurn",
    }))
}

fn effect(server: &str, prompt: &str) -> EffectRequest {
    let line = foreign::in_code(&foreign::line(prompt, MAX_LINE_CHARS));
    let whole: Arc<str> = foreign::text(prompt).into();
    let is_cut = *whole != *line;
    EffectRequest { line: format!("`{server} asks the model: {line}`"), whole: is_cut.then_some(whole) }
}

/// Returns the request to the model, and its text for people.
fn request(params: &Value) -> Result<(SamplePrompt, String), String> {
    let has_tools = params.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    if has_tools {
        return Err("tools are not supported in questions to the model".to_owned());
    }
    let system = params.get("systemPrompt").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut messages, mut shown) = (Vec::new(), vec![system.clone()]);
    let all = params.get("messages").and_then(Value::as_array);
    for (at, message) in all.into_iter().flatten().enumerate() {
        let text = text_of(message.get("content").unwrap_or(&Value::Null));
        shown.push(text.clone());
        let id = format!("sample-{at}").into();
        messages.push(Arc::new(match message.get("role").and_then(Value::as_str) {
            Some("assistant") => Message::Assistant(Assistant {
                id,
                text,
                reasoning: None,
                provider_parts: None,
                calls: Vec::new(),
                finish: Finish::Complete,
                model: None,
                usage: None,
                failure: None,
            }),
            _ => Message::Human(Human::new(id, text)),
        }));
    }
    let prompt = shown.join("\n\n").trim().to_owned();
    if messages.is_empty() || prompt.is_empty() {
        return Err("the question is empty".to_owned());
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        return Err(format!("the question has more than {MAX_PROMPT_BYTES} bytes"));
    }
    let max_tokens = params.get("maxTokens").and_then(Value::as_u64).and_then(|max| u32::try_from(max).ok());
    Ok((SamplePrompt { system, messages, max_tokens: max_tokens.filter(|max| *max > 0) }, prompt))
}

/// Returns the text of a message's content: a block or a list of blocks. Other content is replaced by its type.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        block => match (block.get("text").and_then(Value::as_str), block.get("type").and_then(Value::as_str))
        {
            (Some(text), _) => text.to_owned(),
            (None, Some(kind)) => format!("[{}, not shown]", Cut::Middle(40).apply(kind.to_owned())),
            (None, None) => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_to_the_model_is_read() {
        let check = |params: Value, expect: Result<&str, &str>| {
            let read = request(&params).map(|(_, prompt)| prompt);
            assert_eq!(read.as_deref().map_err(String::as_str), expect, "{params}");
        };
        let user = |content: Value| json!([{ "role": "user", "content": content }]);
        let text = json!({ "type": "text", "text": "Hi" });
        check(json!({ "messages": user(text.clone()), "systemPrompt": "Be brief." }), Ok("Be brief.\n\nHi"));
        check(
            json!({ "messages": user(json!([text, { "type": "image", "data": "x" }])) }),
            Ok("Hi\n[image, not shown]"),
        );
        check(json!({ "messages": [] }), Err("the question is empty"));
        check(json!(null), Err("the question is empty"));
        let tools = json!({ "messages": user(text), "tools": [{ "name": "t" }] });
        check(tools, Err("tools are not supported in questions to the model"));
        let giant = json!({ "messages": user(json!("x".repeat(70_000))) });
        check(giant, Err("the question has more than 65536 bytes"));
    }
}
