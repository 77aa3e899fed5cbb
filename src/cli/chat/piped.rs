//! The chat for programs: one message is said, and its answer goes out as it was written. What others said before and
//! how it is answered is not heard: a program takes the first answer for its own. What failed goes to standard error
//! instead, and is told by the exit code. A program presses no buttons: what waits for a decision is told there too,
//! for a person to decide elsewhere. Ctrl-C stops the answer where it is made, and not this program alone; so do a
//! terminal that closes and `kill`.

use super::{
    ChatEnd, DOUBT,
    post::{PendingPosts, PostReport},
    talk::{ChatTranscript, STOP},
    wire::{Act, ChatNews, ChatWire},
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

/// Said of what a program cannot decide.
const WAITS: &str = "This waits for a person, who can decide it with `pudu chat` (and the same --name) at a terminal \
                     while a daemon runs. It is denied if nobody does in time.";
/// A daemon that was told to stop has stopped within this time.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends a message and writes the answers.
pub(super) async fn run(wire: Arc<dyn ChatWire>, text: String, mut out: impl Write) -> Result<ChatEnd> {
    let mut ends = EndSignals::new()?;
    let mut pipe = Pipe {
        news: wire.follow(),
        post: PendingPosts::new(wire.clone()),
        talk: ChatTranscript::default(),
        wire,
        lost: false,
        taken: false,
        told: Vec::new(),
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
    for PipedAnswer { text, failed } in answers {
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

/// Returns whether whoever started this program wants it to outlive the terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// An answer as it goes out.
struct PipedAnswer {
    text: String,
    failed: bool,
}

struct Pipe {
    wire: Arc<dyn ChatWire>,
    news: futures_util::stream::BoxStream<'static, ChatNews>,
    post: PendingPosts,
    talk: ChatTranscript,
    lost: bool,
    /// Whether what was said is kept.
    taken: bool,
    /// The choices of the decision that was told last.
    told: Vec<Choice>,
}

impl Pipe {
    /// Waits until it is known what was said before.
    async fn begin(&mut self) -> Result<()> {
        while !self.talk.has_begun() {
            let news = self.news.next().await;
            self.hear(news)?;
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
        self.talk.said();
        let answers = self.listen().await?;
        if answers.is_empty() {
            eprintln!("nothing was answered to this alone: it became part of what was at work already");
        }
        Ok(answers)
    }

    /// Stops what answers, as the button below it does; tells whether nothing is at work any more.
    async fn stop(&mut self) -> bool {
        if !self.talk.busy() {
            return true;
        }
        // Where nothing grows yet there is no button, and the word does the same.
        let act = match self.talk.open().last() {
            Some(line) => Act::Press { line: line.id.clone(), action: STOP.to_owned() },
            None => Act::Say(STOP.to_owned()),
        };
        self.post.take(act).is_ok()
            && matches!(tokio::time::timeout(STOP_TIMEOUT, self.listen()).await, Ok(Ok(_)))
    }

    /// Listens until nothing is awaited any more.
    async fn listen(&mut self) -> Result<Vec<PipedAnswer>> {
        let mut answers = Vec::new();
        while self.talk.busy() {
            tokio::select! {
                news = self.news.next() => answers.extend(self.hear(news)?),
                report = self.post.next() => match report {
                    PostReport::Taken => self.taken = true,
                    PostReport::Delayed(reason) => eprintln!("{reason}; trying again…"),
                    PostReport::Refused(_, reason) => bail!("not sent: {reason}"),
                },
                () = tokio::time::sleep(DOUBT), if self.taken && self.talk.in_doubt() => self.talk.settle(),
            }
            self.tell_decision();
        }
        Ok(answers)
    }

    /// Prints, once, the question that waits for a decision.
    fn tell_decision(&mut self) {
        let Some((line, choices)) = self.talk.decision() else { return };
        if choices != self.told {
            // From its sign on, all of it: what is asked may have paragraphs.
            let question = line.text.find('🔐').and_then(|at| line.text.get(at..)).unwrap_or(&line.text);
            eprintln!("{question}\n{WAITS}");
            self.told = choices;
        }
    }

    fn hear(&mut self, news: Option<ChatNews>) -> Result<Vec<PipedAnswer>> {
        match news {
            Some(ChatNews::Change(change)) => {
                self.lost = false;
                Ok(self.talk.hear(change).iter().map(|line| self.written(line)).collect())
            }
            Some(ChatNews::Lost) => {
                if !std::mem::replace(&mut self.lost, true) {
                    eprintln!("pudu cannot be reached; trying again…");
                }
                Ok(Vec::new())
            }
            Some(ChatNews::Refused(reason)) => bail!(reason),
            None => bail!("the chat has ended"),
        }
    }

    /// Writes an answer and where its files are.
    fn written(&self, line: &pudu_dispatch::local::TranscriptLine) -> PipedAnswer {
        let place = |(index, name): (usize, &String)| {
            format!("\n{name}: {}", self.wire.file(&line.id, index).unwrap_or_default())
        };
        let files: String = line.files.iter().enumerate().map(place).collect();
        PipedAnswer { text: format!("{}{files}", line.text), failed: line.failed }
    }
}
