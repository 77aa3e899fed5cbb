use super::*;
use crate::{
    AgentSetup, ModelInfo, ModelPrice, RunTask,
    fixture::{TestAnswer, answer},
};
use futures_util::{StreamExt, future::join_all, stream};
use pudu_base::{
    Delta, Finish, Human, Message, Model, ModelCaller, ModelError, ModelStream, Outcome, Request,
    RetryReason, ToolCall, Usage,
};
use pudu_harness::{RunBounds, subagent};
use pudu_sandbox::{Folders, LocalSandboxes, Options};
use pudu_skills::Skills;
use pudu_store::{DbLocation, SpendingFilter, SpendingSum};
use serde_json::json;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// A model that gives its replies in order, and then repeats the last one.
struct Scripted {
    name: &'static str,
    replies: Mutex<VecDeque<Vec<Result<Delta, ModelError>>>>,
    asked: Mutex<Vec<Request>>,
    /// Whether its replies have no limit and use the whole allowance.
    greedy: bool,
}

impl Scripted {
    fn new(
        name: &'static str,
        replies: impl IntoIterator<Item = Vec<Result<Delta, ModelError>>>,
    ) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Self { name, replies, asked: Mutex::default(), greedy: false })
    }

    fn greedy(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, replies: Mutex::default(), asked: Mutex::default(), greedy: true })
    }

    fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn max_output(&self) -> Option<u64> {
        (!self.greedy).then_some(1_000)
    }

    fn stream(&self, request: Request) -> ModelStream {
        let may = request.most.map_or(50_000, u64::from);
        self.asked.lock().unwrap().push(request);
        if self.greedy {
            return stream::iter(says("Hello!", Usage::plain(300, may))).boxed();
        }
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        stream::iter(reply.unwrap_or_default()).boxed()
    }
}

fn says(text: &str, usage: Usage) -> Vec<Result<Delta, ModelError>> {
    vec![Ok(Delta::Text(text.into())), Ok(Delta::Usage(usage)), Ok(Delta::Finish(Finish::Complete))]
}

fn calls(tool: &str, args: serde_json::Value, usage: Usage) -> Vec<Result<Delta, ModelError>> {
    let call = ToolCall { id: "c".into(), name: tool.into(), args, garbled: None };
    let mut reply = says("Let me look.", usage);
    reply.insert(1, Ok(Delta::Call(call)));
    reply
}

fn rule(scope: BudgetScope, limit: i64) -> BudgetRule {
    let period = Some(BudgetPeriod::Day).filter(|_| scope != BudgetScope::Run);
    BudgetRule { scope, period, unit: BudgetUnit::Tokens, limit }
}

fn rules(limits: impl IntoIterator<Item = BudgetRule>) -> BudgetRules {
    BudgetRules { limits: limits.into_iter().collect(), warn: 800, cheaper: None }
}

struct Scene {
    agent: Agent,
    folders: Folders,
    _home: TempDir,
}

impl Scene {
    async fn new(models: impl IntoIterator<Item = Arc<Scripted>>, budgets: BudgetRules) -> Self {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let folders = Folders::new(home.path().to_owned(), None);
        let setup = Self::setup(&folders, models, budgets);
        Self { agent: Agent::new(db, folders.clone(), setup, Skills::none()), folders, _home: home }
    }

    fn setup(
        folders: &Folders,
        models: impl IntoIterator<Item = Arc<Scripted>>,
        budgets: BudgetRules,
    ) -> AgentSetup {
        let places = Arc::new(LocalSandboxes::new(folders.clone(), None, Options::default()));
        let price = |name: &str| ModelPrice {
            currency: "USD".into(),
            input: if name == "large" { 10.0 } else { 1.0 },
            output: 20.0,
            cached: None,
            cache_writes: None,
        };
        let known = models.into_iter().map(|model| {
            let (name, price) = (model.name.to_owned(), Some(price(model.name)));
            let info = ModelInfo { price, ..ModelInfo::named(&name) };
            (info, model as Arc<dyn Model>)
        });
        let bounds = RunBounds { steps: 5, time: Duration::from_secs(60), ..RunBounds::default() };
        let setup = AgentSetup::new(known, [], bounds, places);
        AgentSetup {
            titles: None,
            subagents: subagent::Kinds::new(subagent::builtin(), bounds.at_once),
            budgets: Arc::new(BudgetSetup::new(budgets, &setup.models)),
            ..setup
        }
    }

