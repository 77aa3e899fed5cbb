use crate::fixture::NOW;
use pudu_store::{Db, MAX_UNUSED_CODES, Paired};

const EXPIRY: i64 = NOW + 600_000;

fn person(id: &str, at: i64) -> Paired {
    Paired { account: "telegram".into(), person: id.into(), name: format!("{id}'s name"), at }
}

pub(crate) async fn a_code_admits_one_person_until_it_expires(db: Db) {
    assert!(db.offer_code("telegram", "h1", EXPIRY, NOW).await.unwrap());
    let redeem = async |hash: &str, who: Paired| db.redeem_code(hash, who).await.unwrap();
    assert!(!redeem("h2", person("7", NOW)).await, "an unknown code");
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
    assert!(!redeem("h1", person("7", NOW + 4)).await, "the same code does not admit them again");
}

pub(crate) async fn the_number_of_open_codes_is_limited(db: Db) {
    for n in 0..MAX_UNUSED_CODES {
        assert!(db.offer_code("telegram", &format!("h{n}"), EXPIRY, NOW).await.unwrap());
    }
    assert!(!db.offer_code("telegram", "more", EXPIRY, NOW).await.unwrap());
    assert!(db.offer_code("slack", "other", EXPIRY, NOW).await.unwrap(), "each account has its own");
    assert!(db.redeem_code("h0", person("7", NOW)).await.unwrap());
    assert!(db.offer_code("telegram", "instead", EXPIRY, NOW).await.unwrap(), "used codes do not count");
    assert!(
        db.offer_code("telegram", "late", EXPIRY * 2, EXPIRY).await.unwrap(),
        "expired codes do not count"
    );
}
