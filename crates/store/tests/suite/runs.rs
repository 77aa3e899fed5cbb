use crate::fixture::NOW;
use pudu_base::{ModelCaller, Outcome, SpendingTally, Usage, UserId};
use pudu_store::{Cost, Db, PricedSpending, Spender, SpendingFilter};

/// Returns what Ada spent: each call with its price in millionths of a dollar, if there is one.
fn spent(calls: &[(ModelCaller, &str, Option<Usage>, Option<i64>)]) -> (Spender, Vec<PricedSpending>) {
    let mut tally = SpendingTally::default();
    let mut costs = Vec::new();
    for (caller, model, usage, cost) in calls {
        tally.add_call(*caller, model, *usage);
        costs.push(cost.map(|micros| Cost { currency: "USD".into(), micros }));
    }
    let parts = tally.parts().iter().cloned().zip(costs);
    (ada(), parts.map(|(spending, cost)| PricedSpending { spending, cost }).collect())
}

fn ada() -> Spender {
    Spender { account: "slack".into(), person: "U1".into(), user: UserId::of("ada").unwrap() }
}

pub(crate) async fn what_is_spent_is_known_by_thread_person_and_day(db: Db) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let usage = Usage { input: 100, output: 20, cached: 60, cache_writes: 10, reasoning: 5 };
    let lead = (ModelCaller::Lead, "gpt", Some(usage), Some(1_500));
    let unknown = (ModelCaller::Subagent, "own", None, None);
    for (run, thread, at) in [("one", "a", NOW), ("two", "a", NOW + DAY), ("three", "b", NOW + DAY)] {
        db.run_started(&run.into(), &thread.into(), "gpt", None, at).await.unwrap();
        db.run_ended(&run.into(), &Outcome::Success, spent(&[lead, unknown]), at).await.unwrap();
        db.run_ended(&run.into(), &Outcome::Success, spent(&[lead]), at).await.unwrap();
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
        let sums = db.spending(&SpendingFilter::UserSince(ada().user, since)).await.unwrap();
        sums.iter().filter_map(|sum| sum.cost.as_ref()).map(|cost| cost.micros).sum::<i64>()
    };
    assert_eq!((of(NOW).await, of(NOW + DAY).await, of(NOW + 2 * DAY).await), (4_500, 3_000, 0));
    let nobody = SpendingFilter::UserSince(UserId::local(), NOW);
    assert_eq!(db.spending(&nobody).await.unwrap(), []);
    db.sweep(NOW + 401 * DAY).await.unwrap();
    assert_eq!(of(0).await, 3_000, "after a year and a bit it is forgotten");
}

pub(crate) async fn a_run_is_counted_once_with_what_it_cost(db: Db) {
    let thread = "thread".into();
    assert_eq!(db.usage(&thread).await.unwrap(), (Usage::default(), 0));
    db.run_started(&"one".into(), &thread, "gpt", None, NOW).await.unwrap();
    db.run_started(&"two".into(), &thread, "gpt", None, NOW + 1).await.unwrap();
    db.run_started(&"one".into(), &thread, "claude", None, NOW + 2).await.unwrap();
    assert_eq!(db.run_outcome(&"one".into()).await.unwrap(), None);

    let cost = Usage::plain(10, 3);
    let first = spent(&[(ModelCaller::Lead, "gpt", Some(cost), None)]);
    db.run_ended(&"one".into(), &Outcome::Success, first, NOW + 3).await.unwrap();
    let second = spent(&[(ModelCaller::Lead, "gpt", Some(Usage::plain(99, 99)), None)]);
    db.run_ended(&"one".into(), &Outcome::Stopped, second, NOW + 4).await.unwrap();
    assert_eq!(db.run_outcome(&"one".into()).await.unwrap(), Some(Outcome::Success), "the first end stays");
    assert_eq!(db.usage(&thread).await.unwrap(), (cost, 2));
    assert_eq!(db.usage(&"other".into()).await.unwrap(), (Usage::default(), 0));
}