    async fn run(&self, run: &str) -> TestAnswer {
        let input = vec![Human::new(run, "Hello")];
        let room = Some(UserId::from_raw("room").unwrap());
        let task = RunTask { input, room, ..RunTask::new(format!("thread-{run}").into(), run.into()) };
        answer(&self.agent, task).await
    }

    fn meter(&self) -> Meter {
        Meter::new(&self.agent, "thread".into(), "run".into(), Spender::default())
    }

    async fn spent(&self) -> Vec<SpendingSum> {
        // Settlements are written before later writes.
        self.agent.0.db.save_position("telegram", "1", 1).await.unwrap();
        let today = SpendingFilter::UserSince(UserId::local(), now());
        self.agent.0.db.spending(&today).await.unwrap()
    }

    async fn standing(&self, rule: BudgetRule) -> BudgetStanding {
        let limit = rule.limit("", now());
        self.agent.0.db.budget_standings(vec![limit]).await.unwrap()[0]
    }
}

async fn ask(model: &Arc<dyn Model>) -> Vec<Result<Delta, ModelError>> {
    model.stream(Request { system: "Be brief.".into(), ..Request::default() }).collect().await
}

#[tokio::test]
async fn two_hundred_runs_at_once_stay_within_one_budget() {
    const LIMIT: i64 = 30_000;
    let everybody = || rule(BudgetScope::Everybody, LIMIT);
    let model = Scripted::new("large", [says("Hello!", Usage::plain(300, 40))]);
    let scene = Scene::new([model.clone()], rules([everybody()])).await;
    let names: Vec<String> = (0..200).map(|number| format!("run-{number}")).collect();
    let ends = join_all(names.iter().map(|name| scene.run(name))).await;
    let answered = ends.iter().filter(|end| end.outcome == Outcome::Success).count();
    let refused = ends.iter().filter(|end| end.outcome.used_budget().is_some()).count();
    let standing = scene.standing(everybody()).await;
    assert_eq!((answered + refused, standing.reserved), (200, 0));
    assert_eq!(standing.spent, i64::try_from(answered).unwrap() * 340, "every served token is counted");
    let one = i64::try_from(pudu_harness::estimated_tokens(&model.asked()[0])).unwrap() + 1_000;
    assert!((LIMIT - one..=LIMIT).contains(&standing.spent), "{standing:?}, of one call {one}");
    assert_eq!(
        ends.iter().map(|end| end.budgets.len()).sum::<usize>(),
        1,
        "exactly one answer has the warning"
    );
}

#[tokio::test]
async fn no_reply_of_two_hundred_runs_exceeds_the_budget_even_without_a_model_limit() {
    const LIMIT: i64 = 100_000;
    let everybody = || rule(BudgetScope::Everybody, LIMIT);
    let model = Scripted::greedy("large");
    let scene = Scene::new([model.clone()], rules([everybody()])).await;
    let names: Vec<String> = (0..200).map(|number| format!("run-{number}")).collect();
    let ends = join_all(names.iter().map(|name| scene.run(name))).await;
    let answered = ends.iter().filter(|end| end.outcome == Outcome::Success).count();
    let standing = scene.standing(everybody()).await;
    assert!(answered > 5 && standing.spent <= LIMIT, "{answered} answers, {standing:?}");
    let caps: Vec<_> = model.asked().iter().map(|request| request.most).collect();
    assert!(caps.iter().all(|most| most.is_some_and(|most| most <= 8_192)), "{caps:?}");
}

#[tokio::test]
async fn each_further_attempt_needs_its_own_reservation() {
    let again = Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::Garbled, free: false };
    let first = vec![Ok(Delta::Text("Hel".into())), Ok(Delta::Usage(Usage::plain(1_900, 100))), Ok(again)];
    let reply = [first, says("Hello!", Usage::plain(1_000, 10))].concat();
    for (limit, is_answered, spent) in [(4_000, true, 3_010), (3_999, false, 2_000)] {
        let model = Scripted::new("large", [reply.clone()]);
        let everybody = || rule(BudgetScope::Everybody, limit);
        let scene = Scene::new([model.clone()], rules([everybody()])).await;
        let request = Request { system: "x".repeat(3_000), ..Request::default() };
        let deltas: Vec<_> = metered(model, &scene.meter()).stream(request).collect().await;
        let refused = matches!(deltas.last(), Some(Err(ModelError::Budget(used))) if !used.busy);
        assert_eq!((is_answered, refused), (deltas.iter().all(Result::is_ok), !is_answered), "{deltas:?}");
        scene.spent().await;
        let standing = scene.standing(everybody()).await;
        assert_eq!((standing.spent, standing.reserved), (spent, 0), "{limit}");
    }
}

