//! Views of a run for users: its progress while it is active, and a description of its end.

use super::{approval, budgets, changes, goals, shared::Shared, tasks, todos};
use crate::{bus::STORE_TIMEOUT, sent};
use pudu_base::{
    Decision, FailureCause, FieldKind, Finish, MAX_ARTIFACTS, Outcome, Question, RetryReason, RunFailure,
    RunId, SandboxError, ThreadId, UserId,
};
use pudu_channels::{
    ChannelLimits, Choice, FORM_ACTION, FinalView, OutFile, Prompt, QuestionForm, ReplyView, render::fenced,
};
use pudu_harness::{Activity, CompactOutcome, Progress, RunningTool};
use pudu_kit::clock;
use pudu_net::scrub;
use pudu_people::accounts;
use pudu_runs::RunEnd;
use pudu_store::StoreError;
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use std::path::Path;
use url::Url;

/// Maximum length of an option that becomes a button, in bytes; some platforms show no more.
const MAX_LABEL_BYTES: usize = 40;

/// Maximum length of the action of a button, in bytes.
const MAX_ACTION_BYTES: usize = 64;

/// Maximum length of a question in the message, in bytes. A longer one is sent as a file.
const MAX_ASKED_BYTES: usize = 3_000;

/// Returns the button that is shown while something can be stopped.
fn stop(language: Language) -> Choice {
    Choice { label: language.button_stop().to_owned(), action: "/stop".to_owned() }
}

fn retry(language: Language) -> Choice {
    Choice { label: language.button_retry().to_owned(), action: "/retry".to_owned() }
}

/// A run as people see it in a chat: the data of a `view` frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Id of the run.
    pub run_id: String,
    /// The answer so far and notes below it, as Markdown.
    pub text: String,
    /// Length of the notes at the end of `text`, in bytes. They change while the answer grows.
    #[serde(default)]
    pub below: usize,
    /// The current activity.
    #[serde(default)]
    pub activity: Option<String>,
    /// Choices for people: each action is a slash command or a message.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// Sandbox paths of the files that belong to the answer.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether the run is over and the view final.
    pub done: bool,
    /// Whether the run failed; the text describes the failure.
    #[serde(default)]
    pub failed: bool,
    /// Title of the thread; in the final view only.
    #[serde(default)]
    pub title: Option<String>,
    /// Unified diffs of the files that the run changed, each below the name of its file; in the final view only.
    #[serde(default)]
    pub diff: String,
}

impl RunView {
    /// Returns the view of an active run. A call that waits for a decision is shown in full.
    pub fn of_progress(run: &RunId, progress: &Progress, language: Language) -> Self {
        let view = show_progress(progress, language, ViewReaders::Client);
        let ((text, choices), activity) = (view.whole(), view.activity.clone());
        let below = view.below + text.len().saturating_sub(view.text.len());
        Self { run_id: run.to_string(), text, below, activity, choices, ..Self::default() }
    }

    /// Returns the view of a finished run.
    ///
    /// # Errors
    /// If the store does not answer in time.
    pub async fn of_end(
        shared: &Shared,
        thread: &ThreadId,
        run: &RunId,
        language: Language,
        end: &RunEnd,
    ) -> Result<Self, StoreError> {
        let FinalView { text, choices, failed, .. } =
            end_in_words(language, end, ViewReaders::Client, None, "");
        let title = shared.db.within(STORE_TIMEOUT).title(thread).await?;
        let diff = changes::diff(shared, thread, run).await;
        let (run_id, files) = (run.to_string(), end.artifacts.clone());
        Ok(Self { run_id, text, choices, files, done: true, failed, title, diff, ..Self::default() })
    }
}

/// Returns the view while a run is active. It contains only the assistant's own text and the names of its actions: no
/// arguments, no results, no thinking. A question that is too long for a message is sent as a file.
///
/// `others` is whether people other than the asker decide.
pub(super) fn live(progress: &Progress, language: Language, others: bool) -> ReplyView {
    show_progress(progress, language, if others { ViewReaders::OtherApprovers } else { ViewReaders::Asker })
}

