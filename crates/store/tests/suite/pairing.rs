use crate::fixture::NOW;
use pudu_store::{Db, MAX_UNUSED_CODES, Paired};

const EXPIRY: i64 = NOW + 600_000;

fn person(id: &str, at: i64) -> Paired {
    Paired { account: "telegram".into(), person: id.into(), name: format!("{id}'s name"), at }
}

pub(crate) async fn a_code_is_good_for_one_person_and_for_its_time(db: Db) {
    assert!(db.offer_code("telegram", "h1", EXPIRY, NOW).await.unwrap());
    let redeem = async |hash: &str, who: Paired| db.redeem_code(hash, who).await.unwrap();
    assert!(!redeem("h2", person("7", NOW)).await, "a code that was never offered");
    let elsewhere = Paired { account: "slack".into(), ..person("7", NOW) };
    assert!(!redeem("h1", elsewhere).await, "a code of another account");
    assert!(!redeem("h1", person("7", EXPIRY)).await, "too late");
    assert!(redeem("h1", person("7", NOW + 1)).await);
    assert!(redeem("h1", person("7", NOW + 2)).await, "the same person's message, delivered again");
    assert!(!redeem("h1", person("8", NOW + 3)).await, "another person");
    assert_eq!(db.paired().await.unwrap(), [person("7", NOW + 1)]);
    assert!(db.unpair("telegram", "7").await.unwrap());
    assert!(!db.unpair("telegram", "7").await.unwrap());
    assert_eq!(db.paired().await.unwrap(), []);
    assert!(!redeem("h1", person("7", NOW + 4)).await, "who was let go does not come back by the same code");
}

pub(crate) async fn codes_do_not_pile_up(db: Db) {
    for n in 0..MAX_UNUSED_CODES {
        assert!(db.offer_code("telegram", &format!("h{n}"), EXPIRY, NOW).await.unwrap());
    }
    assert!(!db.offer_code("telegram", "more", EXPIRY, NOW).await.unwrap());
    assert!(db.offer_code("slack", "other", EXPIRY, NOW).await.unwrap(), "each account has its own");
    assert!(db.redeem_code("h0", person("7", NOW)).await.unwrap());
    assert!(db.offer_code("telegram", "instead", EXPIRY, NOW).await.unwrap(), "a used one counts no more");
    assert!(db.offer_code("telegram", "late", EXPIRY * 2, EXPIRY).await.unwrap(), "nor do old ones");
}