#[tokio::test]
async fn a_call_is_reserved_at_the_price_of_the_most_expensive_possible_model() {
    let reply = || [says("Hello!", Usage::plain(100, 10))];
    let (small, large) = (Scripted::new("small", reply()), Scripted::new("large", reply()));
    let money = BudgetRule { unit: BudgetUnit::Money("USD".into()), ..rule(BudgetScope::Everybody, 20_000) };
    let scene = Scene::new([small.clone(), large.clone()], rules([money])).await;
    let both = Arc::new(pudu_harness::Fallback::new(small.clone(), vec![large]));
    let request = Request { system: "x".repeat(3_000), ..Request::default() };
    metered(both, &scene.meter()).stream(request).collect::<Vec<_>>().await;
    // The prompt costs ten thousand with the large model, and a tenth of that with the small one.
    assert_eq!(small.asked()[0].most, Some(500));
}

/// Learning after a run succeeds although the run's own budget is used up, and does not wait.
#[tokio::test]
async fn learning_ignores_run_budgets_and_does_not_wait_for_other_calls() {
    let model = Scripted::new("large", [says("Hello!", Usage::plain(10, 10))]);
    let limits = [rule(BudgetScope::Run, 1), rule(BudgetScope::Everybody, 2_500)];
    let scene = Scene::new([model.clone()], rules(limits)).await;
    let metered_model = metered(model, &scene.meter());
    let request = |caller| Request { system: "x".repeat(3_000), caller, ..Request::default() };
    let lead: Vec<_> = metered_model.stream(request(ModelCaller::Lead)).collect().await;
    let [Err(ModelError::Budget(small))] = &lead[..] else { panic!("{lead:?}") };
    let expect =
        "The budget of each run is 1 tokens, and this answer needs about 1256 tokens. Waiting does not help";
    assert!(small.to_string().starts_with(expect), "{small}");
    let mut open = metered_model.stream(request(ModelCaller::Memory));
    assert_eq!(open.next().await, Some(Ok(Delta::Text("Hello!".into()))));
    let second: Vec<_> = metered_model.stream(request(ModelCaller::Memory)).collect().await;
    let [Err(ModelError::Budget(busy))] = &second[..] else { panic!("{second:?}") };
    assert_eq!((busy.scope, busy.busy), (BudgetScope::Everybody, true));
    assert!(busy.to_string().starts_with("The shared budget of all users is not used up, but"), "{busy}");
    assert!(open.all(async |delta| delta.is_ok()).await);
    assert!(metered_model.stream(request(ModelCaller::Memory)).all(async |delta| delta.is_ok()).await);
}