/// Readers of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewReaders {
    /// A chat with the person who decides.
    Asker,
    /// A chat in which other people decide.
    OtherApprovers,
    /// A client of the HTTP API, which gets no separate file.
    Client,
}

fn show_progress(progress: &Progress, language: Language, readers: ViewReaders) -> ReplyView {
    let pending = progress.asked.first();
    let deciders = if readers == ViewReaders::OtherApprovers { language.approval_by_others() } else { "" };
    let ask = pending.map(|pending| {
        let what = language.approval_question(&pending.request);
        let more = match pending.whole.as_deref() {
            None => String::new(),
            Some(whole) if readers != ViewReaders::Client && is_file(whole) => {
                language.approval_in_file().to_owned()
            }
            Some(whole) => fenced(whole),
        };
        Prompt { text: paragraphs(&[&what, &more, deciders]), choices: decide(language, &pending.key) }
    });
    let activity = match pending {
        Some(_) => Some(language.waiting_for_decision().to_owned()),
        None if !progress.tasks.is_empty() => Some(language.working_on().to_owned()),
        None => activity(language, &progress.activity),
    };
    // The model writes the purpose of a call, so secrets are hidden in it.
    let activity = activity.map(|words| scrub::hide_in_talk(&words).into_owned());
    let decided = decisions(language, &progress.decided, readers);
    let todos = todos::live(language, &progress.todos);
    let tasks = tasks::live(language, &progress.tasks);
    let own = scrub::hide_in_growing_talk(&progress.text);
    let text = paragraphs(&[&own, &decided, &todos, &tasks]);
    let below = text.strip_prefix(paragraphs(&[&own]).as_str()).map_or(0, str::len);
    ReplyView { text, below, activity, prompt: ask, choices: vec![stop(language)] }
}

/// Returns whether a question is too long for a message.
fn is_file(text: &str) -> bool {
    text.len() > MAX_ASKED_BYTES
}

/// Returns the question that has to be read in a file before the decision, because the message shows only a part.
pub(super) fn file_to_read(progress: &Progress) -> Option<(&str, &str)> {
    let pending = progress.asked.first()?;
    let full = pending.whole.as_deref().filter(|full| is_file(full))?;
    Some((&pending.key, full))
}

/// Returns the answer to an edit that comes too late, with a button that asks the new text if the text fits into one.
pub(super) fn late_edit(language: Language, text: &str) -> FinalView {
    if text.len() > MAX_ACTION_BYTES || text.contains('\n') {
        return FinalView { text: language.edit_late_long().to_owned(), ..FinalView::default() };
    }
    let choice = Choice { label: language.edit_ask_again().to_owned(), action: text.to_owned() };
    FinalView { text: language.edit_late().to_owned(), choices: vec![choice], ..FinalView::default() }
}

fn decide(language: Language, key: &str) -> Vec<Choice> {
    let choice =
        |label: &str, approve| Choice { label: label.to_owned(), action: approval::action(key, approve) };
    vec![choice(language.button_approve(), true), choice(language.button_deny(), false)]
}

