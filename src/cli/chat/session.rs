//! The chat for a person at a terminal.
//!
//! There are two modes. *Watching*: an answer grows above a status line, and keys are not read. *Typing*: the prompt is
//! open, and complete parts of an answer are printed above it. The first key typed while watching opens the prompt and
//! becomes its first letter; sending returns to watching.

use super::{
    diff,
    flow::Flow,
    markdown::{self, Layout},
    paint::{Paint, TextLook, tame},
    post::{PendingPosts, PostReport},
    prompt::{LinePrompt, Typed},
    screen::Screen,
    talk::{ChatTranscript, STOP},
    terminal::{self, NoEcho},
    wire::{Act, ChatNews, ChatWire, LineSpeaker, TranscriptLine},
};
use anyhow::{Result, bail};
use futures_util::StreamExt;
use pudu_channels::Choice;
use pudu_texts::Language;
use std::{
    io::{self, Stdout},
    sync::Arc,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::MissedTickBehavior,
};

/// Interval at which the status line is redrawn and keys are checked.
const FRAME: Duration = Duration::from_millis(80);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Maximum width of text, in columns: longer lines are hard to read.
const MAX_WIDTH: usize = 100;
/// Maximum number of earlier lines shown at the start.
const PAST: usize = 12;

/// The session of a person at a terminal.
pub(super) struct TerminalSession {
    wire: Arc<dyn ChatWire>,
    post: PendingPosts,
    talk: ChatTranscript,
    flow: Flow,
    screen: Screen<Stdout>,
    prompt: LinePrompt,
    paint: Paint,
    /// Hides typed keys while watching.
    watching: Option<NoEcho>,
    frame: usize,
    /// Text with which the next prompt begins.
    draft: String,
    /// The choices below the newest answer.
    choices: Vec<Choice>,
    /// The choices of the last decision that was printed permanently.
    offered: Vec<Choice>,
    /// The last printed step of the work.
    step: Option<String>,
    lost: bool,
}

impl TerminalSession {
    pub(super) fn new(wire: Arc<dyn ChatWire>, prompt: LinePrompt, paint: Paint) -> Self {
        Self {
            post: PendingPosts::new(wire.clone()),
            wire,
            talk: ChatTranscript::default(),
            flow: Flow::default(),
            screen: Screen::new(io::stdout()),
            prompt,
            paint,
            watching: None,
            frame: 0,
            draft: String::new(),
            choices: Vec::new(),
            offered: Vec::new(),
            step: None,
            lost: false,
        }
    }

