use crate::{
    fixture::{NOW, turn},
    learning::learning,
};
use pudu_base::UserId;
use pudu_store::{
    Db, Deletion, Identity, JoinCode, Learning, LearningReader, MemoryMerge, NewTurn, Paired, PartedPerson,
    RecallLimits, RecallScope, Spender, ThreadQuery, TurnId, unpaired_user,
};

fn identity(account: &str, person: &str, at: i64) -> Identity {
    let (account, person, name) = (account.to_owned(), person.to_owned(), "Ada".to_owned());
    Identity { account, person, user: UserId::from_raw("ada").unwrap(), name, at }
}

fn parted(account: &str, person: &str, route: &str) -> PartedPerson {
    PartedPerson { account: account.into(), person: person.into(), route: route.into() }
}

fn code(hash: &str) -> JoinCode {
    let (account, issuer) = ("slack".into(), "U1".into());
    JoinCode { hash: hash.into(), account, issuer, offer: "{}".into(), expires: NOW + 10 }
}

pub(crate) async fn a_code_joins_one_person_once_and_opens_nothing(db: Db) {
    db.identify(identity("slack", "U1", NOW)).await.unwrap();
    db.offer_join(code("old")).await.unwrap();
    db.offer_join(code("new")).await.unwrap();
    assert_eq!(db.join_offer("old", NOW).await.unwrap(), None, "a new code takes the place of the old one");
    assert_eq!(db.join_offer("new", NOW).await.unwrap().as_deref(), Some("{}"));
    assert_eq!(db.join_offer("new", NOW + 10).await.unwrap(), None, "it was good for a while");
    let (account, person, name) = ("slack".into(), "U9".into(), "Eve".into());
    let eve = Paired { account, person, name, at: NOW };
    assert!(!db.redeem_code("new", eve).await.unwrap(), "it lets nobody in");
    let join = async |person: &str, at| {
        db.join("new", identity("telegram", person, at), identity("slack", "U1", NOW), None, "")
            .await
            .unwrap()
    };
    assert!(!join("7", NOW + 10).await);
    assert!(join("7", NOW).await && join("7", NOW).await, "as a platform delivers again");
    assert!(!join("8", NOW).await, "it is good once");
    assert_eq!(
        db.identities().await.unwrap(),
        [identity("slack", "U1", NOW), identity("telegram", "7", NOW)]
    );
    assert_eq!(db.part("telegram", "7").await.unwrap(), [parted("telegram", "7", "")]);
    assert_eq!(db.part("telegram", "7").await.unwrap(), []);
    assert_eq!(db.identities().await.unwrap(), [identity("slack", "U1", NOW)]);
}

/// Makes one user of two people of an account: `shows` shows the code of `issuer`, who is `user`. Its hash is both names.
async fn join_to(db: &Db, shows: &str, issuer: &str, user: &UserId) -> bool {
    let is = |person: &str| Identity { user: user.clone(), ..identity("slack", person, NOW) };
    let hash = format!("{shows}-{issuer}");
    db.offer_join(JoinCode { issuer: issuer.into(), ..code(&hash) }).await.unwrap();
    db.join(&hash, is(shows), is(issuer), Some(unpaired_user("slack", shows)), shows).await.unwrap()
}

async fn who_is(db: &Db) -> Vec<(String, UserId)> {
    db.identities().await.unwrap().into_iter().map(|known| (known.person, known.user)).collect()
}

