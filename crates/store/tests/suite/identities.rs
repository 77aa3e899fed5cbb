use crate::fixture::NOW;
use pudu_base::UserId;
use pudu_store::{Db, Identity, JoinCode, Paired};

fn identity(account: &str, person: &str, at: i64) -> Identity {
    let (account, person, name) = (account.to_owned(), person.to_owned(), "Ada".to_owned());
    Identity { account, person, user: UserId::of("ada").unwrap(), name, at }
}

fn code(hash: &str) -> JoinCode {
    let (account, issuer) = ("slack".into(), "U1".into());
    JoinCode { hash: hash.into(), account, issuer, offer: "{}".into(), expires: NOW + 10 }
}

pub(crate) async fn a_code_joins_one_person_once_and_opens_nothing(db: Db) {
    db.offer_join(code("old")).await.unwrap();
    db.offer_join(code("new")).await.unwrap();
    assert_eq!(db.join_offer("old", NOW).await.unwrap(), None, "a new code takes the place of the old one");
    assert_eq!(db.join_offer("new", NOW).await.unwrap().as_deref(), Some("{}"));
    assert_eq!(db.join_offer("new", NOW + 10).await.unwrap(), None, "it was good for a while");
    let (account, person, name) = ("slack".into(), "U9".into(), "Eve".into());
    let eve = Paired { account, person, name, at: NOW };
    assert!(!db.redeem_code("new", eve).await.unwrap(), "it lets nobody in");
    let join = async |person: &str, at| {
        db.join("new", identity("telegram", person, at), identity("slack", "U1", at)).await.unwrap()
    };
    assert!(!join("7", NOW + 10).await);
    assert!(join("7", NOW).await && join("7", NOW).await, "as a platform delivers again");
    assert!(!join("8", NOW).await, "it is good once");
    assert_eq!(
        db.identities().await.unwrap(),
        [identity("slack", "U1", NOW), identity("telegram", "7", NOW)]
    );
    assert!(db.part("telegram", "7").await.unwrap() && !db.part("telegram", "7").await.unwrap());
    assert_eq!(db.identities().await.unwrap(), [identity("slack", "U1", NOW)]);
}
