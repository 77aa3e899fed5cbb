//! Errors about damaged and inaccessible files.

use crate::fixture::{Place, accept};
use pudu_store::{Db, DbLocation, StoreError};
use std::{fs, io::Write, os::unix::fs::PermissionsExt};
use tempfile::TempDir;

async fn refusal(location: &DbLocation) -> StoreError {
    Db::open(location).await.map(drop).unwrap_err()
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_reported_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pudu.db");
    fs::File::create(&path).unwrap().write_all(&[7; 8192]).unwrap();
    let damaged = StoreError::Corrupt("file is not a database".into());
    assert_eq!(refusal(&DbLocation::Sqlite(path)).await, damaged);
}

#[tokio::test]
async fn a_damaged_page_is_reported_when_it_is_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pudu.db");
    let place = Place::file(&path);
    let db = place.open().await;
    accept(&db, "1").await;
    db.close().await;
    let mut bytes = fs::read(&path).unwrap();
    bytes.iter_mut().skip(4096).for_each(|byte| *byte = 0xab);
    fs::write(&path, bytes).unwrap();
    let error = match Db::open(&place.location).await {
        Ok(db) => db.pending().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error, StoreError::Corrupt("database disk image is malformed".into()));
}

#[tokio::test]
async fn a_folder_is_not_a_database() {
    let folder = TempDir::new().unwrap();
    let error = refusal(&DbLocation::Sqlite(folder.path().into())).await;
    assert!(matches!(&error, StoreError::Refused(why) if why.contains("Is a directory")), "{error}");
}

#[tokio::test]
async fn the_file_is_readable_only_by_its_owner() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new").join("pudu.db");
    let db = Place::file(&path).open().await;
    accept(&db, "1").await;
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = [mode(folder.path().join("new")), mode(path.clone()), mode(path.with_extension("db-wal"))];
    assert_eq!(modes, [0o700, 0o600, 0o600]);
    db.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported_without_the_password() {
    let url = pudu_store::PostgresUrl::parse("postgres://pudu:hunter2@127.0.0.1:1/x").unwrap();
    let error = refusal(&DbLocation::Postgres(url)).await;
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
}
