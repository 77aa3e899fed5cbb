//! Budgets: users are warned, a cheaper model takes over, a run is stopped between calls, and the operator knows the
//! spending after any interruption.

use crate::house::{House, SOON, Talker, http};
use pudu_base::BudgetScope;
use pudu_sim::{
    model::{Answer, Ask, Reply},
    telegram::{Kind, Options},
};
use pudu_store::{BudgetLimit, BudgetUnit, Db, SpendingSum};
use serde_json::{Value, json};

const USED_UP: &str = "⚠️ Your budget for today is used up. It resets at 00:00 UTC.";

/// Returns the newest question without its time and sender.
fn echo(ask: &Ask) -> Answer {
    Reply::text(&format!("echo: {}", ask.last_user())).usage(900, 100)
}

async fn house(rest: &str) -> House {
    let mut house = House::furnish(Options::default(), "", rest).await;
    house.model.otherwise(|ask| echo(ask).into());
    house.start();
    house
}

/// Returns the spending, and today's counter of spent and reserved tokens.
async fn counted(db: &Db) -> (Vec<SpendingSum>, i64, i64) {
    let shares = db.spending_since(0).await.unwrap();
    let today = pudu_store::now() / (24 * 60 * 60 * 1000);
    let all = BudgetLimit {
        scope: BudgetScope::Everybody,
        subject: String::new(),
        since: today,
        until: today + 1,
        unit: BudgetUnit::Tokens,
        limit: 0,
    };
    let standing = db.budget_standings(vec![all]).await.unwrap()[0];
    (shares.into_iter().map(|share| share.sum).collect(), standing.spent, standing.reserved)
}

fn total(sums: &[SpendingSum]) -> i64 {
    i64::try_from(sums.iter().map(|sum| sum.usage.total()).sum::<u64>()).unwrap()
}

#[tokio::test]
async fn a_person_hears_that_little_is_left_and_a_stopped_run_keeps_what_it_said() {
    let house = house("budgets: {person: {tokens_per_day: 100000}}\n").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("One.").usage(85_000, 0));
    ada.says("first", "One.\n\nYour budget for today is 85 % used. It resets at 00:00 UTC.").await;
    let look =
        Reply::text("Let me look.").tool("ls", &json!({"path": "/mnt/user-data", "description": "Looking"}));
    house.model.next(look.usage(16_000, 0));
    let stopped = format!("Let me look.\n\n{USED_UP}");
    ada.says("second", &stopped).await;
    let hints =
        |ask: &Ask| ask.messages().iter().any(|message| message["content"].to_string().contains("85 %"));
    let asked: Vec<bool> = house.model.requests().iter().map(|ask| hints(ask)).collect();
    assert_eq!(asked, [false, true], "the model is told as well");
    ada.says("third", USED_UP).await;
    assert_eq!(house.model.count(), 2, "nobody is asked any more");
    let usage = ada.say("/usage");
    let told = ada.reads_so(|text| text.contains("Budgets:")).await;
    assert!(
        told.contains("Your budget for today: 101000 tokens of 100000 tokens spent, 0 tokens left"),
        "{told}"
    );
    assert!(usage.0 > 0 && told.contains("Tokens in this conversation"), "{told}");
    let bob = Talker::new(&house, "Bob");
    bob.says("hello", "echo: hello").await;
    assert_eq!(ada.answers().len(), 4, "one answer for each message");
    // A raised limit takes effect immediately.
    house.configure("", "budgets: {person: {tokens_per_day: 1000000}}\n");
    ada.says("fourth", "echo: fourth").await;
}

/// The end of the message when too little is left.
const LEFT: &str = "too little for another answer. It resets at 00:00 UTC.";

#[tokio::test]
async fn what_merely_does_not_suffice_is_not_told_as_used_up() {
    let house =
        house("budgets: {person: {tokens_per_day: 100000}, everybody: {tokens_per_day: 110000}}\n").await;
    let ada = Talker::new(&house, "Ada");
    let look =
        Reply::text("Let me look.").tool("ls", &json!({"path": "/mnt/user-data", "description": "Looking"}));
    house.model.next(look.usage(97_000, 0));
    // The warning about another budget comes with the refusal.
    let near = "The shared budget of all users for today is 88 % used. It resets at 00:00 UTC.";
    let short = format!("⚠️ Your budget for today has 3000 tokens of 100000 tokens left, {LEFT}");
    ada.says("first", &format!("Let me look.\n\n{short}\n\n{near}")).await;
    ada.says("second", &short).await;
    ada.say("/usage");
    let told = ada.reads_so(|text| text.contains("Budgets:")).await;
    assert!(told.contains("97000 tokens of 100000 tokens spent, 3000 tokens left"), "{told}");
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("none is exhausted"), "{doctor}");
    let (good, out) = house.pudu(&["usage", "--json"]);
    let facts: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (good, &facts["budgets"][0]["used_up"], &facts["budgets"][0]["left"]),
        (true, &json!(false), &json!(3_000))
    );
    assert_eq!(house.model.count(), 1);
}

