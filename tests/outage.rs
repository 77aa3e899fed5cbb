//! A platform's API is away for a while, in one of several ways: from before a question, in the midst of an answer,
//! and at its end. Each question has exactly one whole answer, soon after the platform is well again.
//!
//! By default a few short outages on each platform. `PUDU_OUTAGE_SWEEP=1` tries every way for 3, 8, 30 and 120
//! seconds, several at once; `PUDU_OUTAGE_AT_ONCE` says how many.

use crate::{
    house::{House, SOON},
    platforms,
    scenarios::is_final,
};
use futures_util::{StreamExt, stream};
use pudu_sim::{
    Fault, Platform,
    model::{At, Reply},
    platform::{Shown, Words},
};
use std::{fmt::Write, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// An answer is whole so soon after the platform is well again.
const WELL: Duration = Duration::from_secs(10);
/// How long outages last.
const LASTS: [u64; 4] = [3, 8, 30, 120];

/// How the API fails.
const WAYS: [(&str, Fault); 6] = [
    ("500", Fault::Internal),
    ("502 HTML", Fault::BadGateway),
    ("429", Fault::TooMany(1)),
    ("nothing", Fault::Silent),
    ("cut before", Fault::CutBefore),
    ("cut after", Fault::CutAfter),
];

const WITHIN: &str = "one two three four five six seven eight nine ten eleven twelve";
const GREEK: &str = "alpha beta gamma delta omega";

/// From when on it fails, as one question sees it.
const MOMENTS: [&str; 3] = ["before", "within", "at its end"];

/// Makes a test for each platform.
macro_rules! outage_tests {
    ($($platform:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $platform() {
            sweep(stringify!($platform), async || platforms::$platform().await).await;
        })+
    };
}

outage_tests!(telegram feishu dingtalk slack discord);

async fn sweep(name: &str, fresh: impl AsyncFn() -> Arc<dyn Platform>) {
    let whole = std::env::var("PUDU_OUTAGE_SWEEP").is_ok();
    let lasts = if whole { LASTS.as_slice() } else { LASTS.get(..1).unwrap_or_default() };
    let all = lasts.iter().flat_map(|lasts| WAYS.iter().map(|way| (way.clone(), *lasts)));
    let at_once = std::env::var("PUDU_OUTAGE_AT_ONCE").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let fresh = &fresh;
    let rows = stream::iter(all).map(|((way, fault), lasts)| async move {
        let told = outage(fresh().await, fault, Duration::from_secs(lasts)).await;
        (way, lasts, told)
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

/// One who asks, and what is answered.
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

    /// Waits until something is shown of its answer, be it a sign; some platforms show nothing before it is whole.
    async fn is_shown(&self, platform: &(dyn Platform + 'static)) {
        let shown =
            |platform: &(dyn Platform + 'static)| (!platform.shown(&self.chat).is_empty()).then_some(());
        platform.wait(&self.chat, Duration::from_secs(3), shown).await.ok();
    }

    fn is_whole(&self, shown: &[Shown]) -> bool {
        shown.iter().any(|shown| is_final(shown) && shown.text.trim() == self.answer)
    }

    /// Waits until its answer is whole; returns how long that took since `well`.
    async fn answered(&self, platform: &(dyn Platform + 'static), well: Instant) -> Result<Duration, String> {
        let whole = platform.wait(&self.chat, WELL + SOON, |platform| {
            self.is_whole(&platform.shown(&self.chat)).then_some(())
        });
        whole.await.map_err(|_| format!("{:?}", texts(&platform.shown(&self.chat))))?;
        let after = well.elapsed();
        if after > WELL {
            return Err(format!("only after {after:?}"));
        }
        Ok(after)
    }

    /// Checks that nothing but the answer is there.
    fn once(&self, platform: &(dyn Platform + 'static)) -> Result<(), String> {
        let shown = platform.shown(&self.chat);
        match shown.as_slice() {
            [one] if is_final(one) && one.text.trim() == self.answer => Ok(()),
            _ => Err(format!("not once: {:?}", texts(&shown))),
        }
    }
}

fn texts(shown: &[Shown]) -> Vec<&str> {
    shown.iter().map(|shown| shown.text.as_str()).collect()
}

/// Makes the API fail for so long and tells of each question how it fared.
async fn outage(platform: Arc<dyn Platform>, fault: Fault, lasts: Duration) -> Vec<Result<Duration, String>> {
    let mut house = House::elsewhere(platform.clone()).await;
    house.model.otherwise(|ask| {
        let answer = match ask.last_user() {
            text if text.contains("before") => "before: whole",
            text if text.contains("within") => WITHIN,
            _ => GREEK,
        };
        Reply::text(answer).words_per_chunk(1).every(Duration::from_millis(100)).into()
    });
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
    ];
    let [before, within, end] = &questions;
    let mut half = house.model.hold(1, At::Chunk(6));
    within.say(&*platform);
    half.reached().await.unwrap();
    let mut all = house.model.hold(1, At::End);
    end.say(&*platform);
    all.reached().await.unwrap();
    for question in [within, end] {
        question.is_shown(&*platform).await;
    }
    platform.stage().fail_always("api", fault);
    half.proceed();
    all.proceed();
    before.say(&*platform);
    sleep(lasts).await;
    platform.heal();
    let well = Instant::now();
    let answered = questions.iter().map(|question| question.answered(&*platform, well));
    let mut told: Vec<Result<Duration, String>> = futures_util::future::join_all(answered).await;
    // What would be said twice would be said by the end.
    let ended = timeout(SOON, house.stop()).await.is_ok_and(|status| status.success());
    for (told, question) in told.iter_mut().zip(&questions) {
        if told.is_ok() {
            *told = question.once(&*platform).and_then(|()| told.clone());
        }
        if !ended {
            *told = Err("the daemon did not end".to_owned());
        }
    }
    told
}
