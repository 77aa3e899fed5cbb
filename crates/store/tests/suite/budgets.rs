//! Budgets: reservations before calls, settlements after them, and counters that are the sum of both.

use crate::fixture::{BEFORE_ONE_RUN, NOW, Place, WITHOUT_CLIENT_RUNS, WITHOUT_CLIENT_THREADS, run};
use futures_util::future::join_all;
use pudu_base::{BudgetScope, ModelCaller, Usage, UserId};
use pudu_store::{
    BudgetLimit, BudgetStanding, BudgetUnit, CallOffer, CallSpending, Cost, Db, ModelCall, OfferCost,
    Reservation, ReserveOutcome, Settlement, Spender, SpendingFilter,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const TODAY: i64 = NOW / DAY_MS;

pub(crate) fn spender() -> Spender {
    let user = UserId::from_raw("ada").unwrap();
    Spender {
        account: "slack".into(),
        person: "U1".into(),
        user,
        room: Some(UserId::from_raw("room").unwrap()),
    }
}

pub(crate) fn call(id: &str) -> ModelCall {
    let (run, thread) = ("run".into(), "thread".into());
    ModelCall { id: id.into(), run, thread, spender: spender(), caller: ModelCaller::Lead, at: NOW }
}

pub(crate) fn spent(usage: Usage, micros: Option<i64>) -> CallSpending {
    let cost = micros.map(|micros| Cost { currency: "USD".into(), micros });
    CallSpending { model: "gpt".into(), usage, reported: true, cost }
}

fn settlement(id: &str, tokens: u64, micros: i64) -> Settlement {
    let spent = Some(spent(Usage::plain(tokens / 2, tokens - tokens / 2), Some(micros)));
    Settlement { call: call(id), spent, reservation: Some(id.into()) }
}

fn limit(scope: BudgetScope, limit: i64) -> BudgetLimit {
    let subject = match scope {
        BudgetScope::Run => "run",
        BudgetScope::Person => "ada",
        BudgetScope::Room => "room",
        BudgetScope::Account => "slack",
        BudgetScope::Everybody => "",
    };
    let (since, until) = (TODAY, TODAY + 1);
    BudgetLimit { scope, subject: subject.into(), since, until, unit: BudgetUnit::Tokens, limit }
}

fn dollars(limit: BudgetLimit) -> BudgetLimit {
    BudgetLimit { unit: BudgetUnit::Money("USD".into()), ..limit }
}

/// A call with a prompt of ten tokens at three millionths each, and a reply of at most forty at five each.
fn reservation(id: &str, limits: Vec<BudgetLimit>) -> Reservation {
    let cost = Some(OfferCost { currency: "USD".into(), input: 30, output: 200 });
    let offer = CallOffer { model: "gpt".into(), input: 10, output: 40, cost };
    Reservation { call: call(id), offer, cheaper: None, least: 4, waits: true, limits }
}

fn too_little(place: usize, spent: i64, needs: Option<i64>) -> ReserveOutcome {
    ReserveOutcome::TooLittle { place, spent, needs }
}

fn granted(output: i64) -> ReserveOutcome {
    ReserveOutcome::Granted { cheaper: false, short_of: None, output }
}

async fn standing(db: &Db, limit: BudgetLimit) -> BudgetStanding {
    db.budget_standings(vec![limit]).await.unwrap()[0]
}

/// Waits until all background writes are complete.
async fn flush(db: &Db) {
    db.save_position("telegram", "1", NOW).await.unwrap();
}

/// Makes each kind of write about budgets once.
pub(crate) async fn script(db: &Db) {
    let limits = vec![limit(BudgetScope::Person, 1_000)];
    assert_eq!(db.reserve(reservation("one", limits.clone())).await.unwrap(), granted(40));
    db.settle(settlement("one", 20, 100));
    flush(db).await;
    db.settle_left().await.unwrap();
    db.budget_warned(limits[0].clone(), NOW).await.unwrap();
}

pub(crate) async fn a_call_is_settled_once_in_every_budget(db: Db) {
    let all = [
        BudgetScope::Run,
        BudgetScope::Person,
        BudgetScope::Room,
        BudgetScope::Account,
        BudgetScope::Everybody,
    ];
    let limits: Vec<BudgetLimit> = all.map(|scope| limit(scope, 1_000)).to_vec();
    let both: Vec<_> = limits.iter().cloned().chain(limits.iter().cloned().map(dollars)).collect();
    assert_eq!(db.reserve(reservation("one", both.clone())).await.unwrap(), granted(40));
    for (limit, reserved) in both.iter().zip([50; 5].into_iter().chain([230; 5])) {
        let expect = BudgetStanding { spent: 0, reserved, warned: false };
        assert_eq!(standing(&db, limit.clone()).await, expect, "{limit:?}");
    }
    for _ in 0..3 {
        db.settle(settlement("one", 20, 100));
    }
    flush(&db).await;
    for (limit, spent) in both.iter().zip([20; 5].into_iter().chain([100; 5])) {
        let expect = BudgetStanding { spent, reserved: 0, warned: false };
        assert_eq!(standing(&db, limit.clone()).await, expect, "{limit:?}");
    }
    let other = BudgetLimit { subject: "bob".into(), ..limit(BudgetScope::Person, 1_000) };
    let tomorrow = BudgetLimit { since: TODAY + 1, until: TODAY + 2, ..limit(BudgetScope::Person, 1_000) };
    for limit in [other, tomorrow] {
        assert_eq!(standing(&db, limit).await, BudgetStanding::default());
    }
    let sums = db.spending(&SpendingFilter::Run("run".into())).await.unwrap();
    assert_eq!((sums.len(), sums[0].calls, sums[0].usage), (1, 1, Usage::plain(10, 10)));
    let shares = db.spending_since(NOW).await.unwrap();
    let [share] = &shares[..] else { panic!("{shares:?}") };
    let who = (share.user.as_str(), share.account.as_str(), share.room.as_str(), share.sum.calls);
    assert_eq!(who, ("ada", "slack", "room", 1));
    let near = limit(BudgetScope::Room, 1_000);
    assert!(db.budget_warned(near.clone(), NOW).await.unwrap());
    assert!(!db.budget_warned(near.clone(), NOW).await.unwrap(), "people are warned once");
    assert!(standing(&db, near.clone()).await.warned);
    let raised = BudgetLimit { limit: 2_000, ..near };
    assert!(!standing(&db, raised.clone()).await.warned && db.budget_warned(raised, NOW).await.unwrap());
}

pub(crate) async fn many_calls_at_once_stay_within_one_budget(db: Db) {
    const LIMIT: i64 = 1_000;
    let limits = || vec![limit(BudgetScope::Room, LIMIT)];
    let work = async |number: usize| {
        let id = format!("call-{number}");
        loop {
            match db.reserve(reservation(&id, limits())).await.unwrap() {
                ReserveOutcome::Granted { output, .. } => {
                    tokio::task::yield_now().await;
                    // Each call uses its whole reservation.
                    db.settle(settlement(&id, 10 + u64::try_from(output).unwrap(), 1));
                    return true;
                }
                ReserveOutcome::Busy(_) => flush(&db).await,
                ReserveOutcome::TooLittle { place: 0, .. } => return false,
                ReserveOutcome::TooLittle { place, .. } => panic!("unexpected budget {place}"),
            }
        }
    };
    let made = join_all((0..200).map(work)).await.into_iter().filter(|made| *made).count();
    flush(&db).await;
    let standing = standing(&db, limit(BudgetScope::Room, LIMIT)).await;
    assert_eq!((made, standing.spent, standing.reserved), (20, LIMIT, 0));
}

pub(crate) async fn a_new_limit_includes_earlier_spending(db: Db) {
    for (id, tokens) in [("one", 300), ("two", 500)] {
        db.settle(Settlement { reservation: None, ..settlement(id, tokens, 7) });
    }
    flush(&db).await;
    let late = limit(BudgetScope::Account, 900);
    assert_eq!(standing(&db, late.clone()).await.spent, 800, "reading creates no counter");
    assert_eq!(db.reserve(reservation("three", vec![late.clone()])).await.unwrap(), granted(40));
    db.settle(settlement("three", 100, 7));
    flush(&db).await;
    assert_eq!(standing(&db, late.clone()).await.spent, 900);
    let month = BudgetLimit { since: TODAY - 5, until: TODAY + 9, ..late.clone() };
    let all = vec![limit(BudgetScope::Person, 2_000), month, late];
    assert_eq!(
        db.reserve(reservation("four", all)).await.unwrap(),
        too_little(1, 900, Some(14)),
        "it resets last"
    );
}

pub(crate) async fn the_budget_limits_the_length_of_a_reply(db: Db) {
    let check = async |limit: BudgetLimit, expect| {
        let outcome = db.reserve(reservation("call", vec![limit.clone()])).await.unwrap();
        assert_eq!(outcome, expect, "{limit:?}");
        db.settle(Settlement { call: call("call"), spent: None, reservation: Some("call".into()) });
        flush(&db).await;
    };
    let tokens = |most| limit(BudgetScope::Person, most);
    check(tokens(50), granted(40)).await;
    check(tokens(49), granted(39)).await;
    check(tokens(14), granted(4)).await;
    check(tokens(13), too_little(0, 0, Some(14))).await;
    check(tokens(9), too_little(0, 0, Some(14))).await;
    check(tokens(0), too_little(0, 0, Some(14))).await;
    check(dollars(tokens(230)), granted(40)).await;
    check(dollars(tokens(129)), granted(19)).await;
    check(dollars(tokens(49)), too_little(0, 0, Some(50))).await;
    let pounds = BudgetLimit { unit: BudgetUnit::Money("GBP".into()), ..tokens(1_000_000) };
    check(pounds, too_little(0, 0, None)).await;
    assert_eq!(
        standing(&db, tokens(50)).await,
        BudgetStanding::default(),
        "a released reservation is free again"
    );
}

pub(crate) async fn the_cheaper_model_answers_above_its_threshold(db: Db) {
    let small = CallOffer { model: "small".into(), input: 10, output: 20, cost: None };
    let limits = || vec![limit(BudgetScope::Person, 1_000)];
    let reservation =
        |id: &str| Reservation { cheaper: Some((small.clone(), 800)), ..reservation(id, limits()) };
    assert_eq!(db.reserve(reservation("one")).await.unwrap(), granted(40));
    db.settle(settlement("one", 799, 1));
    assert_eq!(db.reserve(reservation("two")).await.unwrap(), granted(40));
    db.settle(settlement("two", 1, 1));
    let cheaper = ReserveOutcome::Granted { cheaper: true, short_of: None, output: 20 };
    assert_eq!(db.reserve(reservation("three")).await.unwrap(), cheaper);
}

/// Checks that a caller that does not wait gets the cheaper model before a refusal, and that a run's own budget, which starts
/// anew with each run, is named only if no other budget is short, or if it can never suffice.
pub(crate) async fn a_refusal_is_the_last_resort_and_names_the_budget_to_wait_for(db: Db) {
    let small = CallOffer { model: "small".into(), input: 10, output: 4, cost: None };
    let room = || vec![limit(BudgetScope::Room, 70)];
    let cheaper = Some((small, 900));
    assert_eq!(db.reserve(reservation("one", room())).await.unwrap(), granted(40));
    let waiting = Reservation { cheaper: cheaper.clone(), ..reservation("two", room()) };
    assert_eq!(db.reserve(waiting.clone()).await.unwrap(), ReserveOutcome::Busy(0));
    let expect = ReserveOutcome::Granted { cheaper: true, short_of: Some(0), output: 4 };
    assert_eq!(db.reserve(Reservation { waits: false, ..waiting }).await.unwrap(), expect);
    let alone = Reservation { waits: false, ..reservation("three", room()) };
    assert_eq!(db.reserve(alone).await.unwrap(), ReserveOutcome::Busy(0), "there is no cheaper model");
    let run_limit = |most| BudgetLimit { until: i64::MAX, ..limit(BudgetScope::Run, most) };
    let check = async |limits: Vec<BudgetLimit>, place| {
        let outcome = db.reserve(reservation("four", limits.clone())).await.unwrap();
        assert_eq!(outcome, too_little(place, 60, Some(14)), "{limits:?}");
    };
    db.settle(settlement("five", 60, 1));
    flush(&db).await;
    check(vec![run_limit(61), limit(BudgetScope::Person, 61)], 1).await;
    check(vec![run_limit(61), limit(BudgetScope::Person, 1_000)], 0).await;
    check(vec![run_limit(13), limit(BudgetScope::Person, 61)], 0).await;
}

pub(crate) async fn the_cheaper_model_answers_if_the_other_is_too_expensive(db: Db) {
    let cost = |output| Some(OfferCost { currency: "USD".into(), input: 1, output });
    let small = |output| CallOffer { model: "small".into(), input: 10, output: 20, cost: cost(output) };
    let limits = || vec![dollars(limit(BudgetScope::Person, 45))];
    let reservation = |id: &str, output| {
        let reservation = reservation(id, limits());
        Reservation { cheaper: Some((small(output), 900)), least: 10, ..reservation }
    };
    assert_eq!(db.reserve(reservation("dear", 2_000)).await.unwrap(), too_little(0, 0, Some(80)));
    let cheaper = ReserveOutcome::Granted { cheaper: true, short_of: Some(0), output: 20 };
    assert_eq!(db.reserve(reservation("one", 40)).await.unwrap(), cheaper);
    assert_eq!(db.reserve(reservation("two", 40)).await.unwrap(), ReserveOutcome::Busy(0));
    assert_eq!(db.reservable(&reservation("two", 40)).await.unwrap(), ReserveOutcome::Busy(0));
    let none = Reservation { limits: Vec::new(), ..reservation("free", 40) };
    assert_eq!(db.reserve(none).await.unwrap(), granted(40));
    assert_eq!(standing(&db, limits()[0].clone()).await.reserved, 41 + 230, "unlimited calls count as well");
}

/// The call of a person who was deleted while it was in progress counts for their room, and for nobody else.
pub(crate) async fn a_person_deleted_between_a_kill_and_a_start_does_not_prevent_the_start(place: Place) {
    let dead = place.open().await;
    let limits = vec![limit(BudgetScope::Person, 1_000), limit(BudgetScope::Room, 1_000)];
    assert_eq!(dead.reserve(reservation("one", limits.clone())).await.unwrap(), granted(40));
    dead.close().await;
    let db = place.open().await;
    let keys = crate::person::ada();
    assert!(db.is_person_at_work(&keys).await.unwrap(), "the call is not settled");
    assert!(db.forget_person(&keys, Vec::new(), Vec::new()).await.unwrap());
    db.close().await;
    // The state that an older version left.
    run(&mut place.connect().await, "UPDATE reservations SET user_id = ''".to_owned()).await;
    let db = place.open().await;
    assert_eq!(db.settle_left().await.unwrap(), 1);
    assert!(!db.is_person_at_work(&keys).await.unwrap());
    let [share] = &db.spending_since(NOW).await.unwrap()[..] else { panic!("there must be one call") };
    let reported = (share.user.as_str(), share.room.as_str(), share.sum.usage.total());
    assert_eq!(reported, ("", "room", 10));
    assert_eq!(standing(&db, limits[1].clone()).await.spent, 10);
    let local = BudgetLimit { subject: UserId::local().to_string(), ..limits[0].clone() };
    assert_eq!(standing(&db, local).await.spent, 0, "nobody else pays for it");
    db.close().await;
}

pub(crate) async fn spending_is_reported_by_user_account_room_caller_and_model(db: Db) {
    for (id, user, caller, tokens) in [
        ("1", "ada", ModelCaller::Lead, 10),
        ("2", "ada", ModelCaller::Lead, 20),
        ("3", "ada", ModelCaller::Title, 4),
        ("4", "bob", ModelCaller::Lead, 100),
    ] {
        let spender = Spender { user: UserId::from_raw(user).unwrap(), ..spender() };
        db.settle(Settlement {
            call: ModelCall { spender, caller, ..call(id) },
            ..settlement(id, tokens, 7)
        });
    }
    flush(&db).await;
    let shares = db.spending_since(NOW).await.unwrap();
    let reported = shares.iter().map(|share| {
        assert_eq!((share.account.as_str(), share.room.as_str()), ("slack", "room"));
        let micros = share.sum.cost.as_ref().map(|cost| cost.micros);
        (share.user.as_str(), share.sum.caller.as_str(), share.sum.calls, share.sum.usage.total(), micros)
    });
    let expect =
        [("bob", "lead", 1, 100, Some(7)), ("ada", "lead", 2, 30, Some(14)), ("ada", "title", 1, 4, Some(7))];
    assert_eq!(reported.collect::<Vec<_>>(), expect);
}

/// After any sequence of reservations, settlements, repetitions and crashes, counters are the sum of the calls, and
/// within the limit, as long as no call exceeds its reservation.
pub(crate) async fn counters_are_always_the_sum_of_calls(place: Place) {
    const LIMIT: i64 = 2_000;
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut db = place.open().await;
        db.settle_left().await.unwrap();
        let user = format!("user-{seed}");
        let own = BudgetLimit { subject: user.clone(), ..limit(BudgetScope::Person, LIMIT) };
        let of_user = |id: String| {
            let spender = Spender { user: UserId::from_raw(&user).unwrap(), ..spender() };
            ModelCall { spender, ..call(&id) }
        };
        let (mut open, mut sum): (Vec<(String, i64)>, i64) = (Vec::new(), 0);
        for step in 0..80 {
            let id = format!("{seed}-{step}");
            match random.u8(..10) {
                0..5 => {
                    let reservation =
                        Reservation { call: of_user(id.clone()), ..reservation(&id, vec![own.clone()]) };
                    match db.reserve(reservation).await.unwrap() {
                        ReserveOutcome::Granted { output, .. } => open.push((id, output)),
                        ReserveOutcome::Busy(_) => {
                            assert!(!open.is_empty(), "other calls have reserved the rest")
                        }
                        ReserveOutcome::TooLittle { .. } => assert!(sum > LIMIT - 14, "{sum} of {LIMIT}"),
                    }
                }
                5..9 if !open.is_empty() => {
                    let (id, output) = open.swap_remove(random.usize(..open.len()));
                    let tokens = 10 + random.u64(..=u64::try_from(output).unwrap());
                    let settlement = Settlement { call: of_user(id.clone()), ..settlement(&id, tokens, 1) };
                    // A repetition with another amount: only the first counts.
                    let again =
                        Settlement { spent: Some(spent(Usage::plain(5_000, 0), None)), ..settlement.clone() };
                    db.settle(settlement);
                    db.settle(again);
                    sum += i64::try_from(tokens).unwrap();
                }
                9 => {
                    db.close().await;
                    db = place.open().await;
                    assert_eq!(db.settle_left().await.unwrap(), open.len() as u64);
                    sum += 10 * open.len() as i64;
                    open.clear();
                }
                _ => {}
            }
            flush(&db).await;
            let standing = standing(&db, own.clone()).await;
            let open_reservations: i64 = open.iter().map(|(_, output)| 10 + output).sum();
            assert_eq!(
                (standing.spent, standing.reserved),
                (sum, open_reservations),
                "seed {seed}, step {step}"
            );
            assert!(standing.spent + standing.reserved <= LIMIT, "seed {seed}, step {step}: {standing:?}");
            let reported =
                db.spending(&SpendingFilter::UserSince(UserId::from_raw(&user).unwrap(), NOW)).await.unwrap();
            let reported: u64 = reported.iter().map(|sum| sum.usage.total()).sum();
            assert_eq!(reported, sum.unsigned_abs(), "seed {seed}, step {step}");
        }
        db.close().await;
    }
}