pub(crate) async fn who_parts_leaves_nobody_behind_who_is_them_or_came_by_them(db: Db) {
    let me = |person: &str| unpaired_user("slack", person);
    let is = |person: &str, user: &str| (person.to_owned(), me(user));
    // Whoever showed it goes alone.
    assert!(join_to(&db, "ada", "bob", &me("bob")).await);
    assert_eq!(db.part("slack", "ada").await.unwrap(), [parted("slack", "ada", "ada")]);
    assert_eq!(who_is(&db).await, [is("bob", "bob")]);

    // Whose code it was is by themselves again, and so is the other one, who does not come back by the code.
    assert!(join_to(&db, "ada", "bob", &me("bob")).await);
    assert_eq!(db.part("slack", "bob").await.unwrap(), [parted("slack", "ada", "ada")]);
    assert_eq!(who_is(&db).await, [is("bob", "bob")]);
    let again = Identity { user: me("bob"), ..identity("slack", "ada", NOW) };
    let bob = Identity { person: "bob".into(), ..again.clone() };
    assert!(!db.join("ada-bob", again, bob, None, "").await.unwrap());

    // A joined B, B joined C, and somebody came by A: when B parts, nobody else is B.
    assert!(join_to(&db, "ada", "bob", &me("bob")).await);
    assert!(join_to(&db, "eve", "ada", &me("bob")).await);
    assert!(join_to(&db, "bob", "cy", &me("cy")).await);
    let gone = ["ada", "eve", "bob"].map(|person| parted("slack", person, person));
    assert_eq!(db.part("slack", "bob").await.unwrap(), gone);
    assert_eq!(who_is(&db).await, [is("cy", "cy")]);

    // Of a user whom no code made, the intruder goes and the owner stays.
    let dan = Identity { user: UserId::from_raw("moved").unwrap(), ..identity("slack", "dan", NOW) };
    db.identify(dan.clone()).await.unwrap();
    assert!(join_to(&db, "eve", "dan", &dan.user).await);
    assert_eq!(db.part("slack", "dan").await.unwrap(), [parted("slack", "eve", "eve")]);
    assert_eq!(who_is(&db).await, [is("cy", "cy"), ("dan".into(), dan.user)]);
    assert_eq!(db.part("slack", "dan").await.unwrap(), [parted("slack", "dan", "")]);
}

pub(crate) async fn who_parts_takes_their_memory_back_before_it_is_merged(db: Db) {
    let me = |person: &str| unpaired_user("slack", person);
    for who in ["ada", "bob"] {
        assert!(join_to(&db, "ada", "bob", &me("bob")).await);
        let waits = MemoryMerge { source: me("ada"), target: me("bob") };
        assert_eq!(db.memory_merges().await.unwrap(), [waits]);
        db.part("slack", who).await.unwrap();
        assert_eq!(db.memory_merges().await.unwrap(), [], "{who}");
    }
}

pub(crate) async fn a_code_ends_when_its_owner_becomes_somebody_else(db: Db) {
    let me = |person: &str| unpaired_user("slack", person);
    let offers = async |issuer: &str, hash: &str| {
        db.offer_join(JoinCode { issuer: issuer.into(), ..code(hash) }).await.unwrap();
    };
    // By joining somebody, and by parting.
    offers("bob", "old").await;
    assert!(join_to(&db, "bob", "cy", &me("cy")).await);
    assert_eq!(db.join_offer("old", NOW).await.unwrap(), None);
    offers("bob", "of-cy").await;
    db.part("slack", "bob").await.unwrap();
    assert_eq!(db.join_offer("of-cy", NOW).await.unwrap(), None);
    // And in another way: it promised somebody else.
    offers("bob", "new").await;
    db.identify(Identity { user: me("cy"), ..identity("slack", "bob", NOW) }).await.unwrap();
    let is = |person: &str| Identity { user: me("bob"), ..identity("slack", person, NOW) };
    assert!(!db.join("new", is("ada"), is("bob"), None, "").await.unwrap());
}

