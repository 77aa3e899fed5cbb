//! The daemon on PostgreSQL.

use crate::house::{House, Talker};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

/// A database of a test.
pub struct Database {
    server: String,
    name: String,
    pub url: String,
}

/// Returns the URL of a server, or prints that the test is skipped.
pub async fn server() -> Option<String> {
    let local = || "postgres://postgres@127.0.0.1:5432/postgres".to_owned();
    let server = std::env::var("PUDU_TEST_POSTGRES").unwrap_or_else(|_| local());
    match PgConnection::connect(&server).await {
        Ok(_) => Some(server),
        Err(error) => {
            assert!(std::env::var("PUDU_REQUIRE_SERVERS").is_err(), "PostgreSQL does not answer: {error}");
            println!("skipped: PostgreSQL does not answer: {error}");
            None
        }
    }
}

/// Creates a database, or prints that the test is skipped.
pub async fn database(name: &str) -> Option<Database> {
    let server = server().await?;
    let name = format!("pudu_it_{name}_{}", std::process::id());
    run(&server, format!("CREATE DATABASE {name}")).await;
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    Some(Database { server, name, url: url.into() })
}

async fn run(server: &str, sql: String) {
    let mut connection = PgConnection::connect(server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
}

impl Database {
    pub async fn drop(self) {
        run(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_in_postgresql_survives_a_kill() {
    let Some(kept) = database("kill").await else { return };
    let database = format!("database:\n  backend: postgres\n  postgres_url: {}\n", kept.url);
    let mut house = House::furnish(Default::default(), "", &database).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("my name is Ada", "echo: my name is Ada").await;
    let mut hold = house.model.hold(1, pudu_sim::model::At::Start);
    ada.say("what is my name?");
    hold.reached().await.unwrap();
    house.kill();
    hold.cut();
    house.start();
    ada.reads("echo: what is my name?").await;
    let request = house.model.requests().last().unwrap().clone();
    assert_eq!(request.messages()[1]["content"], "my name is Ada");
    assert_eq!(ada.answers().len(), 2);
    assert!(!house.path(".pudu/data").exists(), "nothing is kept beside it");
    house.stop().await;
    kept.drop().await;
}

/// Output of programs may contain any bytes. PostgreSQL refuses a NUL in a text, and a run whose end cannot be stored
/// would stay open forever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_in_a_result_and_an_answer_leaves_no_run_open_on_either_store() {
    let kept = database("nul").await;
    let postgres =
        kept.as_ref().map(|kept| format!("database:\n  backend: postgres\n  postgres_url: {}\n", kept.url));
    for database in [Some(String::new()), postgres].into_iter().flatten() {
        let rest = format!("approvals: {{dangerous: allow}}\nsandbox: {{allow_host_bash: true}}\n{database}");
        let mut house = House::furnish(Default::default(), "", &rest).await;
        house.start();
        let ada = Talker::new(&house, "Ada");
        let command = serde_json::json!({"command": "printf 'a\\000b'"});
        house.model.next(pudu_sim::model::Reply::tool("bash", &command));
        house.model.next(pudu_sim::model::Reply::text("It prints a\0b."));
        ada.say("run it");
        ada.reads_so(|text| text.starts_with("It prints a") && text.ends_with("b.")).await;
        let asked = house.model.requests().last().unwrap().body.to_string();
        assert!(!asked.contains("\\u0000"), "no provider gets it: {asked}");
        house.kill();
        house.start();
        ada.says("and now?", "echo: and now?").await;
        house.stop().await;
        const OPEN: &str = "SELECT COUNT(*), SUM(CASE WHEN ended IS NULL THEN 1 ELSE 0 END) FROM";
        let counted: (i64, i64) = match database.is_empty() {
            true => {
                let file = house.path(".pudu/data/pudu.db");
                let mut connection =
                    SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
                let sql = AssertSqlSafe(format!("{OPEN} runs"));
                sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap()
            }
            false => {
                let mut connection = PgConnection::connect(&kept.as_ref().unwrap().url).await.unwrap();
                let sql = AssertSqlSafe(format!("{OPEN} pudu.runs"));
                sqlx::query_as(sql).fetch_one(&mut connection).await.unwrap()
            }
        };
        assert_eq!(counted, (2, 0), "two runs, none open: {database}");
    }
    if let Some(kept) = kept {
        kept.drop().await;
    }
}
