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

/// A call whose prompt has ten tokens, each for three millionths, and whose reply has forty at most, for five each.
fn wish(id: &str, limits: Vec<BudgetLimit>) -> Reservation {
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

/// Waits until all is written that nobody waits for.
async fn written(db: &Db) {
    db.save_position("telegram", "1", NOW).await.unwrap();
}

/// Each write about budgets, once.
pub(crate) async fn script(db: &Db) {
    let limits = vec![limit(BudgetScope::Person, 1_000)];
    assert_eq!(db.reserve(wish("one", limits.clone())).await.unwrap(), granted(40));
    db.settle(settlement("one", 20, 100));
    written(db).await;
    db.settle_left().await.unwrap();
    db.budget_warned(limits[0].clone(), NOW).await.unwrap();
}

pub(crate) async fn a_call_is_settled_once_and_every_budget_counts_it(db: Db) {
    let all = [
        BudgetScope::Run,
        BudgetScope::Person,
        BudgetScope::Room,
        BudgetScope::Account,
        BudgetScope::Everybody,
    ];
    let limits: Vec<BudgetLimit> = all.map(|scope| limit(scope, 1_000)).to_vec();
    let both: Vec<_> = limits.iter().cloned().chain(limits.iter().cloned().map(dollars)).collect();
    assert_eq!(db.reserve(wish("one", both.clone())).await.unwrap(), granted(40));
    for (limit, reserved) in both.iter().zip([50; 5].into_iter().chain([230; 5])) {
        let expect = BudgetStanding { spent: 0, reserved, warned: false };
        assert_eq!(standing(&db, limit.clone()).await, expect, "{limit:?}");
    }
    for _ in 0..3 {
        db.settle(settlement("one", 20, 100));
    }
    written(&db).await;
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
    assert!(!db.budget_warned(near.clone(), NOW).await.unwrap(), "people are told once");
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
            match db.reserve(wish(&id, limits())).await.unwrap() {
                ReserveOutcome::Granted { output, .. } => {
                    tokio::task::yield_now().await;
                    // Each takes all that it may.
                    db.settle(settlement(&id, 10 + u64::try_from(output).unwrap(), 1));
                    return true;
                }
                ReserveOutcome::Busy(_) => written(&db).await,
                ReserveOutcome::TooLittle { place: 0, .. } => return false,
                ReserveOutcome::TooLittle { place, .. } => panic!("there is no budget {place}"),
            }
        }
    };
    let made = join_all((0..200).map(work)).await.into_iter().filter(|made| *made).count();
    written(&db).await;
    let standing = standing(&db, limit(BudgetScope::Room, LIMIT)).await;
    assert_eq!((made, standing.spent, standing.reserved), (20, LIMIT, 0));
}

pub(crate) async fn a_limit_set_late_knows_what_was_spent_before(db: Db) {
    for (id, tokens) in [("one", 300), ("two", 500)] {
        db.settle(Settlement { reservation: None, ..settlement(id, tokens, 7) });
    }
    written(&db).await;
    let late = limit(BudgetScope::Account, 900);
    assert_eq!(standing(&db, late.clone()).await.spent, 800, "a look makes no counter");
    assert_eq!(db.reserve(wish("three", vec![late.clone()])).await.unwrap(), granted(40));
    db.settle(settlement("three", 100, 7));
    written(&db).await;
    assert_eq!(standing(&db, late.clone()).await.spent, 900);
    let month = BudgetLimit { since: TODAY - 5, until: TODAY + 9, ..late.clone() };
    let all = vec![limit(BudgetScope::Person, 2_000), month, late];
    assert_eq!(db.reserve(wish("four", all)).await.unwrap(), too_little(1, 900, Some(14)), "it opens last");
}

