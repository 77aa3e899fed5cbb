//! People's view of a run: the fold of its events while it works, and its end in words.

use super::{approval, shared::Shared};
use crate::{clock, sent};
use pudu_channels::{ChannelLimits, Choice, FinalView, OutFile, Prompt, ReplyView, render::fenced};
use pudu_client::{
    RunEnd,
    base::{Decision, Finish, MAX_ARTIFACTS, Outcome, Question, SandboxError, ThreadId},
    harness::{Activity, Progress, Working},
    net::scrub,
};
use std::path::Path;
use url::Url;

/// Maximum length of an option that becomes a button, in bytes: not every platform shows more.
const MAX_LABEL_BYTES: usize = 40;

/// Said where the provider's filter ended an answer.
const FILTERED: &str = "⚠️ *The provider's content filter ended this answer. Ask in other words, or leave out what it may have taken offence at.*";
/// Said where an answer is as long as the model makes one.
const LENGTH: &str =
    "⚠️ *This is as long as the model makes one answer (`max_tokens`); write \"go on\" and I continue.*";
/// Bytes of a question that stand in the message; more of it stands in a file.
const MAX_ASKED_BYTES: usize = 3_000;
/// Said of what does not.
const IN_FILE: &str = "(All of it comes beside this question, as a file where this chat takes one: read it first. Nobody can approve it before it is here.)";
/// Said below a question that others decide.
const OTHERS: &str = "(Only those whom whoever runs this bot named decide that.)";
/// Said of what nobody was asked about.
const UNHEARD: &str = "Only those whom whoever runs this bot named may allow it, and they do not see this chat: ask for it in a group with one of them.";

/// Shown while something can be stopped.
fn stop() -> Choice {
    Choice { label: "Stop".to_owned(), action: "/stop".to_owned() }
}

fn retry() -> Choice {
    Choice { label: "Try again".to_owned(), action: "/retry".to_owned() }
}

/// Returns what is seen while a run works. Only the assistant's own words and the names of what it does:
/// no arguments, no results, no thoughts.
///
/// `others` says whether others decide than the one who is answered.
pub(super) fn live(progress: &Progress, others: bool) -> ReplyView {
    let asked = progress.asked.first();
    let whose = if others { OTHERS } else { "" };
    let ask = asked.map(|asked| {
        let what = format!("🔐 May I? {}", asked.request);
        let more = match asked.whole.as_deref() {
            None => String::new(),
            Some(whole) if is_file(whole) => IN_FILE.to_owned(),
            Some(whole) => fenced(whole),
        };
        Prompt { text: paragraphs(&[&what, &more, whose]), choices: decide(&asked.key) }
    });
    let activity = match asked {
        Some(_) => Some("Waiting for your decision…".to_owned()),
        None => working(&progress.tasks).or_else(|| activity(&progress.activity)),
    };
    let text = paragraphs(&[&scrub::hide_in_growing_talk(&progress.text), &decisions(&progress.decided)]);
    ReplyView { text, activity, prompt: ask, choices: vec![stop()] }
}

/// Whether all of what is asked is too long for a message.
fn is_file(whole: &str) -> bool {
    whole.len() > MAX_ASKED_BYTES
}

/// Returns what is to be read in a file before somebody decides: what the question leaves out.
pub(super) fn file_to_read(progress: &Progress) -> Option<(&str, &str)> {
    let asked = progress.asked.first()?;
    let whole = asked.whole.as_deref().filter(|whole| is_file(whole))?;
    Some((&asked.key, whole))
}

fn decide(key: &str) -> Vec<Choice> {
    let choice =
        |label: &str, approve| Choice { label: label.to_owned(), action: approval::action(key, approve) };
    vec![choice("Approve", true), choice("Deny", false)]
}

/// Returns the line about the sub-agents' work.
fn working(tasks: &[Working]) -> Option<String> {
    let one = |task: &Working| match task.doing.as_slice() {
        [] => task.about.clone(),
        doing => format!("{} ({})", task.about, doing.join(", ")),
    };
    let all: Vec<String> = tasks.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("Working on: {}…", all.join("; ")))
}

/// Returns the lines about decisions.
fn decisions(decisions: &[Decision]) -> String {
    let line = |Decision { request: wish, approved, by, not_asked: unasked }: &Decision| match (approved, by)
    {
        _ if *unasked => format!("⛔ {wish} was not done. {UNHEARD}"),
        (true, by) => format!("✅ {} approved {wish}", by.as_deref().unwrap_or("Somebody")),
        (false, Some(by)) => format!("⛔ {by} did not allow {wish}"),
        (false, None) => format!("⌛ Nobody allowed {wish} in time"),
    };
    decisions.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Puts paragraphs together, without any secret of pudu's own that a tool found and the model repeats.
fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    scrub::hide_in_talk(&parts.join("\n\n")).into_owned()
}