    /// Chats until the person quits.
    pub(super) async fn run(mut self, greeting: &str) -> Result<()> {
        self.print(&[self.paint.text(TextLook::DIM, greeting), String::new()])?;
        let mut news = self.wire.follow();
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = signal(SignalKind::hangup())?;
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            self.settle()?;
            tokio::select! {
                Some(news) = news.next() => self.news(news)?,
                report = self.post.next() => self.report(report)?,
                typed = self.prompt.next(), if self.prompt.is_open() => match typed {
                    Typed::Leave => break,
                    Typed::Stop => self.stop(),
                    Typed::Line(line) if matches!(line.trim(), "/quit" | "/exit") => break,
                    Typed::Line(line) => self.line(&line)?,
                },
                _ = frames.tick(), if self.watching.is_some() => match terminal::has_pending_input() {
                    true => self.type_now()?,
                    false => self.draw()?,
                },
                _ = interrupt.recv() => self.stop(),
                _ = terminate.recv() => break,
                _ = hangup.recv() => break,
            }
        }
        self.screen.leave()?;
        Ok(())
    }

    /// Enters the mode for the current state.
    fn settle(&mut self) -> Result<()> {
        let busy = self.talk.busy();
        self.prompt.set_busy(busy);
        if busy && !self.prompt.is_open() && self.watching.is_none() {
            self.watching = Some(NoEcho::new()?);
            self.draw()?;
        }
        if !busy && !self.prompt.is_open() && self.talk.has_begun() {
            self.type_now()?;
        }
        Ok(())
    }

    /// Opens the prompt.
    fn type_now(&mut self) -> Result<()> {
        self.screen.clear()?;
        self.watching = None;
        self.offer()?;
        self.prompt.open(std::mem::take(&mut self.draft));
        Ok(())
    }

    fn news(&mut self, news: ChatNews) -> Result<()> {
        match news {
            ChatNews::Refused(reason) => bail!(reason),
            ChatNews::Lost if self.lost => Ok(()),
            ChatNews::Lost => {
                self.lost = true;
                self.note(TextLook::WARN, "pudu cannot be reached; retrying…")
            }
            ChatNews::Begun(lines) => {
                self.connected()?;
                self.past(&lines)?;
                self.talk.begin(lines);
                self.grow()
            }
            ChatNews::Line(line) => {
                self.connected()?;
                if let Some(title) = &line.title {
                    self.screen.entitle(&tame(title))?;
                }
                if let Some(line) = self.talk.take(line) {
                    self.finish(&line)?;
                }
                self.grow()
            }
        }
    }

    /// Records that the daemon is reachable again.
    fn connected(&mut self) -> Result<()> {
        match std::mem::take(&mut self.lost) {
            true => self.note(TextLook::DIM, "connected again"),
            false => Ok(()),
        }
    }

    /// Prints the complete parts of growing answers.
    fn grow(&mut self) -> Result<()> {
        for line in self.talk.open().to_vec() {
            let step = self.flow.step(&line);
            self.markdown(&step.print)?;
            self.show_step(&line)?;
        }
        if self.prompt.is_open() { self.offer() } else { Ok(()) }
    }

    /// Prints a step of the work once, when it begins.
    fn show_step(&mut self, line: &TranscriptLine) -> Result<()> {
        let Some(step) = line.activity.as_ref().filter(|activity| is_step(activity)) else { return Ok(()) };
        if self.step.as_ref() == Some(step) {
            return Ok(());
        }
        self.step = Some(step.clone());
        self.note(TextLook::DIM, step)
    }

    /// Prints a pending decision permanently, because the next line may decide it.
    fn offer(&mut self) -> Result<()> {
        let Some((line, choices)) = self.talk.decision() else { return Ok(()) };
        if choices == self.offered {
            return Ok(());
        }
        let question = self.flow.step(line).tail;
        let numbered = self.numbered(&choices);
        self.offered = choices;
        self.markdown(&question)?;
        self.print(&numbered)
    }

    /// Formats choices with their numbers.
    fn numbered(&self, choices: &[Choice]) -> Vec<String> {
        let one = |(index, choice): (usize, &Choice)| {
            format!(
                "{} {}",
                self.paint.text(TextLook::CODE, &format!("[{}]", index + 1)),
                tame(&choice.label)
            )
        };
        choices.iter().enumerate().map(one).collect()
    }

    /// Shows the end of the earlier conversation.
    fn past(&mut self, lines: &[TranscriptLine]) -> Result<()> {
        if let Some(title) = lines.iter().rev().find_map(|line| line.title.as_deref()) {
            self.screen.entitle(&tame(title))?;
        }
        let Some(asked) = lines.iter().rposition(|line| line.from == LineSpeaker::You) else { return Ok(()) };
        let mut shown = Vec::new();
        for line in lines.iter().skip(asked).filter(|line| line.done) {
            let mark = if line.from == LineSpeaker::You { "› " } else { "" };
            let layout = Layout { paint: Paint::new(Some("1")), ..self.layout() };
            shown.extend(markdown::lines(&format!("{mark}{}", line.text), layout));
            shown.push(String::new());
        }
        if shown.len() > PAST {
            shown.truncate(PAST);
            shown.extend(["…".to_owned(), String::new()]);
        }
        let shown: Vec<String> = shown.iter().map(|line| self.paint.text(TextLook::DIM, line)).collect();
        self.print(&shown)
    }

    /// Prints the remaining part of an answer, its files and its choices.
    fn finish(&mut self, line: &TranscriptLine) -> Result<()> {
        self.step = None;
        let step = self.flow.step(line);
        self.markdown(&step.print)?;
        let mut extras = diff::lines(&line.diff, self.paint);
        for file in &line.files {
            let location = self.paint.text(TextLook::DIM, &tame(&file.place));
            extras.push(format!("{}  {location}", tame(&file.name)));
        }
        extras.extend(self.numbered(&line.choices));
        if !extras.is_empty() {
            extras.push(String::new());
        }
        self.choices = line.choices.clone();
        self.print(&extras)
    }

    fn report(&mut self, report: PostReport) -> Result<()> {
        match report {
            PostReport::Taken => Ok(()),
            PostReport::Delayed(reason) => {
                self.note(TextLook::WARN, &format!("not sent yet: {reason}; retrying…"))
            }
            PostReport::Refused(act, reason) => {
                self.talk.cancel_answer();
                self.note(TextLook::WARN, &format!("not sent: {reason}"))?;
                if let Act::Say(text) = act {
                    self.draft = text;
                }
                Ok(())
            }
        }
    }

    /// Handles a typed line: the number of a choice, or a message.
    fn line(&mut self, text: &str) -> Result<()> {
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        let below = std::mem::take(&mut self.choices);
        let deciding = self.talk.decision().map(|(_, choices)| choices);
        let decides = deciding.is_some();
        let choices = deciding.unwrap_or(below);
        let number =
            text.parse::<usize>().ok().and_then(|number| choices.into_iter().nth(number.checked_sub(1)?));
        // A decision has no answer of its own: its run continues.
        if !decides || number.is_none() {
            self.talk.expect_answer();
        }
        let act = match number {
            Some(choice) => Act::Choose(choice.action),
            None => Act::Say(text.to_owned()),
        };
        self.print(&[String::new()])?;
        if let Err(Act::Say(text)) = self.post.take(act) {
            self.draft = text;
            self.note(TextLook::WARN, "not sent: too many messages are waiting to be sent")?;
        }
        Ok(())
    }

    /// Stops the run, like its button.
    fn stop(&mut self) {
        if self.talk.busy() {
            // If the queue is full, the daemon is unreachable anyway.
            self.post.take(Act::Choose(STOP.to_owned())).ok();
        }
    }

    fn layout(&self) -> Layout {
        Layout { width: terminal::size().0.min(MAX_WIDTH), paint: self.paint }
    }

    fn markdown(&mut self, text: &str) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let mut lines = markdown::lines(text, self.layout());
        lines.push(String::new());
        self.print(&lines)
    }

    fn note(&mut self, look: TextLook, text: &str) -> Result<()> {
        let line = self.paint.text(look, &format!("· {}", tame(text)));
        self.print(&[line, String::new()])
    }

    /// Prints lines permanently, above the prompt or the changing lines.
    fn print(&mut self, lines: &[String]) -> Result<()> {
        if self.prompt.is_open() {
            return Ok(self.prompt.print(lines)?);
        }
        self.screen.print(lines)?;
        if self.watching.is_some() { self.draw() } else { Ok(()) }
    }

    /// Draws the changing lines: the unfinished part of the answer and the agent's activity.
    fn draw(&mut self) -> Result<()> {
        self.frame += 1;
        let mut lines = Vec::new();
        let open = self.talk.open().first().cloned();
        if let Some(line) = &open {
            let tail = self.flow.step(line).tail;
            if !tail.trim().is_empty() {
                lines.extend(markdown::lines(&tail, self.layout()));
                lines.push(String::new());
            }
        }
        if let Some((_, choices)) = self.talk.decision() {
            lines.extend(self.numbered(&choices));
        }
        lines.push(self.status(open.as_ref()));
        Ok(self.screen.draw(&lines, terminal::size())?)
    }

    fn status(&self, open: Option<&TranscriptLine>) -> String {
        let frame = FRAMES.get(self.frame % FRAMES.len()).copied().unwrap_or_default();
        let doing = match open {
            Some(TranscriptLine { activity: Some(activity), .. }) => tame(activity),
            Some(_) => String::new(),
            None => "Thinking…".to_owned(),
        };
        let hint = match self.talk.decision() {
            Some(_) => "enter a number to decide, Ctrl-C stops",
            None => "Ctrl-C stops",
        };
        let hint = self.paint.text(TextLook::DIM, hint);
        let gap = if doing.is_empty() { "" } else { "  " };
        format!("{} {doing}{gap}{hint}", self.paint.text(TextLook::CODE, frame))
    }
}

/// Returns whether an activity is work: a tool, a retry or a summary.
fn is_step(activity: &str) -> bool {
    let idle = |language: Language| {
        [language.thinking(), language.waiting_for_decision(), language.working_on()].contains(&activity)
    };
    !activity.trim().is_empty() && !Language::ALL.into_iter().any(idle)
}