pub(crate) async fn a_reply_is_as_long_as_the_budget_allows(db: Db) {
    let check = async |limit: BudgetLimit, expect| {
        let outcome = db.reserve(wish("call", vec![limit.clone()])).await.unwrap();
        assert_eq!(outcome, expect, "{limit:?}");
        db.settle(Settlement { call: call("call"), spent: None, reservation: Some("call".into()) });
        written(&db).await;
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
    assert_eq!(standing(&db, tokens(50)).await, BudgetStanding::default(), "what was released is free");
}

pub(crate) async fn the_cheaper_model_answers_from_its_share_on(db: Db) {
    let small = CallOffer { model: "small".into(), input: 10, output: 20, cost: None };
    let limits = || vec![limit(BudgetScope::Person, 1_000)];
    let wish = |id: &str| Reservation { cheaper: Some((small.clone(), 800)), ..wish(id, limits()) };
    assert_eq!(db.reserve(wish("one")).await.unwrap(), granted(40));
    db.settle(settlement("one", 799, 1));
    assert_eq!(db.reserve(wish("two")).await.unwrap(), granted(40));
    db.settle(settlement("two", 1, 1));
    let cheaper = ReserveOutcome::Granted { cheaper: true, short_of: None, output: 20 };
    assert_eq!(db.reserve(wish("three")).await.unwrap(), cheaper);
}

/// Proves that whoever does not wait for others gets the cheaper model before a refusal, and that a run's own budget, which
/// a new run has anew, is named only where it alone is short, or never suffices.
pub(crate) async fn a_refusal_is_the_last_resort_and_names_the_budget_to_wait_for(db: Db) {
    let small = CallOffer { model: "small".into(), input: 10, output: 4, cost: None };
    let room = || vec![limit(BudgetScope::Room, 70)];
    let cheaper = Some((small, 900));
    assert_eq!(db.reserve(wish("one", room())).await.unwrap(), granted(40));
    let waiting = Reservation { cheaper: cheaper.clone(), ..wish("two", room()) };
    assert_eq!(db.reserve(waiting.clone()).await.unwrap(), ReserveOutcome::Busy(0));
    let expect = ReserveOutcome::Granted { cheaper: true, short_of: Some(0), output: 4 };
    assert_eq!(db.reserve(Reservation { waits: false, ..waiting }).await.unwrap(), expect);
    let alone = Reservation { waits: false, ..wish("three", room()) };
    assert_eq!(db.reserve(alone).await.unwrap(), ReserveOutcome::Busy(0), "no cheaper one is named");
    let of_run = |most| BudgetLimit { until: i64::MAX, ..limit(BudgetScope::Run, most) };
    let check = async |limits: Vec<BudgetLimit>, place| {
        let outcome = db.reserve(wish("four", limits.clone())).await.unwrap();
        assert_eq!(outcome, too_little(place, 60, Some(14)), "{limits:?}");
    };
    db.settle(settlement("five", 60, 1));
    written(&db).await;
    check(vec![of_run(61), limit(BudgetScope::Person, 61)], 1).await;
    check(vec![of_run(61), limit(BudgetScope::Person, 1_000)], 0).await;
    check(vec![of_run(13), limit(BudgetScope::Person, 61)], 0).await;
}

pub(crate) async fn a_cheaper_model_goes_on_where_the_other_is_too_dear(db: Db) {
    let cost = |output| Some(OfferCost { currency: "USD".into(), input: 1, output });
    let small = |output| CallOffer { model: "small".into(), input: 10, output: 20, cost: cost(output) };
    let limits = || vec![dollars(limit(BudgetScope::Person, 45))];
    let wish = |id: &str, output| {
        let wish = wish(id, limits());
        Reservation { cheaper: Some((small(output), 900)), least: 10, ..wish }
    };
    assert_eq!(db.reserve(wish("dear", 2_000)).await.unwrap(), too_little(0, 0, Some(80)));
    let cheaper = ReserveOutcome::Granted { cheaper: true, short_of: Some(0), output: 20 };
    assert_eq!(db.reserve(wish("one", 40)).await.unwrap(), cheaper);
    assert_eq!(db.reserve(wish("two", 40)).await.unwrap(), ReserveOutcome::Busy(0));
    assert_eq!(db.reservable(&wish("two", 40)).await.unwrap(), ReserveOutcome::Busy(0));
    let none = Reservation { limits: Vec::new(), ..wish("free", 40) };
    assert_eq!(db.reserve(none).await.unwrap(), granted(40));
    assert_eq!(
        standing(&db, limits()[0].clone()).await.reserved,
        41 + 230,
        "what has no limit counts as well"
    );
}

/// A person who was forgotten while their call was under way costs their room something, and nobody else.
pub(crate) async fn who_is_forgotten_between_a_kill_and_a_start_stops_no_start(place: Place) {
    let dead = place.open().await;
    let limits = vec![limit(BudgetScope::Person, 1_000), limit(BudgetScope::Room, 1_000)];
    assert_eq!(dead.reserve(wish("one", limits.clone())).await.unwrap(), granted(40));
    dead.close().await;
    let db = place.open().await;
    let keys = crate::person::ada();
    assert!(db.is_person_at_work(&keys).await.unwrap(), "their call is not settled");
    assert!(db.forget_person(&keys, Vec::new(), Vec::new()).await.unwrap());
    db.close().await;
    // As a version before this one left it.
    run(&mut place.connect().await, "UPDATE reservations SET user_id = ''".to_owned()).await;
    let db = place.open().await;
    assert_eq!(db.settle_left().await.unwrap(), 1);
    assert!(!db.is_person_at_work(&keys).await.unwrap());
    let [share] = &db.spending_since(NOW).await.unwrap()[..] else { panic!("one call was left") };
    let told = (share.user.as_str(), share.room.as_str(), share.sum.usage.total());
    assert_eq!(told, ("", "room", 10));
    assert_eq!(standing(&db, limits[1].clone()).await.spent, 10);
    let local = BudgetLimit { subject: UserId::local().to_string(), ..limits[0].clone() };
    assert_eq!(standing(&db, local).await.spent, 0, "nobody else pays for it");
    db.close().await;
}

pub(crate) async fn shares_are_told_for_each_user_account_and_room_by_caller_and_model(db: Db) {
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
    written(&db).await;
    let shares = db.spending_since(NOW).await.unwrap();
    let told = shares.iter().map(|share| {
        assert_eq!((share.account.as_str(), share.room.as_str()), ("slack", "room"));
        let micros = share.sum.cost.as_ref().map(|cost| cost.micros);
        (share.user.as_str(), share.sum.caller.as_str(), share.sum.calls, share.sum.usage.total(), micros)
    });
    let expect =
        [("bob", "lead", 1, 100, Some(7)), ("ada", "lead", 2, 30, Some(14)), ("ada", "title", 1, 4, Some(7))];
    assert_eq!(told.collect::<Vec<_>>(), expect);
}

/// Any order of reservations, settlements, repeats and deaths leaves counters that are the sum of the calls, and never
/// more than the limit, as long as no call takes more than it may.
pub(crate) async fn whatever_happens_counters_are_the_sum_of_calls(place: Place) {
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
                    let wish = Reservation { call: of_user(id.clone()), ..wish(&id, vec![own.clone()]) };
                    match db.reserve(wish).await.unwrap() {
                        ReserveOutcome::Granted { output, .. } => open.push((id, output)),
                        ReserveOutcome::Busy(_) => assert!(!open.is_empty(), "others spend what is left"),
                        ReserveOutcome::TooLittle { .. } => assert!(sum > LIMIT - 14, "{sum} of {LIMIT}"),
                    }
                }
                5..9 if !open.is_empty() => {
                    let (id, output) = open.swap_remove(random.usize(..open.len()));
                    let tokens = 10 + random.u64(..=u64::try_from(output).unwrap());
                    let settlement = Settlement { call: of_user(id.clone()), ..settlement(&id, tokens, 1) };
                    // Again, with another figure: the first counts.
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
            written(&db).await;
            let standing = standing(&db, own.clone()).await;
            let may: i64 = open.iter().map(|(_, output)| 10 + output).sum();
            assert_eq!((standing.spent, standing.reserved), (sum, may), "seed {seed}, step {step}");
            assert!(standing.spent + standing.reserved <= LIMIT, "seed {seed}, step {step}: {standing:?}");
            let told =
                db.spending(&SpendingFilter::UserSince(UserId::from_raw(&user).unwrap(), NOW)).await.unwrap();
            let told: u64 = told.iter().map(|sum| sum.usage.total()).sum();
            assert_eq!(told, sum.unsigned_abs(), "seed {seed}, step {step}");
        }
        db.close().await;
    }
}