pub(crate) async fn who_joins_another_brings_the_memory_unless_it_is_somebody_elses_too(db: Db) {
    let user = |name: &str| UserId::from_raw(name).unwrap();
    let is = |person: &str, name: &str| Identity { user: user(name), ..identity("telegram", person, NOW) };
    let joins = async |person: &str, was: &str, issuer: &str| {
        let code = JoinCode { hash: format!("{person}-{issuer}"), issuer: issuer.into(), ..code("") };
        db.offer_join(code.clone()).await.unwrap();
        let owner = Identity { account: "slack".into(), ..is(issuer, issuer) };
        db.identify(owner.clone()).await.unwrap();
        assert!(db.join(&code.hash, is(person, issuer), owner, Some(user(was)), "").await.unwrap());
    };
    let merge = |source: &str, target: &str| MemoryMerge { source: user(source), target: user(target) };
    db.set_memory_off(&user("own7"), true).await.unwrap();
    joins("7", "own7", "ada").await;
    joins("7", "own7", "ada").await;
    assert_eq!(db.memory_merges().await.unwrap(), [merge("own7", "ada")]);
    assert!(db.is_memory_off(&user("ada")).await.unwrap(), "the stricter of both");
    assert!(db.is_memory_off(&user("own7")).await.unwrap(), "and theirs, if they part");
    // Both of them are Ada, so her memory stays where it is when one goes.
    joins("7", "ada", "bob").await;
    assert_eq!(db.memory_merges().await.unwrap(), [merge("own7", "ada")]);
    // What is on its way to somebody who is another one by now goes there.
    db.identify(Identity { account: "slack".into(), ..is("ada", "cy") }).await.unwrap();
    joins("8", "ada", "cy").await;
    assert_eq!(db.memory_merges().await.unwrap(), [merge("ada", "cy"), merge("own7", "cy")]);

    let of_ada = learning("run", NOW);
    // Cy pays for it from now on.
    let spender = Spender { user: user("cy"), ..of_ada.spender.clone() };
    let of_cy = Learning { user: user("cy"), spender, ..of_ada.clone() };
    db.keep_learning(of_ada.clone(), 0).await.unwrap();
    let other = Learning { thread: "other".into(), ..of_ada.clone() };
    for learning in [&other, &Learning { user: user("cy"), ..other.clone() }] {
        db.keep_learning(learning.clone(), 0).await.unwrap();
    }
    let reader = LearningReader { name: "reader".into(), until: NOW + 9 };
    assert!(db.claim_learning(&of_ada, &reader, NOW).await.unwrap());
    let turn = crate::recall::turn("ada", "1", "thread", "I like tea");
    db.index(std::slice::from_ref(&turn)).await.unwrap();
    for _ in 0..2 {
        db.move_turns(&user("ada"), &user("cy")).await.unwrap();
        db.memory_merged(&merge("ada", "cy")).await.unwrap();
        assert_eq!(db.memory_merges().await.unwrap(), [merge("own7", "cy")]);
        let waiting = db.learnings(NOW, 9).await.unwrap();
        assert_eq!(waiting.len(), 2, "{waiting:?}");
        assert!(waiting.contains(&of_cy) && waiting.iter().all(|learning| learning.user == user("cy")));
        let limits = RecallLimits { facts: 9, turns: 9 };
        let scope = |name: &str| RecallScope { user: user(name), ..turn.scope.clone() };
        assert_eq!(db.recall(&scope("ada"), "tea", limits).await.unwrap(), <_>::default());
        let found = db.recall(&scope("cy"), "tea", limits).await.unwrap().turns;
        assert_eq!(found.iter().map(|hit| hit.doc.as_str()).collect::<Vec<_>>(), ["1"]);
    }
    assert!(!db.learnt(&of_ada, &reader, "m1").await.unwrap(), "it is Cy's by now");
}

pub(crate) async fn who_spoke_in_a_rooms_thread_is_its_member_as_long_as_they_are_linked(db: Db) {
    let user = |name: &str| UserId::from_raw(name).unwrap();
    let opened = |id: &str, people: &[&str]| NewTurn {
        people: people.iter().map(|person| (*person).to_owned()).collect(),
        ..turn(id, &[])
    };
    let reads = async |name: &str| {
        let filter = ThreadQuery { limit: 9, ..ThreadQuery::default() };
        let listed = db.find_threads(&user(name), &filter).await.unwrap().threads;
        let found = listed.iter().any(|thread| thread.id.as_str() == "thread");
        assert_eq!(db.is_thread_member(&"thread".into(), &user(name)).await.unwrap(), found, "{name}");
        found
    };
    db.open_turn(&opened("t", &["7", "7"])).await.unwrap();
    db.join_turn(&TurnId("t".into()), &[], vec!["8".into()]).await.unwrap();
    db.open_turn(&NewTurn { folder: None, ..opened("command", &["9"]) }).await.unwrap();
    for (person, name) in [("7", "ada"), ("8", "bob"), ("9", "cy")] {
        assert!(!reads(name).await, "nobody knows yet who {person} is");
        db.identify(Identity { user: user(name), ..identity("telegram", person, NOW) }).await.unwrap();
        db.identify(Identity { user: user("eve"), ..identity("slack", person, NOW) }).await.unwrap();
    }
    assert_eq!(
        [reads("ada").await, reads("bob").await, reads("cy").await, reads("eve").await],
        [true, true, false, false]
    );
    db.part("telegram", "8").await.unwrap();
    assert_eq!([reads("ada").await, reads("bob").await], [true, false]);
    for id in ["t", "command"] {
        db.park(&TurnId(id.into()), "late", NOW).await.unwrap();
    }
    assert_eq!(db.delete_thread(&"thread".into(), NOW, &"next".into()).await.unwrap(), Deletion::Done);
    assert!(!reads("ada").await);
    db.open_turn(&opened("new", &[])).await.unwrap();
    assert!(!reads("ada").await, "members go with their thread");
}
