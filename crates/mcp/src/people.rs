//! Answers the requests that a server makes during a call: with a form, an approval, the run's model or the thread's
//! folder.

use crate::{
    asks::{AskAnswer, AskKind, ServerAsk},
    form::ServerForm,
    sampling,
    server::{McpServer, Transport},
};
use pudu_base::{CallHost, Decision, EffectRequest, foreign};
use pudu_net::reqwest::Url;
use serde_json::{Value, json};

/// Maximum length of a server's question in the line for people, in characters.
const MAX_LINE_CHARS: usize = 300;
/// Maximum length of a link that people are asked to open, in characters.
const MAX_LINK_CHARS: usize = 2_000;

/// Outcome of a server request.
pub(crate) enum AskOutcome {
    /// It is answered.
    Answered,
    /// It is declined, because people cannot be asked. The text is the server's question.
    Declined(String),
    /// A form has to be shown.
    Form { ask: ServerAsk, form: ServerForm, message: String },
}

/// Answers a request, unless it needs a form.
pub(crate) async fn handle(ask: ServerAsk, server: &McpServer, host: &dyn CallHost) -> AskOutcome {
    match ask.kind {
        AskKind::Roots => {
            let answer = roots(server, host);
            ask.answer(Ok(answer));
            AskOutcome::Answered
        }
        AskKind::Sampling => {
            let answer = sampling::sample(server.name(), &ask.params, host).await;
            if let Err(error) = &answer {
                tracing::info!(server = server.name(), "refused sampling request: {}", error.message);
            }
            ask.answer(answer);
            AskOutcome::Answered
        }
        AskKind::Elicitation => elicit(ask, server, host).await,
    }
}

async fn elicit(ask: ServerAsk, server: &McpServer, host: &dyn CallHost) -> AskOutcome {
    let message = ask.params.get("message").and_then(Value::as_str).unwrap_or_default();
    let message = server.label.hide_in_tool_error(message);
    let url = ask.params.get("url").and_then(Value::as_str);
    let form = match url {
        Some(url) => {
            let Some(effect) = link(server.name(), &message, url) else {
                return declined(ask, message, "its link cannot be opened");
            };
            return decided(ask, message, &host.approve(effect).await);
        }
        None => ServerForm::read(ask.params.get("requestedSchema").unwrap_or(&Value::Null)),
    };
    match form {
        Err(why) => declined(ask, message, &why),
        Ok(form) if form.is_empty() => {
            let line = foreign::in_code(&foreign::line(&message, MAX_LINE_CHARS));
            let line = format!("`{}: {line}`", server.name());
            let whole = (message.chars().count() > MAX_LINE_CHARS).then(|| foreign::text(&message).into());
            decided(ask, message, &host.approve(EffectRequest { line, whole }).await)
        }
        Ok(form) if host.can_ask() => AskOutcome::Form { ask, form, message },
        Ok(_) => declined(ask, message, "there are no people to ask"),
    }
}

fn declined(ask: ServerAsk, message: String, why: &str) -> AskOutcome {
    tracing::info!("declined elicitation request ({why}): {message}");
    ask.answer(AskKind::Elicitation.refusal());
    AskOutcome::Declined(message)
}

/// Answers with a person's decision. Without one in time, the question is cancelled.
fn decided(ask: ServerAsk, message: String, decision: &Decision) -> AskOutcome {
    let answer: AskAnswer = match decision {
        Decision { not_asked: true, .. } => return declined(ask, message, "there are no people to ask"),
        Decision { approved: true, .. } if ask.params.get("url").is_some() => {
            Ok(json!({ "action": "accept" }))
        }
        Decision { approved: true, .. } => Ok(json!({ "action": "accept", "content": {} })),
        Decision { by: Some(_), .. } => Ok(json!({ "action": "decline" })),
        Decision { .. } => Ok(json!({ "action": "cancel" })),
    };
    ask.answer(answer);
    AskOutcome::Answered
}

/// Returns the request to approve opening a link. The link is shown in full, with its host in ASCII.
fn link(server: &str, message: &str, url: &str) -> Option<EffectRequest> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login || url.as_str().len() > MAX_LINK_CHARS {
        return None;
    }
    let message = foreign::in_code(&foreign::line(message, MAX_LINE_CHARS));
    let address = url.as_str().replace('`', "%60");
    Some(EffectRequest { line: format!("`{server}: {message}` → {address}"), whole: None })
}

/// Returns the folder of the thread for a server that runs on this host.
fn roots(server: &McpServer, host: &dyn CallHost) -> Value {
    let folder = match server.transport {
        Transport::Stdio(_) => host.workspace(),
        Transport::Http(_) => None,
    };
    let url = folder.and_then(|folder| Url::from_directory_path(folder).ok());
    let roots: Vec<Value> = url
        .iter()
        .map(|url| json!({ "uri": url.as_str().trim_end_matches('/'), "name": "workspace" }))
        .collect();
    json!({ "roots": roots })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_shown_whole_or_not_at_all() {
        let shown = |url: &str| link("pay", "Sign `in`\nhere", url).map(|effect| effect.line);
        let ok = |rest: &str| Some(format!("`pay: Sign ˋinˋ here` → {rest}"));
        assert_eq!(shown("https://pay.example/a?b=c d`"), ok("https://pay.example/a?b=c%20d%60"));
        assert_eq!(shown("https://pаy.example/"), ok("https://xn--py-7kc.example/"));
        for refused in
            ["javascript:alert(1)", "file:///etc/passwd", "https://pay.example@evil.example/", "?", ""]
        {
            assert_eq!(shown(refused), None, "{refused}");
        }
        assert_eq!(shown(&format!("https://e.example/{}", "x".repeat(2_000))), None);
    }
}
