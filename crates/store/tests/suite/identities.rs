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

fn unlinked(account: &str, person: &str, route: &str) -> PartedPerson {
    PartedPerson { account: account.into(), person: person.into(), route: route.into() }
}

fn code(hash: &str) -> JoinCode {
    let (account, issuer) = ("slack".into(), "U1".into());
    JoinCode { hash: hash.into(), account, issuer, offer: "{}".into(), expires: NOW + 10 }
}

pub(crate) async fn a_code_links_one_person_once_and_admits_nobody(db: Db) {
    db.identify(identity("slack", "U1", NOW)).await.unwrap();
    db.offer_join(code("old")).await.unwrap();
    db.offer_join(code("new")).await.unwrap();
    assert_eq!(db.join_offer("old", NOW).await.unwrap(), None, "a new code replaces the old one");
    assert_eq!(db.join_offer("new", NOW).await.unwrap().as_deref(), Some("{}"));
    assert_eq!(db.join_offer("new", NOW + 10).await.unwrap(), None, "it has expired");
    let (account, person, name) = ("slack".into(), "U9".into(), "Eve".into());
    let eve = Paired { account, person, name, at: NOW };
    assert!(!db.redeem_code("new", eve).await.unwrap(), "it admits nobody");
    let join = async |person: &str, at| {
        db.join("new", identity("telegram", person, at), identity("slack", "U1", NOW), None, "")
            .await
            .unwrap()
    };
    assert!(!join("7", NOW + 10).await);
    assert!(join("7", NOW).await && join("7", NOW).await, "platforms redeliver messages");
    assert!(!join("8", NOW).await, "it can be used once");
    assert_eq!(
        db.identities().await.unwrap(),
        [identity("slack", "U1", NOW), identity("telegram", "7", NOW)]
    );
    assert_eq!(db.part("telegram", "7").await.unwrap(), [unlinked("telegram", "7", "")]);
    assert_eq!(db.part("telegram", "7").await.unwrap(), []);
    assert_eq!(db.identities().await.unwrap(), [identity("slack", "U1", NOW)]);
}

/// Links two people of a bot: `sender` sends the code of `issuer`, who is `user`. The code's hash consists of both names.
async fn link(db: &Db, sender: &str, issuer: &str, user: &UserId) -> bool {
    let is = |person: &str| Identity { user: user.clone(), ..identity("slack", person, NOW) };
    let hash = format!("{sender}-{issuer}");
    db.offer_join(JoinCode { issuer: issuer.into(), ..code(&hash) }).await.unwrap();
    db.join(&hash, is(sender), is(issuer), Some(unpaired_user("slack", sender)), sender).await.unwrap()
}

async fn users(db: &Db) -> Vec<(String, UserId)> {
    db.identities().await.unwrap().into_iter().map(|known| (known.person, known.user)).collect()
}

pub(crate) async fn unlinking_a_person_also_unlinks_everyone_linked_through_them(db: Db) {
    let own_user = |person: &str| unpaired_user("slack", person);
    let is = |person: &str, user: &str| (person.to_owned(), own_user(user));
    // The person who sent the code is unlinked alone.
    assert!(link(&db, "ada", "bob", &own_user("bob")).await);
    assert_eq!(db.part("slack", "ada").await.unwrap(), [unlinked("slack", "ada", "ada")]);
    assert_eq!(users(&db).await, [is("bob", "bob")]);

    // Unlinking the issuer also unlinks the sender, whose code can no longer be used.
    assert!(link(&db, "ada", "bob", &own_user("bob")).await);
    assert_eq!(db.part("slack", "bob").await.unwrap(), [unlinked("slack", "ada", "ada")]);
    assert_eq!(users(&db).await, [is("bob", "bob")]);
    let again = Identity { user: own_user("bob"), ..identity("slack", "ada", NOW) };
    let bob = Identity { person: "bob".into(), ..again.clone() };
    assert!(!db.join("ada-bob", again, bob, None, "").await.unwrap());

    // Ada joined Bob, Eve joined Ada, and Bob joined Cy: unlinking Bob unlinks all three.
    assert!(link(&db, "ada", "bob", &own_user("bob")).await);
    assert!(link(&db, "eve", "ada", &own_user("bob")).await);
    assert!(link(&db, "bob", "cy", &own_user("cy")).await);
    let expected = ["ada", "eve", "bob"].map(|person| unlinked("slack", person, person));
    assert_eq!(db.part("slack", "bob").await.unwrap(), expected);
    assert_eq!(users(&db).await, [is("cy", "cy")]);

    // For an imported user, unlinking the owner removes the intruder and keeps the owner.
    let dan = Identity { user: UserId::from_raw("moved").unwrap(), ..identity("slack", "dan", NOW) };
    db.identify(dan.clone()).await.unwrap();
    assert!(link(&db, "eve", "dan", &dan.user).await);
    assert_eq!(db.part("slack", "dan").await.unwrap(), [unlinked("slack", "eve", "eve")]);
    assert_eq!(users(&db).await, [is("cy", "cy"), ("dan".into(), dan.user)]);
    assert_eq!(db.part("slack", "dan").await.unwrap(), [unlinked("slack", "dan", "")]);
}