/// Returns the lines about decisions.
fn decisions(language: Language, decisions: &[Decision], readers: ViewReaders) -> String {
    let name = |by: &String| match readers == ViewReaders::Client && is_local(by) {
        true => language.you().to_owned(),
        false => by.clone(),
    };
    let line = |Decision { request, approved, by, not_asked: unasked }: &Decision| match (
        approved,
        by.as_ref().map(name),
    ) {
        _ if *unasked => language.nobody_asked(request),
        (true, Some(by)) => language.approved(by, request),
        (true, None) => language.approved_somehow(request),
        (false, Some(by)) => language.denied(by, request),
        (false, None) => language.approved_by_nobody(request),
    };
    decisions.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns whether `by` is the local user of the page and the terminal, which decides without an account.
fn is_local(by: &str) -> bool {
    by == accounts::OPERATOR || by == UserId::local().as_str()
}

/// Joins paragraphs, and hides pudu's own secrets, which a tool may have found and the model may repeat.
fn paragraphs(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    scrub::hide_in_talk(&parts.join("\n\n")).into_owned()
}

/// Returns a question's text, its options as buttons, and whether the text lists the options. Options that are too long
/// for a button, or would be taken for commands, are listed and answered by number. A form is a list of its fields.
fn asked(language: Language, question: &Question) -> (String, Vec<Choice>, bool) {
    let Question { text, options, fields, .. } = question;
    if !fields.is_empty() {
        return (paragraphs(&[&question.as_text(), language.form_hint()]), Vec::new(), false);
    }
    let plain = |option: &String| option.len() <= MAX_LABEL_BYTES && !option.starts_with('/');
    if options.iter().all(plain) {
        let choice = |option: &String| Choice { label: option.clone(), action: option.clone() };
        return (text.clone(), options.iter().map(choice).collect(), false);
    }
    let numbered = |(at, option): (usize, &String)| format!("{}. {option}", at + 1);
    let list: Vec<String> = options.iter().enumerate().map(numbered).collect();
    let choice = |number: usize| Choice { label: number.to_string(), action: number.to_string() };
    (paragraphs(&[text, &list.join("\n")]), (1..=options.len()).map(choice).collect(), true)
}

/// Returns the view before the first event.
pub(super) fn waiting(language: Language) -> ReplyView {
    let (activity, choices) = (activity(language, &Activity::Thinking), vec![stop(language)]);
    ReplyView { activity, choices, ..ReplyView::default() }
}

fn activity(language: Language, activity: &Activity) -> Option<String> {
    let text = match activity {
        Activity::Talking => return None,
        Activity::Retrying { reason, seconds } => match reason {
            RetryReason::Busy => return Some(language.retrying_busy(seconds)),
            RetryReason::RateLimited => return Some(language.retrying_limited(seconds)),
            RetryReason::Resting => return Some(language.retrying_resting(seconds)),
            RetryReason::Garbled => language.retrying_broken(),
            RetryReason::Unreachable => language.retrying_unreachable(),
            RetryReason::Failed => language.retrying_failed(),
            RetryReason::FellBack => language.retrying_elsewhere(),
        },
        Activity::Tools(tools) if !tools.is_empty() => return Some(at_work(language, tools)),
        Activity::Summarizing => language.summarizing(),
        Activity::Idle | Activity::Thinking | Activity::Tools(_) => language.thinking(),
    };
    Some(text.to_owned())
}

/// Returns the line about the running tools: the purposes given by the model, and the names of tools without one.
fn at_work(language: Language, tools: &[RunningTool]) -> String {
    let mut purposes: Vec<&str> = tools.iter().filter_map(|tool| tool.description.as_deref()).collect();
    purposes.dedup();
    let plain = tools.iter().filter(|tool| tool.description.is_none());
    let names: Vec<&str> = plain.map(|tool| tool.tool.as_str()).collect();
    let purposes = (!purposes.is_empty()).then(|| format!("{}…", purposes.join(language.task_gap())));
    let names = (!names.is_empty()).then(|| language.running(language.list(&names)));
    let parts: Vec<String> = purposes.into_iter().chain(names).collect();
    language.paragraph(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Describes the cause of a failure. Older versions stored only an English text. The messages of a model's provider
/// stay in the log.
fn failed(language: Language, failure: &RunFailure, asker: Option<&str>) -> String {
    let Some(cause) = &failure.cause else { return failure.hint.clone() };
    match cause {
        FailureCause::Busy { minutes: Some(minutes), .. } => language.failed_busy_long(minutes),
        FailureCause::Busy { minutes: None, .. } => language.failed_busy().to_owned(),
        FailureCause::Unreachable(_) => language.failed_unreachable().to_owned(),
        FailureCause::Failed(detail) => {
            language.failed_provider(detail.split(':').next().unwrap_or_default())
        }
        FailureCause::Cut => language.failed_cut().to_owned(),
        FailureCause::Silent => language.failed_silent().to_owned(),
        FailureCause::OnlyMedia => language.failed_only_media().to_owned(),
        FailureCause::OnlyThought => language.failed_only_thought().to_owned(),
        FailureCause::Garbled => language.failed_garbled().to_owned(),
        FailureCause::Auth(_) => language.failed_auth().to_owned(),
        FailureCause::Quota(_) => language.failed_quota().to_owned(),
        FailureCause::NoApi(_) => language.failed_no_api().to_owned(),
        FailureCause::UnknownModel(_) => language.failed_unknown_model().to_owned(),
        FailureCause::TooLong(_) => language.failed_too_long().to_owned(),
        FailureCause::Filtered => language.failed_filtered().to_owned(),
        FailureCause::Rejected(_) => language.failed_rejected().to_owned(),
        FailureCause::Budget(used) => budgets::refused(language, used, asker),
        FailureCause::NoModel => language.failed_no_model().to_owned(),
        FailureCause::UnknownAgent(name) => {
            language.paragraph(&[&language.agent_unknown(name), language.agents_listed()])
        }
        FailureCause::BrokenAgent { name, why } => {
            language.paragraph(&[&language.agent_broken(name, why), language.agents_listed()])
        }
        FailureCause::UnreadableAgent => language.agent_unreadable().to_owned(),
        FailureCause::History => language.failed_history().to_owned(),
        FailureCause::Unheard => language.failed_unheard().to_owned(),
        FailureCause::Unstored => language.failed_unstored().to_owned(),
        FailureCause::Broken => language.failed_broken().to_owned(),
    }
}

/// Returns the final view of a chat, with its files. If others can read it, it names the asker.
pub(super) async fn finished(
    shared: &Shared,
    limits: ChannelLimits,
    language: Language,
    thread: &ThreadId,
    ended: &RunEnd,
    asker: Option<&str>,
) -> FinalView {
    let (files, missing) = files(shared, limits, language, thread, &ended.artifacts).await;
    let (title, form) = (ended.title.clone(), form(limits, ended));
    let mut view = end_in_words(language, ended, ViewReaders::Asker, asker, &missing);
    if form.is_some() {
        view.choices =
            vec![Choice { label: language.button_answer().to_owned(), action: FORM_ACTION.to_owned() }];
    }
    FinalView { files, title, form, ..view }
}

/// Returns the form that a run ended with, if the platform shows forms of its size. A form of files only is a message.
fn form(limits: ChannelLimits, ended: &RunEnd) -> Option<QuestionForm> {
    let Question { text, fields, .. } =
        ended.question.as_ref().filter(|_| ended.outcome == Outcome::Success)?;
    let inputs = fields.iter().filter(|field| field.kind != FieldKind::File).count();
    let fits = (1..=limits.form_fields).contains(&inputs);
    fits.then(|| QuestionForm { text: text.clone(), fields: fields.clone() })
}

/// Describes the end of a run for people, with the choices. `missing` names files that are not sent with it.
fn end_in_words(
    language: Language,
    ended: &RunEnd,
    readers: ViewReaders,
    asker: Option<&str>,
    missing: &str,
) -> FinalView {
    let (question, options, listed) =
        ended.question.as_ref().map(|question| asked(language, question)).unwrap_or_default();
    let (note, choices) = match &ended.outcome {
        Outcome::Success => match (ended.finish, &ended.question) {
            (Finish::Filtered, None) => (language.end_filtered().to_owned(), Vec::new()),
            (Finish::Length, None) => (language.end_length().to_owned(), Vec::new()),
            _ => (question, options),
        },
        Outcome::Stopped => (language.end_stopped().to_owned(), Vec::new()),
        Outcome::Timeout => (language.end_timeout().to_owned(), vec![retry(language)]),
        Outcome::Limit => (language.end_limit().to_owned(), Vec::new()),
        // A question that the run did not store cannot be asked again: a retry would repeat the previous one.
        Outcome::Error(failure) => {
            // If a budget is used up, a retry does not help.
            let again = ended.heard && ended.outcome.used_budget().is_none_or(|used| used.busy);
            let choices = if again { vec![retry(language)] } else { Vec::new() };
            (format!("⚠️ {}", failed(language, failure, asker)), choices)
        }
    };
    let left = match &ended.outcome {
        Outcome::Success => String::new(),
        Outcome::Stopped | Outcome::Timeout | Outcome::Limit | Outcome::Error(_) => {
            todos::left(language, &ended.todos)
        }
    };
    let summarized = if ended.summarized { language.summarized() } else { "" };
    let compacted = ended.compaction.map(|made| compacted(language, made)).unwrap_or_default();
    let decided = decisions(language, &ended.decisions, readers);
    let goal = ended.goal.as_ref().and_then(|goal| goals::judged(language, goal)).unwrap_or_default();
    let near: Vec<String> =
        ended.notes.budgets.iter().map(|notice| budgets::near(language, notice)).collect();
    let near = near.join("\n");
    let parts = [&ended.text, &decided, &left, &note, missing, &goal, &compacted, summarized, &near];
    let mut text = paragraphs(&parts);
    if text.is_empty() && ended.artifacts.is_empty() {
        language.end_silent().clone_into(&mut text);
    }
    let failed = matches!(ended.outcome, Outcome::Error(_) | Outcome::Timeout);
    let listed = listed && !choices.is_empty();
    FinalView { text, choices, listed, failed, ..FinalView::default() }
}

/// Describes the outcome of a requested summary.
pub fn compacted(language: Language, outcome: CompactOutcome) -> String {
    match outcome {
        CompactOutcome::Done { before, after } => language.compacted(after, before),
        CompactOutcome::NotEnough => language.compact_not_enough().to_owned(),
        CompactOutcome::Failed => language.compact_failed().to_owned(),
        CompactOutcome::Disabled => language.compact_disabled().to_owned(),
    }
}

/// Finds the files to send. A file that is too large for the chat becomes a link, and a missing one is reported.
async fn files(
    shared: &Shared,
    limits: ChannelLimits,
    language: Language,
    thread: &ThreadId,
    paths: &[String],
) -> (Vec<OutFile>, String) {
    let sandbox = shared.agent.files(thread).await;
    let (mut files, mut missing) = (Vec::new(), Vec::new());
    for path in paths.iter().take(MAX_ARTIFACTS) {
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        let copy = match &sandbox {
            Ok(sandbox) => sent::keep(&shared.home, sandbox, path).await,
            Err(error) => Err(SandboxError::Refused(error.to_string())),
        };
        match copy {
            Ok(file) => match link(shared, limits, thread, path, &file).await {
                Some(link) => missing.push(language.file_link(link, name)),
                None => files.push(OutFile { name, path: file }),
            },
            Err(error) => {
                tracing::warn!(%error, "failed to find file to send");
                missing.push(match error {
                    SandboxError::TooLarge { .. } => language.file_large(name),
                    SandboxError::Missing { .. } => language.file_gone(name),
                    _ => language.file_unreadable(name),
                });
            }
        }
    }
    missing.extend(too_many(language, paths.get(MAX_ARTIFACTS..).unwrap_or_default()));
    (files, missing.join("\n"))
}

/// Returns the note on files that are not sent with an answer because there are too many.
fn too_many(language: Language, paths: &[String]) -> Option<String> {
    let name = |path: &String| format!("`{}`", path.rsplit('/').next().unwrap_or(path).replace('`', "'"));
    let names: Vec<String> = paths.iter().take(MAX_ARTIFACTS).map(name).collect();
    let names = match paths.len().saturating_sub(MAX_ARTIFACTS) {
        0 => language.list(&names),
        more => language.files_left(more, language.list(&names)),
    };
    (!names.is_empty()).then(|| language.files_too_many(MAX_ARTIFACTS, names))
}

/// Creates a link to a file that is too large for the chat; `None` for any other.
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
    use pudu_base::FormField;

    const EN: Language = Language::English;

    #[test]
    fn short_options_are_buttons_and_long_ones_a_list_with_numbers() {
        let ask = |options: &[&str]| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            let (text, choices, listed) =
                asked(EN, &Question { text: "Which?".to_owned(), options, ..Question::default() });
            let choices: Vec<_> = choices.into_iter().map(|choice| (choice.label, choice.action)).collect();
            assert_eq!(listed, text.contains('\n'));
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
    fn a_form_is_a_list_of_its_fields() {
        let field = |name: &str, kind, required, options: &[&str]| FormField {
            name: name.to_owned(),
            label: name.to_owned(),
            kind,
            required,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            placeholder: None,
        };
        let fields = vec![
            field("Name", FieldKind::Text, true, &[]),
            field("Size", FieldKind::Select, false, &["S", "M"]),
            field("Day", FieldKind::Date, true, &[]),
        ];
        let question = Question { text: "📦 Where to?".to_owned(), fields, ..Question::default() };
        let (text, choices, _) = asked(EN, &question);
        assert_eq!(
            text,
            format!("📦 Where to?\n\n1. Name *\n2. Size: S / M\n3. Day *: YYYY-MM-DD\n\n{}", EN.form_hint())
        );
        assert!(choices.is_empty());
    }

    #[test]
    fn files_above_the_limit_are_named() {
        let paths =
            |most: usize| (1..=most).map(|n| format!("/mnt/user-data/outputs/{n}")).collect::<Vec<_>>();
        let notice = |names: &str| {
            let what = "An answer can have at most 20 files. Not sent";
            Some(format!("⚠️ {what}: {names}. Ask for them if you need them."))
        };
        let too_many = |paths: &[String]| too_many(Language::English, paths);
        assert_eq!(too_many(&[]), None);
        assert_eq!(too_many(&paths(2)), notice("`1`, `2`"));
        assert!(too_many(&paths(20)).unwrap().contains("`19`, `20`. Ask"));
        assert!(too_many(&paths(23)).unwrap().contains("`19`, `20` and 3 more. Ask"));
    }

    #[test]
    fn activity_is_described_in_a_few_words() {
        let tool = |name: &str, why: Option<&str>| RunningTool {
            call: name.into(),
            tool: name.to_owned(),
            description: why.map(str::to_owned),
            progress: None,
        };
        let tools = |names: &[&str]| Activity::Tools(names.iter().map(|name| tool(name, None)).collect());
        let check = |state: Activity, expect: Option<&str>| {
            assert_eq!(activity(Language::English, &state).as_deref(), expect);
        };
        check(Activity::Idle, Some("Thinking…"));
        check(Activity::Talking, None);
        check(Activity::Thinking, Some("Thinking…"));
        check(Activity::Summarizing, Some("Summarizing the conversation…"));
        check(tools(&["ls", "bash"]), Some("Running ls, bash…"));
        check(tools(&[]), Some("Thinking…"));
        let reads = || tool("read_file", Some("Reading the sales figures"));
        check(Activity::Tools(vec![reads(), reads()]), Some("Reading the sales figures…"));
        let both = vec![reads(), tool("bash", None), tool("ls", Some("Looking around"))];
        check(Activity::Tools(both), Some("Reading the sales figures; Looking around… Running bash…"));
        let busy = Activity::Retrying { reason: RetryReason::RateLimited, seconds: 12 };
        check(busy, Some("Rate limited by the model's provider; retrying in 12 s…"));
    }
}