#[tokio::test]
async fn in_a_room_the_one_whose_budget_it_is_has_a_name_and_nobody_reads_the_rest_of_it() {
    let budgets = "budgets: {person: {tokens_per_day: 100000}}\n";
    let mut house = House::furnish(Options::default(), "require_mention: false", budgets).await;
    house.model.otherwise(|ask| echo(ask).into());
    house.start();
    let ada = Talker::new(&house, "Ada");
    let bob = Talker::new(&house, "Bob");
    let team = house.telegram.add_group(Kind::Group, "team", &[ada.person, bob.person]);
    let (ada, bob) = (ada.at(team), bob.at(team));
    house.model.next(Reply::text("One.").usage(97_000, 0));
    ada.says("first", "One.").await;
    let scant = "The budget of Ada for today is too small for another answer. It resets at 00:00 UTC.";
    ada.says("second", &format!("⚠️ {scant}")).await;
    house.configure("require_mention: false", "budgets: {person: {tokens_per_day: 90000}}\n");
    ada.says("third", "⚠️ The budget of Ada for today is used up. It resets at 00:00 UTC.").await;
    bob.says("hello", "echo: [Bob] hello").await;
}

#[tokio::test]
async fn a_budget_that_is_too_small_for_any_answer_says_who_can_mend_it() {
    let house = house("budgets: {run: {tokens: 1000}}\n").await;
    let help = "Waiting does not help: /new starts a shorter conversation, and your admin can raise the limit \
                (budgets.run).";
    let ada = Talker::new(&house, "Ada");
    ada.say("hello");
    let told = ada.reads_so(|text| text.contains("budget")).await;
    assert!(
        told.starts_with("⚠️ The budget of each run is 1000 tokens, and this answer needs about "),
        "{told}"
    );
    assert!(told.ends_with(help), "{told}");
    assert_eq!(house.model.count(), 0);
    let log = house.log();
    assert!(log.contains("found too small budget: The budget of each run is 1000 tokens"), "{log}");
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("too small for any answer: The budget of each run is 1000 tokens"), "{doctor}");
    assert!(doctor.contains("raise the limit under `budgets.run`"), "{doctor}");
}

/// Configures a second, smaller model; both have a price.
fn with_small(house: &House, budgets: &str) {
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let price = |input: u32| {
        format!("    pricing: {{currency: USD, input_per_million: {input}, output_per_million: 1}}\n")
    };
    let (url, large, small) = (house.model.url(), price(100), price(1));
    let models = format!(
        "max_retries: 3\n{large}  - name: small\n    use: langchain_openai:ChatOpenAI\n    model: sim-small\n    \
         base_url: {url}\n    api_key: sk-simulated-key-0123456789\n{small}"
    );
    house.write_config(&(config.replace("max_retries: 3\n", &models) + budgets));
    house.model.otherwise(|ask| echo(ask).into());
}

#[tokio::test]
async fn before_a_refusal_the_cheaper_model_answers_and_people_are_told() {
    let mut house = House::furnish(Options::default(), "", "").await;
    with_small(&house, "budgets: {person: {cost_per_day: 2}, cheaper_model: small}\n");
    house.start();
    let ada = Talker::new(&house, "Ada");
    // Seven tenths: less than 80 %, but the rest does not pay for a prompt of the large model.
    house.model.next(Reply::text("One.").usage(14_000, 0));
    ada.says("first", "One.").await;
    let near = "Your budget for today is 70 % used. It resets at 00:00 UTC. The rest of the budget is too \
                small for the other model, so small answers.";
    ada.says("second", &format!("echo: second\n\n{near}")).await;
    ada.says("third", "echo: third").await;
    let asked: Vec<String> = house.model.requests().iter().map(|ask| ask.model().to_owned()).collect();
    assert_eq!(asked, ["sim-1", "sim-small", "sim-small"]);
}

