//! The chat for programs: sends one message and prints the answer without styles. Earlier messages and their answers
//! are ignored, because a program expects the first answer to be its own. Failures are written to standard error and
//! set the exit code. Programs cannot decide, so a pending decision is written there as well, for a person to decide
//! elsewhere. Ctrl-C, a closing terminal and `kill` also stop the run in the daemon.

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
const WAITS: &str = "This call waits for approval: run `pudu chat` (with the same --name) in a terminal \
                     while a daemon is running. Without a decision, it is denied after the timeout.";
/// Timeout for the daemon to stop a run.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a message and writes its answers.
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
            let end = if stopped { "Stopped." } else { "Not stopped: pudu cannot be reached; the run may continue." };
            // The terminal may already be closed.
            writeln!(io::stderr(), "{end}").ok();
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
            // The reader has closed the pipe and wants no more output.
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
    /// `None` under `nohup`.
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

    /// Waits for a signal and returns its number.
    async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(()) = async { self.hangup.as_mut()?.recv().await } => SignalKind::hangup(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}

/// Returns whether this program was started to survive the terminal.
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
    /// The choices of the last printed decision.
    printed: Vec<Choice>,
}

impl Pipe {
    /// Waits until the earlier messages are known.
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
            bail!("too many messages are waiting to be sent");
        }
        self.talk.expect_answer();
        self.listen().await
    }

    /// Stops the run, like its button. Returns whether nothing runs any longer.
    async fn stop(&mut self) -> bool {
        if !self.talk.busy() {
            return true;
        }
        self.post.take(Act::Choose(STOP.to_owned())).is_ok()
            && matches!(tokio::time::timeout(STOP_TIMEOUT, self.listen()).await, Ok(Ok(_)))
    }

    /// Collects answers until none is expected.
    async fn listen(&mut self) -> Result<Vec<PipedAnswer>> {
        let mut answers = Vec::new();
        while self.talk.busy() {
            tokio::select! {
                news = self.news.next() => answers.extend(self.on_news(news)?),
                report = self.post.next() => match report {
                    PostReport::Taken => {}
                    PostReport::Delayed(reason) => eprintln!("{reason}; retrying…"),
                    PostReport::Refused(_, reason) => bail!("not sent: {reason}"),
                },
            }
            self.print_decision();
        }
        Ok(answers)
    }

    /// Prints the pending decision, once.
    fn print_decision(&mut self) {
        let Some((line, choices)) = self.talk.decision() else { return };
        if choices != self.printed {
            // Prints everything from the sign on, because the question may have several paragraphs.
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
                    eprintln!("pudu cannot be reached; retrying…");
                }
                Ok(None)
            }
            Some(ChatNews::Refused(reason)) => bail!(reason),
            None => bail!("the chat has ended"),
        }
    }
}

/// Returns an answer with the paths or URLs of its files.
fn written(line: &TranscriptLine) -> PipedAnswer {
    let file_line = |file: &LineFile| format!("\n{}: {}", file.name, file.place);
    let files: String = line.files.iter().map(file_line).collect();
    PipedAnswer { text: format!("{}{files}", line.text), failed: line.failed }
}