/// Returns a question's words, and its options to click. Options that are too long for a button, or that would
/// be taken for commands, are listed and answered by their number.
fn asked(Question { text, options }: &Question) -> (String, Vec<Choice>) {
    let plain = |option: &String| option.len() <= MAX_LABEL_BYTES && !option.starts_with('/');
    if options.iter().all(plain) {
        let choice = |option: &String| Choice { label: option.clone(), action: option.clone() };
        return (text.clone(), options.iter().map(choice).collect());
    }
    let numbered = |(at, option): (usize, &String)| format!("{}. {option}", at + 1);
    let list: Vec<String> = options.iter().enumerate().map(numbered).collect();
    let choice = |number: usize| Choice { label: number.to_string(), action: number.to_string() };
    (paragraphs(&[text, &list.join("\n")]), (1..=options.len()).map(choice).collect())
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
pub(super) async fn finished(
    shared: &Shared,
    limits: ChannelLimits,
    thread: &ThreadId,
    ended: &RunEnd,
) -> FinalView {
    let (files, missing) = files(shared, limits, thread, &ended.artifacts).await;
    let (question, options) = ended.question.as_ref().map(asked).unwrap_or_default();
    let (note, choices) = match &ended.outcome {
        Outcome::Success => match (ended.finish, &ended.question) {
            (Finish::Filtered, None) => (FILTERED.to_owned(), Vec::new()),
            (Finish::Length, None) => (LENGTH.to_owned(), Vec::new()),
            _ => (question, options),
        },
        Outcome::Stopped => ("*Stopped.*".to_owned(), Vec::new()),
        Outcome::Timeout => ("⚠️ *I ran out of time; this is as far as I got.*".to_owned(), vec![retry()]),
        Outcome::Limit => {
            let text = "⚠️ *This took more steps than I am allowed; write \"go on\" and I continue.*";
            (text.to_owned(), Vec::new())
        }
        // What was not heard cannot be asked again: what would be is the question before.
        Outcome::Error(failure) => {
            let choices = if ended.heard { vec![retry()] } else { Vec::new() };
            (format!("⚠️ {}", failure.hint), choices)
        }
    };
    let text = paragraphs(&[&ended.text, &decisions(&ended.decisions), &note, &missing]);
    let text =
        if text.is_empty() && files.is_empty() { "(The assistant said nothing.)".to_owned() } else { text };
    let failed = matches!(ended.outcome, Outcome::Error(_) | Outcome::Timeout);
    FinalView { text, files, choices, failed, ..FinalView::default() }
}

/// Finds the files to send; what is too large for the chat becomes a link, and what is not there is told.
async fn files(
    shared: &Shared,
    limits: ChannelLimits,
    thread: &ThreadId,
    paths: &[String],
) -> (Vec<OutFile>, String) {
    let sandbox = shared.client.files(thread);
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for path in paths.iter().take(MAX_ARTIFACTS) {
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        match sent::keep(&shared.home, &sandbox, path).await {
            Ok(file) => match link(shared, limits, thread, path, &file).await {
                Some(link) => missing.push(format!("📎 [{name}]({link}) (a link that is good for a day)")),
                None => files.push(OutFile { name, path: file }),
            },
            Err(error) => {
                tracing::warn!(%error, "a file to send is not there");
                let why = match error {
                    SandboxError::TooLarge { .. } => "it is too large",
                    SandboxError::Missing { .. } => "it is not there any more",
                    _ => "it cannot be had",
                };
                missing.push(format!("⚠️ `{name}` could not be sent: {why}."));
            }
        }
    }
    missing.extend(too_many(paths.get(MAX_ARTIFACTS..).unwrap_or_default()));
    (files, missing.join("\n"))
}

/// Returns the note on files that do not go with an answer because there are too many.
fn too_many(paths: &[String]) -> Option<String> {
    let name = |path: &String| format!("`{}`", path.rsplit('/').next().unwrap_or(path).replace('`', "'"));
    let mut names: Vec<String> = paths.iter().take(MAX_ARTIFACTS).map(name).collect();
    if let Some(more) = paths.len().checked_sub(MAX_ARTIFACTS + 1) {
        names.push(format!("{} more", more + 1));
    }
    let what = "files go with one answer. Not sent; ask for them if you need them";
    (!names.is_empty()).then(|| format!("⚠️ No more than {MAX_ARTIFACTS} {what}: {}", names.join(", ")))
}

/// Makes a link to a file that is too large for the chat; `None` for any other.
async fn link(
    shared: &Shared,
    limits: ChannelLimits,
    thread: &ThreadId,
    path: &str,
    file: &Path,
) -> Option<Url> {
    let size = tokio::fs::metadata(file).await.ok()?.len();
    if size <= limits.upload { None } else { shared.links.to(thread, path, clock::now()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_options_are_buttons_and_long_ones_a_list_with_numbers() {
        let ask = |options: &[&str]| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            let (text, choices) = asked(&Question { text: "Which?".to_owned(), options });
            let choices: Vec<_> = choices.into_iter().map(|choice| (choice.label, choice.action)).collect();
            (text, choices)
        };
        let pair = |label: &str| (label.to_owned(), label.to_owned());
        assert_eq!(ask(&[]), ("Which?".to_owned(), vec![]));
        assert_eq!(ask(&["a", "b c"]), ("Which?".to_owned(), vec![pair("a"), pair("b c")]));
        let numbers = || vec![pair("1"), pair("2")];
        assert_eq!(ask(&["a", "/new"]), ("Which?\n\n1. a\n2. /new".to_owned(), numbers()));
        let long = "x".repeat(41);
        assert_eq!(ask(&["a", &long]), (format!("Which?\n\n1. a\n2. {long}"), numbers()));
    }

    #[test]
    fn files_that_are_too_many_are_named() {
        let paths =
            |most: usize| (1..=most).map(|n| format!("/mnt/user-data/outputs/{n}")).collect::<Vec<_>>();
        let said = |names: &str| {
            let what = "No more than 20 files go with one answer. Not sent; ask for them if you need them";
            Some(format!("⚠️ {what}: {names}"))
        };
        assert_eq!(too_many(&[]), None);
        assert_eq!(too_many(&paths(2)), said("`1`, `2`"));
        assert!(too_many(&paths(20)).unwrap().ends_with("`19`, `20`"));
        assert!(too_many(&paths(23)).unwrap().ends_with("`19`, `20`, 3 more"));
    }

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