pub(crate) async fn what_a_dead_process_reserved_is_settled_for_its_prompt(place: Place) {
    let both = || vec![limit(BudgetScope::Person, 1_000), dollars(limit(BudgetScope::Person, 1_000))];
    let dead = place.open().await;
    for id in ["one", "two"] {
        assert_eq!(dead.reserve(wish(id, both())).await.unwrap(), granted(40));
    }
    dead.close().await;
    let db = place.open().await;
    assert_eq!(db.reserve(wish("own", both())).await.unwrap(), granted(40));
    assert_eq!(db.settle_left().await.unwrap(), 2);
    assert_eq!(db.settle_left().await.unwrap(), 0, "what works on is left alone");
    let standings = db.budget_standings(both()).await.unwrap();
    let told: Vec<_> = standings.iter().map(|standing| (standing.spent, standing.reserved)).collect();
    assert_eq!(told, [(20, 50), (60, 230)]);
    let sums = db.spending(&SpendingFilter::Run("run".into())).await.unwrap();
    assert_eq!((sums[0].calls, sums[0].unreported, sums[0].usage), (2, 2, Usage::plain(20, 0)));
    // Its end comes too late to count once more.
    db.settle(settlement("one", 50, 50));
    written(&db).await;
    assert_eq!(standing(&db, limit(BudgetScope::Person, 1_000)).await.spent, 20);
    db.close().await;
}

pub(crate) async fn what_was_spent_before_each_call_had_a_row_is_kept(place: Place) {
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
        DELETE FROM schema_version WHERE version >= 14"
    );
    run(&mut behind, BEFORE_ONE_RUN.into()).await;
    run(&mut behind, older).await;
    run(&mut behind, WITHOUT_CLIENT_RUNS.into()).await;
    run(&mut behind, WITHOUT_CLIENT_THREADS.into()).await;
    drop(behind);
    let db = place.open().await;
    let sums = db.spending(&SpendingFilter::Thread("thread".into())).await.unwrap();
    let told: Vec<_> = sums.iter().map(|sum| (sum.caller.as_str(), sum.calls, sum.usage.total())).collect();
    assert_eq!(told, [("lead", 3, 120), ("title", 1, 12)]);
    assert_eq!(sums[0].cost, Some(Cost { currency: "USD".into(), micros: 700 }));
    assert_eq!(standing(&db, limit(BudgetScope::Person, 1_000)).await.spent, 132);
    db.close().await;
}
