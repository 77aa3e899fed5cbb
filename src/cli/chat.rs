//! `pudu chat`: a chat in the terminal, with a daemon that runs or, where none does, with one in this process.
//!
//! A person gets a prompt and answers that grow (`session.rs`). The command line, files and a pipe make one
//! message (`message.rs`), whose answer is printed without styles (`piped.rs`).

mod api;
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
mod thread;
mod wire;
mod wrap;

use anyhow::{Context, Result, bail};
use api::Api;
use paint::Paint;
use prompt::LinePrompt;
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::{Daemon, Scope, logging};
use pudu_gateway::token;
use pudu_kit::home;
use pudu_texts::Language;
use secrecy::SecretString;
use session::TerminalSession;
use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use thread::ThreadChat;
use wire::{ChatWire, CommandEntry};

/// A daemon on this machine answers within this time, one elsewhere within the longer one.
const NEAR: Duration = Duration::from_millis(500);
const FAR: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// The daemon to talk to; without it the configured address is tried, then one in this process is used.
    #[arg(long)]
    url: Option<String>,
    /// The daemon's token; without it that of the configuration is used.
    #[arg(long, env = "PUDU_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The conversation.
    #[arg(long, default_value = "terminal", value_parser = name)]
    name: String,
    /// Add this text file to the message, after the question; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Message to send, followed by the input of a pipe or a file; without either there is a prompt.
    question: Vec<String>,
}

fn name(text: &str) -> Result<String, &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let good = (1..=64).contains(&text.len()) && text.chars().all(plain);
    good.then(|| text.to_owned()).ok_or("1 to 64 of A-Z a-z 0-9 _ -")
}

/// Chats until the person leaves or the input ends.
pub(super) fn chat(start: Start, args: Args) -> ExitCode {
    let loaded = match args.url {
        Some(_) => None,
        None => match super::run::load(&start) {
            Ok(loaded) => Some(loaded),
            Err(code) => return code,
        },
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
    /// There was nothing to say.
    Unsaid,
    /// By Ctrl-C, or another signal of this number.
    Stopped(u8),
}

impl From<ChatEnd> for ExitCode {
    fn from(ended: ChatEnd) -> Self {
        match ended {
            ChatEnd::Well => Self::SUCCESS,
            ChatEnd::Failed => Self::FAILURE,
            ChatEnd::Unsaid => Self::from(2),
            // The status that shells give a program that was ended by a signal.
            ChatEnd::Stopped(signal) => Self::from(128 + signal),
        }
    }
}

/// Chats and returns the end.
async fn hot(start: Start, loaded: Option<LoadedConfig>, args: Args) -> Result<ChatEnd> {
    let mut manner = Manner::new(&start);
    // Input that cannot be read ends the program before anything is started or sent.
    if !args.question.is_empty() || !args.file.is_empty() || !manner.person {
        let text = message::compose(&args.question, &args.file, io::stdin())?;
        if text.trim().is_empty() {
            eprintln!(
                "error: there is nothing to say: give a question, a file with -f, or text through a pipe"
            );
            return Ok(ChatEnd::Unsaid);
        }
        manner.says = Some(text);
    }
    let token = args.token.map(SecretString::from);
    let Some(loaded) = loaded else {
        let url = args.url.unwrap_or_default();
        super::remote::address(&url)?;
        let api = Api::new(&url, token, person_language(&start))?;
        if !api.answers(FAR).await {
            bail!("no pudu answers at {url}");
        }
        let chat = ThreadChat::new(api, &args.name, None);
        return talk(Arc::new(chat), manner, &format!("pudu at {url}")).await;
    };
    let fixed = &loaded.config.fixed;
    if let Some(url) = home::running_url(&fixed.home).or_else(|| fixed.gateway.url()) {
        let token = token.or_else(|| fixed.gateway.token.clone()).or_else(|| token::found(&fixed.home));
        let api = Api::new(&url, token, person_language(&start))?;
        if api.answers(NEAR).await {
            let chat = ThreadChat::new(api, &args.name, None);
            return talk(Arc::new(chat), manner, &format!("pudu at {url}")).await;
        }
    }
    Box::pin(inside(start, loaded, args.name, manner)).await
}

/// Chats with a daemon in this process. Its log goes to a file: here it would garble the talk.
async fn inside(start: Start, loaded: LoadedConfig, chat: String, manner: Manner) -> Result<ChatEnd> {
    logging::start_in_file(&loaded.config, start.env.get("RUST_LOG"), &start.home().join("chat.log"))
        .context("the log cannot be written")?;
    let (language, home) = (person_language(&start), loaded.config.fixed.home.clone());
    let chosen = loaded.config.fixed.gateway.token.clone();
    let (daemon, greeting) = Daemon::start(start, loaded, Scope::Local).await?;
    let token = chosen.or_else(|| token::found(&home));
    let api = Api::new(&format!("http://{}", greeting.address), token, language)?;
    let chat = ThreadChat::new(api, &chat, Some(daemon.shared.clone()));
    let talked = talk(Arc::new(chat), manner, &format!("pudu with {}", greeting.model)).await;
    if daemon.shared.client.running() > 0 {
        eprintln!("Finishing what is at work; Ctrl-C leaves it for the next start.");
    }
    let left = tokio::select! {
        left = daemon.drain() => left,
        // The next start resumes unfinished runs.
        _ = tokio::signal::ctrl_c() => daemon.shared.client.running(),
    };
    if left > 0 {
        eprintln!("Not finished: it goes on at the next start of pudu in this folder.");
    }
    talked
}

/// Settings of a chat: whether it is with a person or a program, its styles, and its history.
struct Manner {
    person: bool,
    /// The only message, without a prompt.
    says: Option<String>,
    paint: Paint,
    history: Option<PathBuf>,
}

impl Manner {
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

/// Returns the language of the terminal, where there is a catalogue.
fn person_language(start: &Start) -> Option<Language> {
    let (_, locale) = start.env.first(&["LC_ALL", "LC_MESSAGES", "LANG"])?;
    Language::of_person(locale)
}

async fn talk(wire: Arc<dyn ChatWire>, manner: Manner, about: &str) -> Result<ChatEnd> {
    if let Some(text) = manner.says {
        return piped::run(wire, text, io::stdout()).await;
    }
    let mut commands = wire.commands().await;
    let (name, help) = ("quit".to_owned(), "Leave (Ctrl-D does too)".to_owned());
    commands.push(CommandEntry { name, argument: String::new(), help });
    // A history does not create the folder.
    let history = manner.history.filter(|path| path.parent().is_some_and(std::path::Path::is_dir));
    let _found = terminal::TerminalGuard::now()?;
    let prompt = LinePrompt::new(commands, manner.paint, history)?;
    let greeting = format!(
        "{about}\n/help tells what I understand, a line that ends with \\ goes on in the next one, \
         Ctrl-C stops an answer, Ctrl-D leaves."
    );
    // The person has seen any error.
    TerminalSession::new(wire, prompt, manner.paint).run(&greeting).await.map(|()| ChatEnd::Well)
}

/// Cuts the lines of a list to the width of the terminal; a program gets whole lines.
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