#[tokio::test]
async fn a_call_that_waited_reads_before_it_writes() {
    let model = Scripted::new("large", [says("Hello!", Usage::plain(10, 10))]);
    let scene = Scene::new([model.clone()], rules([rule(BudgetScope::Everybody, 2_500)])).await;
    let metered_model = metered(model, &scene.meter());
    let request = || Request { system: "x".repeat(3_000), ..Request::default() };
    let mut open = metered_model.stream(request());
    assert_eq!(open.next().await, Some(Ok(Delta::Text("Hello!".into()))));
    let before = scene.agent.0.db.commits();
    let waiting = tokio::spawn(metered_model.stream(request()).collect::<Vec<_>>());
    for _ in 0..2_000 {
        scene.agent.0.settled.notify_waiters();
        tokio::task::yield_now().await;
    }
    // The notification is also sent for other budgets.
    assert!(scene.agent.0.db.commits() - before <= 1 && !waiting.is_finished());
    assert!(open.all(async |delta| delta.is_ok()).await);
    assert!(waiting.await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_users_budget_is_not_reported_in_a_room() {
    let model =
        Scripted::new("large", [says("Hello!", Usage::plain(8_500, 0)), says("Hello!", Usage::plain(1, 0))]);
    let limits = [rule(BudgetScope::Person, 10_000), rule(BudgetScope::Account, 10_000)];
    let scene = Scene::new([model], rules(limits)).await;
    let meter = |room: Option<&str>| {
        let spender =
            Spender { room: room.map(|room| UserId::from_raw(room).unwrap()), ..Spender::default() };
        Meter::new(&scene.agent, "thread".into(), "run".into(), spender)
    };
    assert_eq!(scene.run("one").await.outcome, Outcome::Success);
    let scopes =
        |notices: Vec<BudgetNotice>| notices.iter().map(|one| one.state.rule.scope).collect::<Vec<_>>();
    assert_eq!(scopes(meter(Some("room")).notices(None).await), [], "the warning is below the answer");
    assert_eq!(
        scopes(meter(None).notices(None).await),
        [BudgetScope::Person],
        "and sent to the person in private"
    );
    assert_eq!(scopes(meter(None).notices(None).await), [], "once");
}

#[tokio::test]
async fn a_run_is_stopped_between_its_calls_and_the_next_run_calls_no_model() {
    let model = Scripted::new("large", [calls("nothing", json!({}), Usage::plain(9_000, 900))]);
    let scene = Scene::new([model.clone()], rules([rule(BudgetScope::Room, 10_000)])).await;
    let end = scene.run("one").await;
    let used = end.outcome.used_budget().unwrap().clone();
    let midnight = (now() / DAY_MS + 1) * DAY_MS;
    assert_eq!(
        (used.scope, used.period, used.opens),
        (BudgetScope::Room, Some(BudgetPeriod::Day), Some(midnight))
    );
    assert_eq!((end.text.as_str(), model.asked().len()), ("Let me look.", 1));
    assert_eq!(end.budgets, [], "after the notice about the used-up budget no warning follows");
    let next = scene.run("two").await;
    let again = next.outcome.used_budget().unwrap();
    let figures = |used: &UsedBudget| used.short.clone().map(|short| (short.left, short.limit));
    assert_eq!((figures(&used), figures(again)), (Some((100, 10_000)), Some((100, 10_000))));
    assert_eq!((again.scope, again.opens), (used.scope, used.opens));
    assert_eq!((next.text.as_str(), model.asked().len()), ("", 1));
    // A limit that is raised at run time applies to the next call.
    let raised = rules([rule(BudgetScope::Room, 1_000_000)]);
    scene.agent.configure(Scene::setup(&scene.folders, [model.clone()], raised));
    assert_eq!(scene.run("three").await.outcome.used_budget(), None);
}

#[tokio::test]
async fn the_model_and_users_are_warned_once_and_a_cheaper_model_continues() {
    let reply = |tokens| says("Hello!", Usage::plain(tokens, 0));
    let large = Scripted::new("large", [reply(70_000), reply(12_000), reply(1)]);
    let small = Scripted::new("small", [reply(100)]);
    let cheaper = Some(CheaperModel { name: "small".into(), from: 800 });
    let budgets = BudgetRules { cheaper, ..rules([rule(BudgetScope::Room, 100_000)]) };
    let scene = Scene::new([large.clone(), small.clone()], budgets).await;
    assert_eq!(scene.run("one").await.budgets, []);
    let [notice] = &scene.run("two").await.budgets[..] else { panic!("nobody was notified") };
    assert_eq!((notice.state.spent, notice.cheaper.as_deref()), (82_000, Some("small")));
    assert_eq!((large.asked().len(), small.asked().len()), (2, 0));
    let third = scene.run("three").await;
    assert_eq!((third.outcome, third.budgets), (Outcome::Success, vec![]));
    assert_eq!((large.asked().len(), small.asked().len()), (2, 1));
    let hint = |request: &Request| {
        request
            .messages
            .iter()
            .any(|message| matches!(&**message, Message::Reminder(hint) if hint.text.contains("82 %")))
    };
    assert_eq!((hint(&large.asked()[1]), hint(&small.asked()[0])), (false, true));
    let spent = scene.spent().await;
    let by: Vec<_> = spent.iter().map(|sum| (sum.model.as_str(), sum.calls, sum.usage.total())).collect();
    assert_eq!(by, [("large", 2, 82_000), ("small", 1, 100)]);
}

#[tokio::test]
async fn spending_of_sub_agents_counts_for_their_user_and_run() {
    let task = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    let replies = [
        calls("task", task, Usage::plain(1_000, 10)),
        says("Found it.", Usage::plain(5_000, 50)),
        says("Done.", Usage::plain(1_200, 12)),
    ];
    let both = [rule(BudgetScope::Run, 100_000), rule(BudgetScope::Person, 100_000)];
    let scene = Scene::new([Scripted::new("large", replies)], rules(both.clone())).await;
    let end = scene.run("one").await;
    assert_eq!((end.outcome, end.tokens), (Outcome::Success, 7_272));
    let spent = scene.spent().await;
    let by: Vec<_> = spent.iter().map(|sum| (sum.caller.as_str(), sum.calls, sum.usage.total())).collect();
    assert_eq!(by, [("subagent", 1, 5_050), ("lead", 2, 2_222)]);
    for (rule, subject) in both.iter().zip(["one", "default"]) {
        let standing = scene.agent.0.db.budget_standings(vec![rule.limit(subject, now())]).await.unwrap()[0];
        assert_eq!((standing.spent, standing.reserved), (7_272, 0), "{rule:?}");
    }
}

static CLOCK: AtomicI64 = AtomicI64::new(0);

#[tokio::test]
async fn a_budget_resets_after_its_day_or_month() {
    let at = |time: &str| time.parse::<Timestamp>().unwrap().as_millisecond();
    let set = |time: &str| CLOCK.store(at(time), Ordering::SeqCst);
    let model = Scripted::new("large", [says("Hello!", Usage::plain(1_900, 0))]);
    let month = BudgetRule { period: Some(BudgetPeriod::Month), ..rule(BudgetScope::Person, 4_000) };
    let scene = Scene::new([model.clone()], rules([rule(BudgetScope::Person, 2_000), month])).await;
    let meter = scene.meter().with_clock(|| CLOCK.load(Ordering::SeqCst));
    let metered_model = metered(model.clone(), &meter);
    let check = async |time: &str, expect: Option<&str>| {
        set(time);
        let deltas = ask(&metered_model).await;
        let refused = deltas.iter().find_map(|delta| match delta {
            Err(ModelError::Budget(used)) => Some((used.opens, used.to_string())),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        });
        assert_eq!(refused.and_then(|(opens, _)| opens), expect.map(at), "at {time}");
    };
    check("2026-02-26T23:59:59Z", None).await;
    check("2026-02-26T23:59:59Z", Some("2026-02-27T00:00:00Z")).await;
    check("2026-02-27T00:00:00Z", None).await;
    // The daily budget allows the call, the monthly one does not.
    check("2026-02-28T12:00:00Z", Some("2026-03-01T00:00:00Z")).await;
    check("2026-03-01T00:00:00Z", None).await;
    assert_eq!(model.asked().len(), 3);
}

#[tokio::test]
async fn each_attempt_counts_with_reported_or_estimated_usage() {
    let check = async |reply: Vec<Result<Delta, ModelError>>, read: usize, expect: &[(i64, i64, u64)]| {
        let model = Scripted::new("large", [reply.clone()]);
        let everybody = || rule(BudgetScope::Everybody, 1_000_000);
        let scene = Scene::new([model.clone()], rules([everybody()])).await;
        let metered_model = metered(model.clone(), &scene.meter());
        let request = Request { system: "x".repeat(3_000), ..Request::default() };
        // The reader stops after this number of pieces.
        metered_model.stream(request).take(read).collect::<Vec<_>>().await;
        let spent = scene.spent().await;
        let sums: Vec<_> = spent.iter().map(|sum| (sum.calls, sum.unreported, sum.usage.total())).collect();
        assert_eq!(sums, expect, "{reply:?}");
        let standing = scene.standing(everybody()).await;
        let sum: u64 = spent.iter().map(|sum| sum.usage.total()).sum();
        assert_eq!((standing.spent, standing.reserved), (i64::try_from(sum).unwrap(), 0), "{reply:?}");
    };
    let text = |text: &str| Ok(Delta::Text(text.into()));
    let again =
        || Ok(Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::Busy, free: true });
    let failed = || {
        Ok(Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::Unreachable, free: false })
    };
    let usage = |tokens| Ok(Delta::Usage(Usage::plain(tokens, 0)));
    let finish = || Ok(Delta::Finish(Finish::Complete));
    let busy = || Err(ModelError::Busy { retry_after: None, limited: true, detail: "429".into() });
    let cut = || Err(ModelError::Unreachable("cut".into()));
    check(vec![text("Hi"), usage(7), finish()], 9, &[(1, 0, 7)]).await;
    // A prompt of 3,000 bytes is 1,000 tokens, and six bytes of a reply are two.
    check(vec![text("Hello!"), finish()], 9, &[(1, 1, 1_002)]).await;
    check(vec![text("Hello!"), usage(7), finish()], 1, &[(1, 1, 1_002)]).await;
    check(vec![text("Hello!"), again(), text("Hi"), usage(7), finish()], 9, &[(2, 1, 1_009)]).await;
    check(vec![again(), text("Hi"), usage(7), finish()], 9, &[(1, 0, 7)]).await;
    // The provider has processed the prompt of an interrupted attempt.
    check(vec![failed(), text("Hi"), usage(7), finish()], 9, &[(2, 1, 1_007)]).await;
    check(vec![busy()], 9, &[]).await;
    check(vec![text("Hello!"), busy()], 9, &[(1, 1, 1_002)]).await;
    check(vec![cut()], 9, &[(1, 1, 1_000)]).await;
    check(vec![usage(9), finish()], 0, &[]).await;
}

