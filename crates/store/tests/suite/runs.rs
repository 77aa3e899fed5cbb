use crate::{
    budgets::{call, spender, spent},
    fixture::NOW,
};
use pudu_base::{ModelCaller, Outcome, Usage, UserId};
use pudu_store::{CallSpending, Cost, Db, ModelCall, Settlement, Spender, SpendingFilter};

/// Settles a call by Ada at a time, with the provider's usage report and the price in millionths of a dollar, if there is one.
fn settle(db: &Db, run: &str, thread: &str, at: i64, (caller, model, usage, micros): Called) {
    let spender = Spender { room: None, ..spender() };
    let call = ModelCall { run: run.into(), thread: thread.into(), at, spender, caller, ..call(model) };
    let reported = usage.is_some();
    let spent = CallSpending { model: model.into(), reported, ..spent(usage.unwrap_or_default(), micros) };
    db.settle(Settlement { call, spent: Some(spent), reservation: None });
}

type Called = (ModelCaller, &'static str, Option<Usage>, Option<i64>);

pub(crate) async fn spending_is_summed_by_thread_person_and_day(db: Db) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let usage = Usage { input: 100, output: 20, cached: 60, cache_writes: 10, reasoning: 5 };
    let lead = (ModelCaller::Lead, "gpt", Some(usage), Some(1_500));
    let unknown = (ModelCaller::Subagent, "own", None, None);
    for (run, thread, at) in [("one", "a", NOW), ("two", "a", NOW + DAY), ("three", "b", NOW + DAY)] {
        db.run_started(&run.into(), &thread.into(), "gpt", None, at).await.unwrap();
        for call in [lead, unknown, lead] {
            settle(&db, run, thread, at, call);
        }
        db.run_ended(&run.into(), &Outcome::Success, at).await.unwrap();
    }
    let sums = db.spending(&SpendingFilter::Thread("a".into())).await.unwrap();
    let [gpt, own] = &sums[..] else { panic!("{sums:?}") };
    let twice = Usage { input: 200, output: 40, cached: 120, cache_writes: 20, reasoning: 10 };
    assert_eq!((gpt.usage, gpt.calls, gpt.caller.as_str(), gpt.model.as_str()), (twice, 2, "lead", "gpt"));
    assert_eq!(gpt.cost, Some(Cost { currency: "USD".into(), micros: 3_000 }));
    assert_eq!(
        (own.usage, own.unreported, &own.cost),
        (Usage::default(), 2, &None),
        "what is unknown says so"
    );
    let of = async |since| {
        let sums = db.spending(&SpendingFilter::UserSince(spender().user, since)).await.unwrap();
        sums.iter().filter_map(|sum| sum.cost.as_ref()).map(|cost| cost.micros).sum::<i64>()
    };
    assert_eq!((of(NOW).await, of(NOW + DAY).await, of(NOW + 2 * DAY).await), (4_500, 3_000, 0));
    let nobody = SpendingFilter::UserSince(UserId::local(), NOW);
    assert_eq!(db.spending(&nobody).await.unwrap(), []);
    db.sweep(NOW + 401 * DAY).await.unwrap();
    assert_eq!(of(0).await, 3_000, "it is deleted after a little more than a year");
}

pub(crate) async fn a_run_is_counted_once_with_its_cost(db: Db) {
    let thread = "thread".into();
    assert_eq!(db.usage(&thread).await.unwrap(), (Usage::default(), 0));
    db.run_started(&"one".into(), &thread, "gpt", None, NOW).await.unwrap();
    db.run_started(&"two".into(), &thread, "gpt", None, NOW + 1).await.unwrap();
    db.run_started(&"one".into(), &thread, "claude", None, NOW + 2).await.unwrap();
    assert_eq!(db.run_outcome(&"one".into()).await.unwrap(), None);

    let cost = Usage::plain(10, 3);
    settle(&db, "one", "thread", NOW + 3, (ModelCaller::Lead, "gpt", Some(cost), None));
    db.run_ended(&"one".into(), &Outcome::Success, NOW + 3).await.unwrap();
    settle(&db, "one", "thread", NOW + 4, (ModelCaller::Title, "small", Some(Usage::plain(99, 99)), None));
    db.run_ended(&"one".into(), &Outcome::Stopped, NOW + 4).await.unwrap();
    assert_eq!(
        db.run_outcome(&"one".into()).await.unwrap(),
        Some(Outcome::Success),
        "the first outcome is kept"
    );
    assert_eq!(db.usage(&thread).await.unwrap(), (cost, 2));
    assert_eq!(db.usage(&"other".into()).await.unwrap(), (Usage::default(), 0));
}

/// A provider may report any number.
pub(crate) async fn huge_reported_usages_do_not_overflow(db: Db) {
    let huge = Usage {
        input: 1_000_000_000_000_000_000,
        output: u64::MAX,
        cached: u64::MAX,
        cache_writes: 0,
        reasoning: u64::MAX,
    };
    db.run_started(&"one".into(), &"a".into(), "gpt", None, NOW).await.unwrap();
    for n in 0..12 {
        let call =
            ModelCall { id: n.to_string(), run: "one".into(), thread: "a".into(), at: NOW, ..call("gpt") };
        let spent = CallSpending { model: "gpt".into(), reported: true, ..spent(huge, Some(i64::MAX)) };
        db.settle(Settlement { call, spent: Some(spent), reservation: None });
    }
    db.run_ended(&"one".into(), &Outcome::Success, NOW).await.unwrap();
    let most = 12 * 1_000_000_000_000_u64;
    let sums = db.spending(&SpendingFilter::Thread("a".into())).await.unwrap();
    assert_eq!(sums.len(), 1);
    let cost = sums[0].cost.as_ref().map(|cost| cost.micros);
    assert_eq!((sums[0].usage.input, sums[0].usage.output, cost), (most, most, Some(12_000_000_000_000)));
    assert_eq!(db.spending_since(NOW).await.unwrap().len(), 1);
    assert_eq!(db.usage(&"a".into()).await.unwrap().0.input, 1_000_000_000_000, "for the whole run");
}

/// The output of programs may contain any bytes.
pub(crate) async fn a_nul_is_stored_as_a_replacement_character(db: Db) {
    use pudu_base::{Human, Message, ThreadLog, Update};
    let (thread, run) = ("a\0".into(), "one".into());
    let words = "a\0b \\u0000";
    let update = Update::Message(std::sync::Arc::new(Message::Human(Human::new("h", words))));
    db.run_started(&run, &thread, "gpt\0", None, NOW).await.unwrap();
    db.append(&thread, &run, 0, &[update]).await.unwrap();
    let ending = pudu_store::RunEnding {
        last_words: words.to_owned(),
        ..pudu_store::RunEnding::from(&Outcome::Success)
    };
    db.run_ended(&run, ending, NOW).await.unwrap();
    assert_eq!(db.run_outcome(&run).await.unwrap(), Some(Outcome::Success));
    let (_, state) = db.load(&thread).await.unwrap();
    assert_eq!(state.last().map(|message| message.text().to_owned()).as_deref(), Some("a\u{fffd}b \\u0000"));
}
