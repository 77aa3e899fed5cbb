//! The daemon on PostgreSQL.

use crate::house::{House, Talker};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// A database of a test.
pub struct Database {
    server: String,
    name: String,
    pub url: String,
}

/// Returns the URL of a server, or says that the test is skipped.
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

/// Makes a database, or says that the test is skipped.
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