pub(crate) async fn an_unlinked_person_keeps_memory_that_is_not_merged_yet(db: Db) {
    let own_user = |person: &str| unpaired_user("slack", person);
    for who in ["ada", "bob"] {
        assert!(link(&db, "ada", "bob", &own_user("bob")).await);
        let waits = MemoryMerge { source: own_user("ada"), target: own_user("bob") };
        assert_eq!(db.memory_merges().await.unwrap(), [waits]);
        db.part("slack", who).await.unwrap();
        assert_eq!(db.memory_merges().await.unwrap(), [], "{who}");
    }
}

pub(crate) async fn a_code_expires_when_its_owner_becomes_another_user(db: Db) {
    let own_user = |person: &str| unpaired_user("slack", person);
    let offers = async |issuer: &str, hash: &str| {
        db.offer_join(JoinCode { issuer: issuer.into(), ..code(hash) }).await.unwrap();
    };
    // By joining another user, and by being unlinked.
    offers("bob", "old").await;
    assert!(link(&db, "bob", "cy", &own_user("cy")).await);
    assert_eq!(db.join_offer("old", NOW).await.unwrap(), None);
    offers("bob", "of-cy").await;
    db.part("slack", "bob").await.unwrap();
    assert_eq!(db.join_offer("of-cy", NOW).await.unwrap(), None);
    // The code was issued for another user than its issuer is now.
    offers("bob", "new").await;
    db.identify(Identity { user: own_user("cy"), ..identity("slack", "bob", NOW) }).await.unwrap();
    let is = |person: &str| Identity { user: own_user("bob"), ..identity("slack", person, NOW) };
    assert!(!db.join("new", is("ada"), is("bob"), None, "").await.unwrap());
}

pub(crate) async fn linking_moves_the_memory_unless_another_person_shares_it(db: Db) {
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
    assert!(db.is_memory_off(&user("ada")).await.unwrap(), "the stricter setting of both");
    assert!(db.is_memory_off(&user("own7")).await.unwrap(), "also after an unlink");
    // Two identities are Ada, so her memory does not move when one of them leaves.
    joins("7", "ada", "bob").await;
    assert_eq!(db.memory_merges().await.unwrap(), [merge("own7", "ada")]);
    // A pending merge follows its target to another user.
    db.identify(Identity { account: "slack".into(), ..is("ada", "cy") }).await.unwrap();
    joins("8", "ada", "cy").await;
    assert_eq!(db.memory_merges().await.unwrap(), [merge("ada", "cy"), merge("own7", "cy")]);

    let of_ada = learning("run", NOW);
    // From now on it counts for Cy.
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
    assert!(!db.learnt(&of_ada, &reader, "m1").await.unwrap(), "it now belongs to Cy");
}

pub(crate) async fn the_author_of_a_room_message_is_a_thread_member_while_linked(db: Db) {
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
        assert!(!reads(name).await, "{person} is not linked yet");
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
    assert!(!reads("ada").await, "members are deleted with their thread");
}
