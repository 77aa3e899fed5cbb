//! `pudu chat`: a chat in the terminal, with a running daemon or, if there is none, with one in this process.
//!
//! A person gets a prompt and growing answers (`session.rs`). Arguments, files and piped input form a single message
//! (`message.rs`), whose answer is printed without styles (`piped.rs`).

pub(super) mod api;
mod diff;
mod flow;
mod markdown;
mod message;
mod paint;
mod piped;
mod post;
mod prompt;
mod screen;
mod session;
mod talk;
mod terminal;
pub(super) mod thread;
mod wire;
mod wrap;

use super::place::{DaemonPlace, OwnDaemon, RunningDaemon};
use anyhow::Result;
use paint::Paint;
use prompt::LinePrompt;
use pudu_config::{LoadedConfig, Start};
use session::TerminalSession;
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};
use thread::ThreadChat;
use wire::{ChatWire, CommandEntry};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: DaemonPlace,
    /// Name of the conversation.
    #[arg(long, default_value = "terminal", value_parser = name)]
    name: String,
    /// Add this text file to the message, after the question; - for standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Message to send, followed by piped input; without a message and input, a prompt opens.
    question: Vec<String>,
}

fn name(text: &str) -> Result<String, &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let good = (1..=64).contains(&text.len()) && text.chars().all(plain);
    good.then(|| text.to_owned()).ok_or("1 to 64 of A-Z a-z 0-9 _ -")
}

/// Chats until the person quits or the input ends.
pub(super) fn chat(start: Start, args: Args) -> ExitCode {
    let loaded = match args.place.load(&start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::run::fail(&error.into()),
    };
    let ended = runtime.block_on(hot(start, loaded, args));
    // An open prompt must not keep the process alive.
    runtime.shutdown_background();
    ended.map_or_else(|error| super::run::fail(&error), ExitCode::from)
}

/// End of a chat. Its error has been printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatEnd {
    Well,
    Failed,
    /// The message was empty.
    Unsaid,
    /// Stopped by Ctrl-C, or by another signal with this number.
    Stopped(u8),
}

impl From<ChatEnd> for ExitCode {
    fn from(ended: ChatEnd) -> Self {
        match ended {
            ChatEnd::Well => Self::SUCCESS,
            ChatEnd::Failed => Self::FAILURE,
            ChatEnd::Unsaid => Self::from(2),
            // Exit code that shells report for a program ended by a signal.
            ChatEnd::Stopped(signal) => Self::from(128 + signal),
        }
    }
}

/// Chats, and returns how the chat ended.
async fn hot(start: Start, loaded: Option<LoadedConfig>, args: Args) -> Result<ChatEnd> {
    let mut settings = ChatSettings::new(&start);
    // If the input is unreadable, the program ends before anything is started or sent.
    if !args.question.is_empty() || !args.file.is_empty() || !settings.person {
        let text = message::compose(&args.question, &args.file, io::stdin())?;
        if text.trim().is_empty() {
            eprintln!("error: the message is empty; give a question, a file with -f, or text through a pipe");
            return Ok(ChatEnd::Unsaid);
        }
        settings.says = Some(text);
    }
    match args.place.running(&start, loaded.as_ref()).await? {
        RunningDaemon::At { url, api } => {
            let chat = ThreadChat::new(api, &args.name, None);
            talk(Arc::new(chat), settings, &format!("pudu at {url}")).await
        }
        RunningDaemon::None(loaded) => Box::pin(inside(start, loaded.clone(), args.name, settings)).await,
    }
}

/// Chats with a daemon in this process. Its log goes to a file, because it would garble the terminal.
async fn inside(start: Start, loaded: LoadedConfig, chat: String, settings: ChatSettings) -> Result<ChatEnd> {
    let OwnDaemon { daemon, api, model } = Box::pin(OwnDaemon::start(start, loaded, "chat.log")).await?;
    let chat = ThreadChat::new(api, &chat, Some(daemon.shared.clone()));
    let talked = talk(Arc::new(chat), settings, &format!("pudu with {model}")).await;
    if daemon.shared.runs.running() > 0 {
        eprintln!("Finishing active runs; press Ctrl-C to resume them at the next start instead.");
    }
    let left = tokio::select! {
        left = daemon.drain() => left,
        // The next start resumes unfinished runs.
        _ = tokio::signal::ctrl_c() => daemon.shared.runs.running(),
    };
    if left > 0 {
        eprintln!("Not finished; runs resume at the next start of pudu in this folder.");
    }
    talked
}

/// Settings of a chat: whether it is with a person or a program, its styles, and its history.
struct ChatSettings {
    person: bool,
    /// The only message, if there is no prompt.
    says: Option<String>,
    paint: Paint,
    history: Option<PathBuf>,
}

impl ChatSettings {
    fn new(start: &Start) -> Self {
        let able = start.env.get("TERM").is_some_and(|term| term != "dumb");
        Self {
            person: able && io::stdin().is_terminal() && io::stdout().is_terminal(),
            says: None,
            paint: Paint::new(start.env.get("NO_COLOR")),
            history: Some(start.home().join("chat_history")),
        }
    }
}

async fn talk(wire: Arc<dyn ChatWire>, settings: ChatSettings, about: &str) -> Result<ChatEnd> {
    if let Some(text) = settings.says {
        return piped::run(wire, text, io::stdout()).await;
    }
    let mut commands = wire.commands().await;
    let (name, help) = ("quit".to_owned(), "Leave the chat (also Ctrl-D)".to_owned());
    commands.push(CommandEntry { name, argument: String::new(), help });
    // Saving a history does not create its folder.
    let history = settings.history.filter(|path| path.parent().is_some_and(std::path::Path::is_dir));
    let _found = terminal::TerminalGuard::save()?;
    let prompt = LinePrompt::new(commands, settings.paint, history)?;
    let greeting = format!(
        "{about}\n/help lists the commands, \\ at the end of a line continues it on the next, \
         Ctrl-C stops an answer, Ctrl-D leaves."
    );
    // The person has already seen any error.
    TerminalSession::new(wire, prompt, settings.paint).run(&greeting).await.map(|()| ChatEnd::Well)
}

/// Cuts the lines of a list to the width of the terminal. Programs get whole lines.
pub(super) fn fitted(list: &str) -> String {
    match io::stdout().is_terminal() {
        true => fit(list, terminal::size().0),
        false => list.to_owned(),
    }
}

fn fit(list: &str, columns: usize) -> String {
    let line = |line: &str| match wrap::clip(line, columns) {
        whole if whole == line => format!("{line}\n"),
        _ => format!("{}…\n", wrap::clip(line, columns.saturating_sub(1))),
    };
    list.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_the_terminal() {
        assert_eq!(fit("on  a name  and what it is for\noff 名前名前\n", 10), "on  a nam…\noff 名前…\n");
        assert_eq!(fit("short\n", 10), "short\n");
    }

    #[test]
    fn a_conversation_has_a_plain_name() {
        assert_eq!(name("work-2"), Ok("work-2".to_owned()));
        for bad in ["", "a b", "a/b", "ä"] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