pub(crate) async fn reservations_of_a_dead_process_are_settled_at_the_cost_of_the_prompt(place: Place) {
    let both = || vec![limit(BudgetScope::Person, 1_000), dollars(limit(BudgetScope::Person, 1_000))];
    let dead = place.open().await;
    for id in ["one", "two"] {
        assert_eq!(dead.reserve(reservation(id, both())).await.unwrap(), granted(40));
    }
    dead.close().await;
    let db = place.open().await;
    assert_eq!(db.reserve(reservation("own", both())).await.unwrap(), granted(40));
    assert_eq!(db.settle_left().await.unwrap(), 2);
    assert_eq!(db.settle_left().await.unwrap(), 0, "calls in progress are not settled");
    let standings = db.budget_standings(both()).await.unwrap();
    let reported: Vec<_> = standings.iter().map(|standing| (standing.spent, standing.reserved)).collect();
    assert_eq!(reported, [(20, 50), (60, 230)]);
    let sums = db.spending(&SpendingFilter::Run("run".into())).await.unwrap();
    assert_eq!((sums[0].calls, sums[0].unreported, sums[0].usage), (2, 2, Usage::plain(20, 0)));
    // A late settlement is not counted again.
    db.settle(settlement("one", 50, 50));
    flush(&db).await;
    assert_eq!(standing(&db, limit(BudgetScope::Person, 1_000)).await.spent, 20);
    db.close().await;
}

