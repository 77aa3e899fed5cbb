//! The input line, edited by rustyline on a thread of its own.
//!
//! While it is open, output is printed above it. Ctrl-C stops the run, or else clears the line; Ctrl-D quits.

use super::{
    paint::{Paint, TextLook},
    wire::CommandEntry,
};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, ExternalPrinter, Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::{Hint, Hinter},
    history::{DefaultHistory, History},
    validate::{ValidationContext, ValidationResult, Validator},
};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;

const MARK: &str = "› ";
/// Maximum number of lines in the history.
const HISTORY: usize = 1000;

/// A person's input at the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// The person sent a line.
    Line(String),
    /// The person asked to stop the run.
    Stop,
    /// The person quits.
    Leave,
}

/// The prompt.
pub(super) struct LinePrompt {
    ask: mpsc::Sender<String>,
    typed: mpsc::Receiver<Typed>,
    printer: Box<dyn ExternalPrinter + Send>,
    busy: Arc<AtomicBool>,
    open: bool,
}

impl LinePrompt {
    /// Creates a closed prompt. Lines are saved in `history`, if given.
    pub(super) fn new(
        commands: Vec<CommandEntry>,
        paint: Paint,
        history: Option<PathBuf>,
    ) -> rustyline::Result<Self> {
        let (ask, requests) = mpsc::channel(1);
        let (tell, typed) = mpsc::channel(4);
        let busy = Arc::new(AtomicBool::new(false));
        let mut editor = editor(CommandCompleter { commands, paint }, history.as_deref())?;
        let stop = Stop { busy: busy.clone(), tell: tell.clone() };
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(stop)));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let printer = Box::new(editor.create_external_printer()?);
        // The task ends with its channel. An unfinished line ends with the process.
        tokio::task::spawn_blocking(move || read(editor, requests, &tell, history.as_deref()));
        Ok(Self { ask, typed, printer, busy, open: false })
    }

    /// Opens the prompt with `text` as the beginning of the line.
    pub(super) fn open(&mut self, text: String) {
        self.open = self.open || self.ask.try_send(text).is_ok();
    }

    /// Returns whether the prompt is open.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Sets whether Ctrl-C stops a run.
    pub(super) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// Waits for the next input of the person. Cancel-safe.
    pub(super) async fn next(&mut self) -> Typed {
        let typed = self.typed.recv().await.unwrap_or(Typed::Leave);
        self.open = self.open && typed == Typed::Stop;
        typed
    }

    /// Prints lines above the prompt.
    pub(super) fn print(&mut self, lines: &[String]) -> rustyline::Result<()> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if text.is_empty() { Ok(()) } else { self.printer.print(text) }
    }
}

fn editor(
    words: CommandCompleter,
    history: Option<&Path>,
) -> rustyline::Result<Editor<CommandCompleter, DefaultHistory>> {
    let color = if words.paint.is_on() { ColorMode::Enabled } else { ColorMode::Disabled };
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_dups(true)?
        .completion_type(CompletionType::List)
        .color_mode(color)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(words));
    if let Some(path) = history {
        // At the first start, there is no history.
        editor.load_history(path).ok();
    }
    Ok(editor)
}

/// Reads a line for each request, until the channel closes.
fn read<H: History>(
    mut editor: Editor<CommandCompleter, H>,
    mut asked: mpsc::Receiver<String>,
    tell: &mpsc::Sender<Typed>,
    history: Option<&Path>,
) {
    while let Some(text) = asked.blocking_recv() {
        let typed = match editor.readline_with_initial(MARK, (&text, "")) {
            Ok(line) => {
                remember(&mut editor, &line, history);
                Typed::Line(whole(&line))
            }
            Err(ReadlineError::Interrupted) => Typed::Line(String::new()),
            Err(_) => Typed::Leave,
        };
        if tell.blocking_send(typed).is_err() {
            return;
        }
    }
}

/// Adds a line to the history, unless it is blank or may contain a secret.
fn remember<H: History>(editor: &mut Editor<CommandCompleter, H>, line: &str, history: Option<&Path>) {
    if line.trim().is_empty() || line.trim_start().starts_with("/secret") {
        return;
    }
    let added = editor.add_history_entry(line).unwrap_or(false);
    if let Some(path) = history.filter(|_| added)
        && let Err(error) = editor.append_history(path)
    {
        tracing::warn!(%error, "failed to write history");
    }
}

/// Handler of Ctrl-C.
struct Stop {
    busy: Arc<AtomicBool>,
    tell: mpsc::Sender<Typed>,
}

