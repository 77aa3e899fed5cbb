//! The daemon on PostgreSQL.

use crate::house::{House, Talker};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// Returns the URL of a new database, or says that the test is skipped.
async fn database() -> Option<(String, String)> {
    let local = || "postgres://postgres@127.0.0.1:5432/postgres".to_owned();
    let server = std::env::var("PUDU_TEST_POSTGRES").unwrap_or_else(|_| local());
    let mut connection = match PgConnection::connect(&server).await {
        Ok(connection) => connection,
        Err(error) => {
            assert!(std::env::var("PUDU_REQUIRE_SERVERS").is_err(), "PostgreSQL does not answer: {error}");
            println!("skipped: PostgreSQL does not answer: {error}");
            return None;
        }
    };
    let name = format!("pudu_it_{}", std::process::id());
    let make = AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(make).execute(&mut connection).await.unwrap();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    Some((server, url.into()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_in_postgresql_survives_a_kill() {
    let Some((server, url)) = database().await else { return };
    let database = format!("database:\n  backend: postgres\n  postgres_url: {url}\n");
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
    let name = url.rsplit('/').next().unwrap();
    let mut connection = PgConnection::connect(&server).await.unwrap();
    let drop = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
    sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
}
