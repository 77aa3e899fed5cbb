//! What people see of a run: the fold of its events while it works, and its end in words.

use super::Shared;
use crate::clock;
use pudu_channels::{Choice, FinalView, Limits, OutFile, ReplyView};
use pudu_client::{
    Ended,
    base::{Outcome, ThreadId},
    harness::{Activity, Progress},
};
use std::path::Path;
use url::Url;

/// Shown while something can be stopped.
fn stop() -> Choice {
    Choice { label: "Stop".to_owned(), action: "/stop".to_owned() }
}

fn retry() -> Choice {
    Choice { label: "Try again".to_owned(), action: "/retry".to_owned() }
}

/// Returns what is seen while a run works. Only the assistant's own words and the names of what it does:
/// no arguments, no results, no thoughts.
pub(super) fn live(progress: &Progress) -> ReplyView {
    ReplyView { text: progress.text.clone(), activity: activity(&progress.activity), choices: vec![stop()] }
}

/// Returns what is seen before anything happened.
pub(super) fn waiting() -> ReplyView {
    ReplyView { activity: activity(&Activity::Thinking), choices: vec![stop()], ..ReplyView::default() }
}

fn activity(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Talking => None,
        Activity::Idle | Activity::Thinking => Some("Thinking…".to_owned()),
        Activity::Retrying { reason } => Some(format!("{}; trying again…", capital(reason))),
        Activity::Tools(tools) if tools.is_empty() => Some("Thinking…".to_owned()),
        Activity::Tools(tools) => {
            let names: Vec<&str> = tools.iter().map(|(_, name)| name.as_str()).collect();
            Some(format!("Running {}…", names.join(", ")))
        }
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Returns what stays.
pub(super) async fn finished(shared: &Shared, limits: Limits, thread: &ThreadId, ended: &Ended) -> FinalView {
    let (files, missing) = files(shared, limits, thread, &ended.artifacts).await;
    let (note, choices) = match &ended.outcome {
        Outcome::Success => (String::new(), Vec::new()),
        Outcome::Stopped => ("*Stopped.*".to_owned(), Vec::new()),
        Outcome::Timeout => ("⚠️ *I ran out of time; this is as far as I got.*".to_owned(), vec![retry()]),
        Outcome::Limit => {
            let text = "⚠️ *This took more steps than I am allowed; write \"go on\" and I continue.*";
            (text.to_owned(), Vec::new())
        }
        Outcome::Error(failure) => (format!("⚠️ {}", failure.hint), vec![retry()]),
    };
    let parts = [ended.text.trim(), &note, &missing];
    let text = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n");
    let text =
        if text.is_empty() && files.is_empty() { "(The assistant said nothing.)".to_owned() } else { text };
    FinalView { text, files, choices }
}

/// Finds the files to send; what is too large for the chat becomes a link, and what is not there is told.
async fn files(
    shared: &Shared,
    limits: Limits,
    thread: &ThreadId,
    paths: &[String],
) -> (Vec<OutFile>, String) {
    let sandbox = shared.client.sandbox(thread);
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        match sandbox.locate(path).await {
            Ok(file) => match link(shared, limits, thread, path, &file).await {
                Some(link) => missing.push(format!("📎 [{name}]({link}) (a link that is good for a day)")),
                None => files.push(OutFile { name, path: file }),
            },
            Err(error) => {
                tracing::warn!(%error, "a file to send is not there");
                missing.push(format!("⚠️ `{name}` could not be sent: it is not there any more."));
            }
        }
    }
    (files, missing.join("\n"))
}

/// Makes a link to a file that is too large for the chat; `None` for any other.
async fn link(shared: &Shared, limits: Limits, thread: &ThreadId, path: &str, file: &Path) -> Option<Url> {
    let size = tokio::fs::metadata(file).await.ok()?.len();
    if size <= limits.upload { None } else { shared.links.to(thread, path, clock::now()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_does_is_said_in_a_few_words() {
        let tools =
            |names: &[&str]| Activity::Tools(names.iter().map(|n| ((*n).into(), (*n).to_owned())).collect());
        let check = |state: Activity, expect: Option<&str>| assert_eq!(activity(&state).as_deref(), expect);
        check(Activity::Idle, Some("Thinking…"));
        check(Activity::Talking, None);
        check(Activity::Thinking, Some("Thinking…"));
        check(tools(&["ls", "bash"]), Some("Running ls, bash…"));
        check(tools(&[]), Some("Thinking…"));
        let busy = Activity::Retrying { reason: "the model is busy".into() };
        check(busy, Some("The model is busy; trying again…"));
    }
}
