//! The chat for programs: it sends one message and prints the answer without styles. Earlier messages and their answers
//! are ignored, because a program takes the first answer for its own. Failures go to standard error and set the exit
//! code. A program presses no buttons, so a pending decision is also printed there, for a person to decide elsewhere.
//! Ctrl-C, a terminal that closes and `kill` stop the run in the daemon, not only this program.

use super::{
    ChatEnd,
    post::{PendingPosts, PostReport},
    talk::{ChatTranscript, STOP},
    wire::{Act, ChatNews, ChatWire, LineFile, TranscriptLine},
};
use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use pudu_channels::Choice;
use std::{
    io::{self, ErrorKind, Write},
    sync::Arc,
    time::Duration,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Notice below a question that a program cannot decide.
const WAITS: &str = "This waits for a person, who can decide it with `pudu chat` (and the same --name) at a terminal \
                     while a daemon runs. It is denied if nobody does in time.";
/// Timeout for the daemon to stop a run.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a message and writes the answers.
pub(super) async fn run(wire: Arc<dyn ChatWire>, text: String, mut out: impl Write) -> Result<ChatEnd> {
    let mut ends = EndSignals::new()?;
    let mut pipe = Pipe {
        news: wire.follow(),
        post: PendingPosts::new(wire),
        talk: ChatTranscript::default(),
        lost: false,
        printed: Vec::new(),
    };
    let answers = tokio::select! {
        answers = pipe.say(text) => answers?,
        number = ends.next() => {
            let stopped = tokio::select! {
                stopped = pipe.stop() => stopped,
                _ = ends.next() => false,
            };
            let told = if stopped { "Stopped." } else { "Not stopped: pudu could not be told, and may go on." };
            // The terminal may be gone.
            writeln!(io::stderr(), "{told}").ok();
            return Ok(ChatEnd::Stopped(number));
        }
    };
    let (mut first, mut ended) = (true, ChatEnd::Well);
    for PipedAnswer { text, failed } in answers.into_iter().filter(|answer| !answer.text.is_empty()) {
        if failed {
            ended = ChatEnd::Failed;
            eprintln!("{text}");
            continue;
        }
        let gap = if std::mem::take(&mut first) { "" } else { "\n" };
        match writeln!(out, "{gap}{text}").and_then(|()| out.flush()) {
            // A reader that has gone wants no more.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            written => written.context("cannot write to standard output")?,
        }
    }
    Ok(ended)
}

/// Signals that end this program.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None under `nohup`.
    hangup: Option<Signal>,
}

impl EndSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one and returns its number.
    async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(()) = async { self.hangup.as_mut()?.recv().await } => SignalKind::hangup(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}

/// Returns whether this program was started to outlive the terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// An answer to print.
struct PipedAnswer {
    text: String,
    failed: bool,
}

struct Pipe {
    news: futures_util::stream::BoxStream<'static, ChatNews>,
    post: PendingPosts,
    talk: ChatTranscript,
    lost: bool,
    /// The choices of the decision that was printed last.
    printed: Vec<Choice>,
}

impl Pipe {
    /// Waits for the earlier messages.
    async fn begin(&mut self) -> Result<()> {
        while !self.talk.has_begun() {
            let news = self.news.next().await;
            self.on_news(news)?;
        }
        self.talk.set_apart();
        Ok(())
    }

    /// Sends a message and returns the answers.
    async fn say(&mut self, text: String) -> Result<Vec<PipedAnswer>> {
        self.begin().await?;
        if self.post.take(Act::Say(text)).is_err() {
            bail!("too much waits to be sent");
        }
        self.talk.expect_answer();
        self.listen().await
    }

    /// Stops the run, as its button does; returns whether nothing is running any more.
    async fn stop(&mut self) -> bool {
        if !self.talk.busy() {
            return true;
        }
        self.post.take(Act::Choose(STOP.to_owned())).is_ok()
            && matches!(tokio::time::timeout(STOP_TIMEOUT, self.listen()).await, Ok(Ok(_)))
    }

    /// Collects the answers until none is awaited any more.
    async fn listen(&mut self) -> Result<Vec<PipedAnswer>> {
        let mut answers = Vec::new();
        while self.talk.busy() {
            tokio::select! {
                news = self.news.next() => answers.extend(self.on_news(news)?),
                report = self.post.next() => match report {
                    PostReport::Taken => {}
                    PostReport::Delayed(reason) => eprintln!("{reason}; trying again…"),
                    PostReport::Refused(_, reason) => bail!("not sent: {reason}"),
                },
            }
            self.print_decision();
        }
        Ok(answers)
    }

    /// Prints, once, the question that waits for a decision.
    fn print_decision(&mut self) {
        let Some((line, choices)) = self.talk.decision() else { return };
        if choices != self.printed {
            // The whole question from its sign on, because it may have paragraphs.
            let question = line.text.find('🔐').and_then(|at| line.text.get(at..)).unwrap_or(&line.text);
            eprintln!("{question}\n{WAITS}");
            self.printed = choices;
        }
    }

    fn on_news(&mut self, news: Option<ChatNews>) -> Result<Option<PipedAnswer>> {
        match news {
            Some(ChatNews::Begun(lines)) => {
                self.lost = false;
                self.talk.begin(lines);
                Ok(None)
            }
            Some(ChatNews::Line(line)) => {
                self.lost = false;
                Ok(self.talk.take(line).map(|line| written(&line)))
            }
            Some(ChatNews::Lost) => {
                if !std::mem::replace(&mut self.lost, true) {
                    eprintln!("pudu cannot be reached; trying again…");
                }
                Ok(None)
            }
            Some(ChatNews::Refused(reason)) => bail!(reason),
            None => bail!("the chat has ended"),
        }
    }
}

/// Returns an answer with the places of its files.
fn written(line: &TranscriptLine) -> PipedAnswer {
    let place = |file: &LineFile| format!("\n{}: {}", file.name, file.place);
    let files: String = line.files.iter().map(place).collect();
    PipedAnswer { text: format!("{}{files}", line.text), failed: line.failed }
}
