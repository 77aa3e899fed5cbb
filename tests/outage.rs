//! A platform's API fails for a while, in several ways: before a question, during an answer, at its end, or while its
//! file is sent. Each question has exactly one complete answer and its file soon after the recovery; the next question
//! is answered as quickly.
//!
//! By default a few short outages on each platform. `PUDU_OUTAGE_SWEEP=1` tries all ways for 3, 8, 30 and 120 seconds,
//! several concurrently; `PUDU_OUTAGE_AT_ONCE` is their number.

use crate::{
    house::{House, SOON},
    platforms,
    scene::is_final,
};
use futures_util::{StreamExt, future::join_all, stream};
use pudu_sim::{
    Fault, Hold, Platform,
    model::{Ask, At, Exchange, Reply},
    platform::{Shown, Words},
};
use serde_json::json;
use std::{fmt::Write, ops::RangeInclusive, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// Timeout for a complete answer after the recovery, in a sweep.
const WELL: Duration = Duration::from_secs(10);
/// Timeout for the answer to the next question, which may arrive late and have a stuck file, in a sweep.
const NEXT_WELL: Duration = Duration::from_secs(16);
/// The same on a machine that is busy with other tests.
const BUSY_WELL: Duration = SOON;
const BUSY_NEXT_WELL: Duration = Duration::from_secs(40);
/// Durations of outages, in seconds.
const LASTS: [u64; 4] = [3, 8, 30, 120];

/// Ways in which the API fails.
const WAYS: [Way; 7] = [
    Way { name: "500", fault: Fault::Internal, reads: true },
    Way { name: "502 HTML", fault: Fault::BadGateway, reads: true },
    Way { name: "429", fault: Fault::TooMany(1), reads: true },
    Way { name: "nothing", fault: Fault::Silent, reads: true },
    Way { name: "cut before", fault: Fault::CutBefore, reads: true },
    Way { name: "cut after", fault: Fault::CutAfter, reads: true },
    Way { name: "writes", fault: Fault::Internal, reads: false },
];

struct Way {
    name: &'static str,
    fault: Fault,
    /// Whether read-only calls fail, too.
    reads: bool,
}

impl Way {
    fn begins(&self, platform: &(dyn Platform + 'static)) {
        let writes = [platform.sends(), platform.uploads()].concat();
        for method in if self.reads { vec!["api"] } else { writes } {
            platform.stage().fail_always(method, self.fault.clone());
        }
    }

    /// Returns the allowed copies of a file that was being sent. On Telegram it is unknown whether it arrived: it is
    /// sent at most twice, a minute apart.
    fn bound(&self, platform: &(dyn Platform + 'static)) -> RangeInclusive<usize> {
        match (platform.name(), self.name) {
            ("telegram", "cut after") => 1..=2,
            ("telegram", "writes") => 0..=1,
            _ => 1..=1,
        }
    }
}

const WITHIN: &str = "one two three four five six seven eight nine ten eleven twelve";
const GREEK: &str = "alpha beta gamma delta omega";
const NEXT: &str = "next: whole";

/// Moments of the failure, as seen by one question; the last is the question after the recovery.
const MOMENTS: [&str; 5] = ["before", "within", "at its end", "its file", "next"];

/// Generates a test for each platform.
macro_rules! outage_tests {
    ($($platform:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $platform() {
            sweep(stringify!($platform), async || platforms::$platform().await).await;
        })+
    };
}

outage_tests!(telegram feishu dingtalk slack discord);

/// Returns whether all ways are tried, by hand and without other tests.
fn is_sweep() -> bool {
    std::env::var("PUDU_OUTAGE_SWEEP").is_ok()
}

async fn sweep(name: &str, fresh: impl AsyncFn() -> Arc<dyn Platform>) {
    let lasts = if is_sweep() { LASTS.as_slice() } else { LASTS.get(..1).unwrap_or_default() };
    let all = lasts.iter().flat_map(|lasts| WAYS.iter().map(move |way| (way, *lasts)));
    let at_once = std::env::var("PUDU_OUTAGE_AT_ONCE").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let fresh = &fresh;
    let rows = stream::iter(all).map(|(way, lasts)| async move {
        let told = outage(fresh().await, way, Duration::from_secs(lasts)).await;
        (way.name, lasts, told)
    });
    let rows: Vec<_> = rows.buffer_unordered(at_once).collect().await;
    let mut table = format!("outages on {name}: seconds until each answer was whole\n");
    let mut bad = 0;
    for (way, lasts, told) in &rows {
        write!(table, "{lasts:>4} s {way:<10}").unwrap();
        for (moment, answer) in MOMENTS.iter().zip(told) {
            bad += usize::from(answer.is_err());
            match answer {
                Ok(after) => write!(table, "  {moment} {:>4.1}", after.as_secs_f64()).unwrap(),
                Err(seen) => write!(table, "  {moment} FAILED: {seen}").unwrap(),
            }
        }
        table.push('\n');
    }
    println!("{table}");
    assert_eq!(bad, 0, "{table}");
}

/// A user, a question and its answer.
struct Question {
    chat: String,
    person: String,
    text: &'static str,
    answer: &'static str,
}

impl Question {
    fn ask(
        platform: &(dyn Platform + 'static),
        name: &str,
        text: &'static str,
        answer: &'static str,
    ) -> Self {
        let person = platform.person(name);
        Self { chat: platform.private(&person), person, text, answer }
    }

    fn say(&self, platform: &(dyn Platform + 'static)) {
        let (chat, person, text) = (self.chat.clone(), self.person.clone(), self.text.to_owned());
        platform.write(&Words { chat, person, text, to_bot: true, ..Words::default() });
    }

    /// Waits until a part of its answer or a progress sign is shown; some platforms show nothing before it is complete.
    async fn is_shown(&self, platform: &(dyn Platform + 'static)) {
        let shown =
            |platform: &(dyn Platform + 'static)| (!platform.shown(&self.chat).is_empty()).then_some(());
        platform.wait(&self.chat, Duration::from_secs(3), shown).await.ok();
    }

    fn is_whole(&self, shown: &[Shown]) -> bool {
        shown.iter().any(|shown| is_final(shown) && text(shown) == self.answer)
    }

    /// Waits with a timeout since `well` until its answer is complete; returns the time that it took.
    async fn answered(
        &self,
        platform: &(dyn Platform + 'static),
        well: Instant,
        within: Duration,
    ) -> Result<Duration, String> {
        let whole = platform.wait(&self.chat, within + SOON, |platform| {
            self.is_whole(&platform.shown(&self.chat)).then_some(())
        });
        whole.await.map_err(|_| format!("{:?}", texts(&platform.shown(&self.chat))))?;
        let after = well.elapsed();
        if after > within {
            return Err(format!("only after {after:?}"));
        }
        Ok(after)
    }

    /// Sends the same user's next question.
    fn next(&self, platform: &(dyn Platform + 'static)) -> Self {
        let next = Self { chat: self.chat.clone(), person: self.person.clone(), text: "next", answer: NEXT };
        next.say(platform);
        next
    }

    /// Checks that the chat contains only the answer, as many copies of its file as `files` allows, and the next
    /// answer. A missing file has to be mentioned.
    fn once(&self, platform: &(dyn Platform + 'static), files: &RangeInclusive<usize>) -> Result<(), String> {
        let shown = platform.shown(&self.chat);
        let count = shown.iter().flat_map(|one| &one.files).count();
        let words: Vec<&Shown> = shown.iter().filter(|one| !one.text.trim().is_empty()).collect();
        let told = words.iter().any(|one| one.text.contains('📎'));
        match words.as_slice() {
            [one, next]
                if (is_final(one) && text(one) == self.answer && next.text.trim() == NEXT)
                    && (files.contains(&count) && told == (count == 0)) =>
            {
                Ok(())
            }
            _ => Err(format!("not once: {count} files, {:?}", texts(&shown))),
        }
    }
}

/// Returns the text of a message without the note about a file.
fn text(shown: &Shown) -> &str {
    shown.text.split('📎').next().unwrap_or_default().trim()
}

fn texts(shown: &[Shown]) -> Vec<&str> {
    shown.iter().map(|shown| shown.text.as_str()).collect()
}

/// Answers a question with a file and text, the first and the later ones with text.
fn answer(ask: &Ask) -> Reply {
    let path = "/mnt/user-data/outputs/report.md";
    let words = |text: &str| Reply::text(text).words_per_chunk(1).every(Duration::from_millis(100)).into();
    match (ask.last_user(), ask.last_role()) {
        (text, _) if text.contains("next") => words(NEXT),
        (text, _) if text.contains("first") => words(GREEK),
        (_, "user") => Reply::tool("write_file", &json!({"path": path, "content": "# Report"})).into(),
        (_, "tool") if ask.last_tool() == "OK" => {
            Reply::tool("present_files", &json!({"filepaths": [path]})).into()
        }
        (text, _) if text.contains("before") => words("before: whole"),
        (text, _) if text.contains("within") => words(WITHIN),
        _ => words(GREEK),
    }
}

/// Sends a question and holds its answer at a point.
async fn held(
    house: &House,
    platform: &(dyn Platform + 'static),
    question: &Question,
    at: At,
) -> Hold<Exchange> {
    // The file takes two calls.
    let mut hold = house.model.hold(3, at);
    question.say(platform);
    timeout(SOON, hold.reached())
        .await
        .unwrap_or_else(|_| panic!("nobody asked the model:\n{}", house.log()));
    hold
}

/// Makes the API fail for this time and returns the result of each question.
async fn outage(platform: Arc<dyn Platform>, way: &Way, lasts: Duration) -> Vec<Result<Duration, String>> {
    let mut house = House::elsewhere(platform.clone()).await;
    house.model.otherwise(answer);
    house.start();
    let first = Question::ask(&*platform, "Ada", "first", GREEK);
    let hears = platform.wait(&first.chat, SOON, |platform| platform.hears().then_some(())).await;
    hears.unwrap_or_else(|timeout| panic!("{timeout}"));
    first.say(&*platform);
    let whole =
        |platform: &(dyn Platform + 'static)| first.is_whole(&platform.shown(&first.chat)).then_some(());
    platform.wait(&first.chat, SOON, whole).await.unwrap_or_else(|timeout| panic!("{timeout}"));
    let questions = [
        Question::ask(&*platform, "Bob", "before", "before: whole"),
        Question::ask(&*platform, "Eve", "within", WITHIN),
        Question::ask(&*platform, "Kim", "at its end", GREEK),
        Question::ask(&*platform, "Max", "its file", GREEK),
    ];
    let [before, within, end, file] = &questions;
    let half = held(&house, &*platform, within, At::Chunk(6)).await;
    let all = held(&house, &*platform, end, At::End).await;
    let words = held(&house, &*platform, file, At::End).await;
    for question in [within, end, file] {
        question.is_shown(&*platform).await;
    }
    let uploads = || -> usize { platform.uploads().iter().map(|name| platform.calls(name).len()).sum() };
    let earlier = uploads();
    for method in platform.uploads() {
        platform.stage().fail_always(method, way.fault.clone());
    }
    words.proceed();
    let brought = platform.wait(&file.chat, SOON, |_| (uploads() > earlier).then_some(())).await;
    brought.unwrap_or_else(|timeout| panic!("{timeout}"));
    way.begins(&*platform);
    half.proceed();
    all.proceed();
    before.say(&*platform);
    sleep(lasts).await;
    platform.heal();
    let well = Instant::now();
    let (within, next_within) = if is_sweep() { (WELL, NEXT_WELL) } else { (BUSY_WELL, BUSY_NEXT_WELL) };
    let answered = questions.iter().map(|question| question.answered(&*platform, well, within));
    let mut told: Vec<Result<Duration, String>> = join_all(answered).await;
    let asked = Instant::now();
    let next: Vec<Question> = questions.iter().map(|question| question.next(&*platform)).collect();
    let answered = join_all(next.iter().map(|next| next.answered(&*platform, asked, next_within))).await;
    // Duplicates would be sent before the exit.
    let ended = timeout(SOON, house.stop()).await.is_ok_and(|status| status.success());
    for (told, question) in told.iter_mut().zip(&questions) {
        let files = if question.text == "its file" { way.bound(&*platform) } else { 1..=1 };
        if told.is_ok() {
            *told = question.once(&*platform, &files).and_then(|()| told.clone());
        }
        if !ended {
            *told = Err("the daemon did not end".to_owned());
        }
    }
    let slowest: Result<Vec<Duration>, String> = answered.into_iter().collect();
    told.push(slowest.map(|times| times.into_iter().max().unwrap_or_default()));
    told
}