impl ConditionalEventHandler for Stop {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        if self.busy.load(Ordering::Relaxed) {
            // If the channel is full, it already contains the request to stop.
            self.tell.try_send(Typed::Stop).ok();
            return Some(Cmd::Noop);
        }
        Some(Cmd::Kill(Movement::WholeBuffer))
    }
}

/// Completes and describes slash commands.
struct CommandCompleter {
    commands: Vec<CommandEntry>,
    paint: Paint,
}

impl CommandCompleter {
    /// Returns the commands whose names begin with the line.
    fn fitting<'a>(&'a self, line: &'a str) -> impl Iterator<Item = &'a CommandEntry> {
        let name = line.strip_prefix('/');
        self.commands.iter().filter(move |entry| name.is_some_and(|name| entry.name.starts_with(name)))
    }

    fn suggestion(&self, line: &str) -> Option<Suggestion> {
        if line == "/" {
            return Some(Suggestion { shown: "  Tab lists the commands".to_owned(), rest: 0 });
        }
        let entry = self.fitting(line).next()?;
        let rest = entry.name.get(line.len() - 1..)?;
        let argument = if entry.argument.is_empty() { String::new() } else { format!(" {}", entry.argument) };
        Some(Suggestion { shown: format!("{rest}{argument}  {}", entry.help), rest: rest.len() })
    }
}

/// A hint: its text, and the length of the part that would be typed.
struct Suggestion {
    shown: String,
    rest: usize,
}

impl Hint for Suggestion {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        self.shown.get(..self.rest).filter(|rest| !rest.is_empty())
    }
}

impl Hinter for CommandCompleter {
    type Hint = Suggestion;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Suggestion> {
        if pos < line.len() { None } else { self.suggestion(line) }
    }
}

impl Completer for CommandCompleter {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let space = |entry: &CommandEntry| if entry.argument.is_empty() { "" } else { " " };
        let pair = |entry: &CommandEntry| Pair {
            display: format!("/{}{}{}", entry.name, space(entry), entry.argument),
            replacement: format!("/{}{}", entry.name, space(entry)),
        };
        Ok((0, self.fitting(line.get(..pos).unwrap_or_default()).map(pair).collect()))
    }
}

impl Highlighter for CommandCompleter {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(self.paint.text(TextLook::BOLD.with(TextLook::CODE), prompt))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.paint.text(TextLook::DIM, hint))
    }
}

impl Validator for CommandCompleter {
    /// Continues a line that ends with a backslash in the next one.
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_continued(line.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

fn is_continued(text: &str) -> bool {
    let backslashes = text.chars().rev().take_while(|c| *c == '\\').count();
    backslashes % 2 == 1
}

/// Removes the backslashes at the ends of continued lines.
fn whole(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let last = lines.len() - 1;
    let line = |(at, line): (usize, &&str)| match at < last && is_continued(line) {
        true => line.strip_suffix('\\').unwrap_or(line).to_owned(),
        false => (*line).to_owned(),
    };
    lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

impl Helper for CommandCompleter {}

#[cfg(test)]
mod tests {
    use super::*;

    fn completer() -> CommandCompleter {
        let entry = |name: &str, argument: &str| CommandEntry {
            name: name.into(),
            argument: argument.into(),
            help: format!("About {name}"),
        };
        CommandCompleter {
            commands: vec![entry("new", ""), entry("models", "[name]")],
            paint: Paint::new(Some("1")),
        }
    }

    #[test]
    fn a_slash_is_explained_and_completed() {
        let completer = completer();
        let check = |line: &str, shown: Option<&str>, typed: Option<&str>| {
            let hint = completer.suggestion(line);
            let typed_by_hint = hint.as_ref().and_then(|hint| hint.completion());
            assert_eq!((hint.as_ref().map(|hint| hint.display()), typed_by_hint), (shown, typed), "{line:?}");
        };
        check("/", Some("  Tab lists the commands"), None);
        check("/mo", Some("dels [name]  About models"), Some("dels"));
        check("/new", Some("  About new"), None);
        check("/x", None, None);
        check("hello", None, None);
        check("", None, None);
        check("/models a", None, None);
    }

    #[test]
    fn tab_offers_what_fits() {
        let completer = completer();
        let check = |line: &str, expect: &[&str]| {
            let history = DefaultHistory::new();
            let (at, pairs) = completer.complete(line, line.len(), &Context::new(&history)).unwrap();
            let offered: Vec<&str> = pairs.iter().map(|pair| pair.replacement.as_str()).collect();
            assert_eq!((at, offered.as_slice()), (0, expect), "{line:?}");
        };
        check("/", &["/new", "/models "]);
        check("/m", &["/models "]);
        check("m", &[]);
    }
}