#[tokio::test]
async fn without_budgets_calls_are_settled_without_reservations() {
    let model = Scripted::new("large", [says("Hello!", Usage::plain(1_000, 100))]);
    let scene = Scene::new([model], BudgetRules::default()).await;
    let before = scene.agent.0.db.commits();
    assert_eq!(scene.run("one").await.outcome, Outcome::Success);
    let commits = scene.agent.0.db.commits() - before;
    let [sum] = &scene.spent().await[..] else { panic!("there must be one call") };
    let cost = sum.cost.as_ref().map(|cost| cost.micros);
    assert_eq!(
        (sum.usage.total(), cost, sum.caller.as_str()),
        (1_100, Some(12_000), ModelCaller::Lead.as_str())
    );
    // The messages, and the answer with its cost.
    assert!(commits <= 2, "a settlement has its own transaction: {commits}");
}

#[tokio::test]
async fn a_budget_in_money_limits_the_cost_of_a_reply() {
    let model = Scripted::new("large", [says("Hello!", Usage::plain(1_000, 100))]);
    // 1,000 tokens of the prompt cost ten thousand millionths, and 500 of the reply as much.
    let money = BudgetRule { unit: BudgetUnit::Money("USD".into()), ..rule(BudgetScope::Everybody, 20_000) };
    let scene = Scene::new([model.clone()], rules([money])).await;
    let metered_model = metered(model.clone(), &scene.meter());
    let request = || Request { system: "x".repeat(3_000), ..Request::default() };
    let first: Vec<_> = metered_model.stream(request()).collect().await;
    assert!(first.iter().all(Result::is_ok), "{first:?}");
    assert_eq!(model.asked()[0].most, Some(500));
    let second: Vec<_> = metered_model.stream(request()).collect().await;
    assert!(matches!(second[..], [Err(ModelError::Budget(_))]), "{second:?}");
    let pounds =
        BudgetRule { unit: BudgetUnit::Money("GBP".into()), ..rule(BudgetScope::Everybody, i64::MAX) };
    let scene = Scene::new([model.clone()], rules([pounds])).await;
    let unpriced = ask(&metered(model, &scene.meter())).await;
    assert!(
        matches!(unpriced[..], [Err(ModelError::Budget(_))]),
        "a model without a price is not called: {unpriced:?}"
    );
}

/// A run that is stopped during its reservation leaves the budget to others.
#[tokio::test]
async fn an_abandoned_reservation_is_released() {
    let model = Scripted::new("large", [says("Hello!", Usage::plain(10, 10))]);
    let everybody = || rule(BudgetScope::Everybody, 1_000_000);
    let scene = Scene::new([model.clone()], rules([everybody()])).await;
    let metered_model = metered(model.clone(), &scene.meter());
    for _ in 0..50 {
        let mut deltas = metered_model.stream(Request::default());
        // The store has the request, but has not answered.
        assert!(futures_util::FutureExt::now_or_never(deltas.next()).is_none());
    }
    while scene.standing(everybody()).await.reserved > 0 || !scene.agent.tasks().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!((scene.spent().await, model.asked().len()), (vec![], 0));
}