#[tokio::test]
async fn a_cheaper_model_goes_on_where_one_is_named() {
    let mut house = House::furnish(Options::default(), "", "").await;
    let budgets = "budgets: {room: {tokens_per_day: 100000}, person: {tokens_per_month: 100000}, cheaper_model: small, cheaper_threshold: 0.5}\n";
    with_small(&house, budgets);
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("One.").usage(50_000, 0));
    ada.says("first", "One.").await;
    ada.says("second", "echo: second").await;
    let asked: Vec<String> = house.model.requests().iter().map(|ask| ask.model().to_owned()).collect();
    assert_eq!(asked, ["sim-1", "sim-small"]);
    ada.say("/usage");
    let told = ada.reads_so(|text| text.contains("Budgets:")).await;
    assert!(told.contains("small, for answers: 900 read, 100 written"), "{told}");
    assert!(told.contains("Your budget for this month: 51000 tokens of 100000 tokens spent"), "{told}");
    assert!(!told.contains("room"), "a private chat is no room: {told}");
}

#[tokio::test]
async fn forty_chats_at_once_stay_within_one_budget_and_each_gets_one_answer() {
    const LIMIT: i64 = 20_000;
    let mut house = house(&format!("budgets: {{everybody: {{tokens_per_day: {LIMIT}}}}}\n")).await;
    let people: Vec<Talker> = (0..40).map(|number| Talker::new(&house, &format!("P{number}"))).collect();
    for person in &people {
        person.say("hello");
    }
    let is_refused = |text: &str| text.starts_with("⚠️ The shared budget of all users for today has ");
    let mut answered = 0;
    for person in &people {
        let text = person.reads_so(|text| text.starts_with("echo: hello") || is_refused(text)).await;
        answered += i64::from(!is_refused(&text));
        assert_eq!(person.answers().len(), 1);
    }
    assert!(house.stop().await.success());
    let db = house.database().await;
    let (sums, spent, reserved) = counted(&db).await;
    assert_eq!((spent, reserved, total(&sums)), (answered * 1_000, 0, answered * 1_000));
    assert!(spent <= LIMIT && answered < 40 && answered > 5, "{answered} were answered");
    assert_eq!(house.model.count(), answered.unsigned_abs());
}

#[tokio::test]
async fn what_is_spent_is_counted_once_though_the_daemon_is_killed_around_it() {
    let budgets = "budgets: {everybody: {tokens_per_day: 1000000}}\n";
    let points = [
        (budgets, "spending.reserve.before"),
        (budgets, "spending.reserve.after"),
        (budgets, "spending.settle.before"),
        (budgets, "spending.settle.after"),
        (budgets, "run.ended.before"),
        ("", "spending.settle.after"),
        ("", "run.ended.before"),
        ("", "turn.conclude.before"),
    ];
    for (rest, point) in points {
        let mut house = House::furnish(Options::default(), "", rest).await;
        house.model.otherwise(|ask| echo(ask).into());
        house.set("PUDU_CRASH_AT", &format!("{point}#1"));
        house.start();
        let ada = Talker::new(&house, "Ada");
        ada.say("hello");
        assert!(house.ended(SOON).await.is_some(), "{point} was not passed");
        house.set("PUDU_CRASH_AT", "");
        house.start();
        ada.reads("echo: hello").await;
        assert!(house.stop().await.success());
        let db = house.database().await;
        let (sums, spent, reserved) = counted(&db).await;
        assert_eq!((spent, reserved), (total(&sums), 0), "{point}: {sums:?}");
        let [calls, estimated] = [|sum: &SpendingSum| sum.calls, |sum: &SpendingSum| sum.unreported]
            .map(|count| sums.iter().map(count).sum::<i64>());
        let served = i64::try_from(house.model.count()).unwrap();
        // A reserved call that was never made counts with its prompt.
        let never_made = i64::from(point == "spending.reserve.after");
        assert_eq!(calls, served + never_made, "{rest}{point}: {sums:?}");
        let expect = match point {
            "spending.settle.after" => [0, 0],
            // The usage of the first call may have been committed separately, just before the daemon died.
            "run.ended.before" | "turn.conclude.before" => [0, calls - 1],
            _ => [calls - 1, calls - 1],
        };
        assert!(expect.contains(&estimated), "{rest}{point}: {sums:?}");
        assert!(total(&sums) >= 1_000, "{rest}{point}: {sums:?}");
        db.close().await;
    }
}