pub(crate) async fn spending_from_before_calls_had_rows_is_kept(place: Place) {
    place.open().await.close().await;
    let mut behind = place.connect().await;
    let older = format!(
        "DROP TABLE buffered_messages; DROP TABLE adoptions; DROP TABLE thread_people; DROP TABLE imports; DROP TABLE users; DROP TABLE api_tokens; DROP TABLE feedback; DROP TABLE memory_merges; DROP INDEX recall_docs_at;
        ALTER TABLE learnings DROP COLUMN priority; ALTER TABLE learnings DROP COLUMN reader;
        ALTER TABLE learnings DROP COLUMN reads_until; ALTER TABLE learnings DROP COLUMN first;
        ALTER TABLE learnings DROP COLUMN last; ALTER TABLE learnings DROP COLUMN room;
        DROP TABLE budgets; DROP TABLE reservations; DROP TABLE spending;
        CREATE TABLE spending (run TEXT NOT NULL, thread TEXT NOT NULL, account TEXT NOT NULL, person TEXT NOT NULL,
            day BIGINT NOT NULL, caller TEXT NOT NULL, model TEXT NOT NULL, calls BIGINT NOT NULL, unreported BIGINT NOT NULL,
            input BIGINT NOT NULL, output BIGINT NOT NULL, cached BIGINT NOT NULL, cache_writes BIGINT NOT NULL,
            reasoning BIGINT NOT NULL, cost BIGINT, currency TEXT, user_id TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (run, caller, model));
        CREATE INDEX spending_thread ON spending (thread);
        CREATE INDEX spending_day ON spending (day);
        CREATE INDEX spending_person ON spending (account, person, day);
        CREATE INDEX spending_user ON spending (user_id, day);
        INSERT INTO spending VALUES
            ('run', 'thread', 'slack', 'U1', {TODAY}, 'lead', 'gpt', 3, 1, 100, 20, 60, 10, 5, 700, 'USD', 'ada'),
            ('run', 'thread', 'slack', 'U1', {TODAY}, 'title', 'gpt', 1, 0, 10, 2, 0, 0, 0, NULL, NULL, 'ada');
        ALTER TABLE identities DROP COLUMN via; ALTER TABLE identities DROP COLUMN route;
        DROP TABLE scheduled_task_runs; DROP TABLE scheduled_tasks; DELETE FROM schema_version WHERE version >= 14"
    );
    run(&mut behind, BEFORE_ONE_RUN.into()).await;
    run(&mut behind, older).await;
    run(&mut behind, WITHOUT_CLIENT_RUNS.into()).await;
    run(&mut behind, WITHOUT_CLIENT_THREADS.into()).await;
    drop(behind);
    let db = place.open().await;
    let sums = db.spending(&SpendingFilter::Thread("thread".into())).await.unwrap();
    let reported: Vec<_> =
        sums.iter().map(|sum| (sum.caller.as_str(), sum.calls, sum.usage.total())).collect();
    assert_eq!(reported, [("lead", 3, 120), ("title", 1, 12)]);
    assert_eq!(sums[0].cost, Some(Cost { currency: "USD".into(), micros: 700 }));
    assert_eq!(standing(&db, limit(BudgetScope::Person, 1_000)).await.spent, 132);
    db.close().await;
}