#[tokio::test]
async fn whoever_runs_pudu_sees_what_everybody_spends() {
    let rest = "budgets: {person: {tokens_per_day: 30000}, account: {tokens_per_month: 1000000}}\n";
    let mut house = house("").await;
    house
        .model
        .otherwise(|ask| Reply::text(&format!("echo: {}", ask.last_user())).usage(18_000, 2_000).into());
    let (good, out) = house.pudu(&["usage"]);
    assert_eq!((good, out.trim()), (true, "There is no spending yet."));
    let ada = Talker::new(&house, "Ada");
    ada.says("one", "echo: one").await;
    ada.says("two", "echo: two").await;
    house.configure("", rest);
    ada.says("three", USED_UP).await;
    let read =
        |out: &str| serde_json::from_str::<Value>(out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let check = |facts: &Value| {
        let sum = |key: &str| (facts[key][0]["calls"].clone(), facts[key][0]["total_tokens"].clone());
        for key in ["people", "accounts", "models"] {
            assert_eq!(sum(key), (json!(2), json!(40_000)), "{key}: {facts}");
        }
        assert_eq!(facts["accounts"][0]["name"], "telegram");
        assert_eq!(facts["rooms"], json!([]));
        let budgets: Vec<_> = facts["budgets"].as_array().unwrap().iter().collect();
        let told: Vec<_> = budgets.iter().map(|one| (&one["scope"], &one["left"], &one["used_up"])).collect();
        let expect = [("person", 0, true), ("account", 960_000, false)];
        let expect = expect.map(|(scope, left, used)| (json!(scope), json!(left), json!(used)));
        assert_eq!(told, expect.iter().map(|(scope, left, used)| (scope, left, used)).collect::<Vec<_>>());
        assert!(budgets[0]["opens"].as_str().unwrap().ends_with("T00:00:00.000Z"), "{facts}");
    };
    let (good, out) = house.pudu(&["usage", "--json", "--days", "2"]);
    assert!(good, "{out}");
    check(&read(&out));
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("1 exhausted: person "), "{doctor}");
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let address = format!("http://{}/api/usage", house.address);
    let asked = http().get(&address).bearer_auth(token.trim()).send().await.unwrap();
    check(&asked.json().await.unwrap());
    assert_eq!(http().get(&address).send().await.unwrap().status().as_u16(), 401, "nobody else is told");
    assert!(house.stop().await.success());
    let (good, out) = house.pudu(&["usage", "--json"]);
    assert!(good, "{out}");
    check(&read(&out));
    let (good, table) = house.pudu(&["usage"]);
    assert!(good && table.contains("36000 input tokens, 4000 output tokens, 2 calls"), "{table}");
    assert!(table.contains("40000 of 30000 tokens spent, exhausted"), "{table}");
    assert!(
        table.contains("Purposes\n  lead: 36000 input tokens") && !table.contains("forgotten"),
        "{table}"
    );
}

#[tokio::test]
async fn deerflows_token_budget_stops_a_run_and_a_sub_agent() {
    let rest =
        "token_budget: {enabled: true, max_tokens: 30000}\nsubagents: {token_budget: {max_tokens: 2000}}\n";
    let house = house(rest).await;
    let ada = Talker::new(&house, "Ada");
    let ls =
        || Reply::text("Looking.").tool("ls", &json!({"path": "/mnt/user-data", "description": "Looking"}));
    let task = json!({"description": "d", "prompt": "find it", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task).usage(1_000, 0));
    house.model.next(ls().usage(1_900, 200));
    house.model.next(ls().usage(22_000, 0));
    house.model.next(ls().usage(5_000, 0));
    let stopped =
        "The budget of this run is used up, so I stop here. Write \"go on\" and I continue in a new run.";
    ada.says("go", &format!("Looking.\n\nLooking.\n\n⚠️ {stopped}")).await;
    let requests = house.model.requests();
    assert_eq!(requests.len(), 4);
    assert!(
        requests[2].last_tool().contains("Task Succeeded (capped: token budget). Result: Looking."),
        "{requests:#?}"
    );
    let hints =
        |ask: &Ask| ask.messages().iter().any(|one| one["content"].to_string().contains("25100 of 30000"));
    assert_eq!(requests.iter().map(|ask| hints(ask)).collect::<Vec<_>>(), [false, false, false, true]);
    ada.says("go on", "echo: go on").await;
}
