use super::*;
use crate::{
    dingtalk::world::{Options, Standing},
    platform::Words,
};

/// A world with one socket and one user's message.
fn world(repeat: Option<Duration>) -> (World, mpsc::Receiver<Out>, String) {
    let mut world = World::new(Options { repeat, ping: None, ..Options::default() });
    let out = socket(&mut world);
    let ada = world.add_person("Ada", true);
    let words = Words { chat: ada.clone(), person: ada.clone(), text: "hi".to_owned(), ..Words::default() };
    world.write(&words);
    (world, out, ada)
}

fn socket(world: &mut World) -> mpsc::Receiver<Out> {
    let (out, incoming) = mpsc::channel(WAITING);
    world.join(out, vec![("CALLBACK".to_owned(), MESSAGES.to_owned())]);
    incoming
}

/// Returns the frames of a socket since the last call; `None` stands for its end.
fn frames(out: &mut mpsc::Receiver<Out>) -> Vec<Option<Value>> {
    let mut frames = Vec::new();
    while let Ok(one) = out.try_recv() {
        frames.push(match one {
            Out::Text(text) => serde_json::from_str(&text).ok(),
            Out::Cut | Out::Freeze => None,
        });
    }
    frames
}

fn after(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_again_until_it_is_acknowledged_with_a_good_code() {
    let (mut world, mut out, _) = world(Some(Duration::from_secs(60)));
    let mut told = |world: &mut World, at| {
        world.turn(at);
        frames(&mut out)
    };
    let first = told(&mut world, after(0)).remove(0).unwrap();
    let id = first["headers"]["messageId"].clone();
    assert_eq!(told(&mut world, after(59)), []);
    assert_eq!(told(&mut world, after(60)).remove(0).unwrap()["headers"]["messageId"], id);
    world.acknowledged(&json!({"code": 500, "headers": {"messageId": id}}).to_string());
    assert_eq!(told(&mut world, after(121)).len(), 1);
    world.acknowledged(&json!({"code": 200, "headers": {"messageId": id}}).to_string());
    assert_eq!(told(&mut world, after(300)), []);
}

#[tokio::test(start_paused = true)]
async fn without_repeats_an_event_is_told_once_whoever_listens() {
    let (mut world, mut out, _) = world(None);
    world.turn(after(0));
    assert_eq!((frames(&mut out).len(), world.deliveries.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_announced_end_is_silent_for_ten_seconds_and_then_is_one() {
    let (mut world, mut out, ada) = world(Some(Duration::from_secs(60)));
    world.disconnect();
    world.turn(after(0));
    let told = frames(&mut out);
    let topics: Vec<_> = told.iter().flatten().map(|frame| frame["headers"]["topic"].clone()).collect();
    assert_eq!((topics, told.len()), (vec![json!("disconnect")], 1));
    let mut new = socket(&mut world);
    let words = Words { chat: ada.clone(), person: ada, text: "more".to_owned(), ..Words::default() };
    world.write(&words);
    world.turn(after(1));
    assert_eq!((frames(&mut out).len(), frames(&mut new).len()), (0, 1));
    world.turn(after(10));
    assert_eq!(frames(&mut out), [None]);
}

#[tokio::test(start_paused = true)]
async fn one_event_goes_to_one_socket_by_chance() {
    let (mut world, mut first, ada) = world(None);
    let mut second = socket(&mut world);
    for _ in 0..99 {
        let words = Words { chat: ada.clone(), person: ada.clone(), ..Words::default() };
        world.write(&words);
    }
    world.turn(after(0));
    let (one, other) = (frames(&mut first).len(), frames(&mut second).len());
    assert_eq!(one + other, 100);
    assert!(one > 20 && other > 20, "{one} and {other}");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_good_once_and_for_ninety_seconds() {
    let (mut world, ..) = world(None);
    let mut ticket = || {
        let body = json!({
            "clientId": world.options.client_id, "clientSecret": world.options.client_secret,
            "subscriptions": [{"type": "CALLBACK", "topic": MESSAGES}],
        });
        let ask = Ask { body: body.as_object().cloned().unwrap(), ..Ask::default() };
        open(&mut world, &ask).unwrap()["ticket"].as_str().unwrap().to_owned()
    };
    let (used, late) = (ticket(), ticket());
    assert!(redeem(&mut world, &used).is_some());
    assert!(redeem(&mut world, &used).is_none());
    tokio::time::advance(Duration::from_secs(90)).await;
    assert!(redeem(&mut world, &late).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_person_can_be_out_of_reach_for_three_reasons() {
    let (mut world, _, ada) = world(None);
    let mut lists = |standing| {
        world.people[0].standing = standing;
        let body = json!({
            "robotCode": world.options.client_id, "userIds": [ada], "msgKey": "sampleText",
            "msgParam": "{\"content\":\"x\"}",
        });
        let ask = Ask { body: body.as_object().cloned().unwrap(), ..Ask::default() };
        let answer = crate::dingtalk::robot::single(&mut world, &ask).unwrap();
        let of = |name: &str| answer[name].as_array().unwrap().len();
        (of("invalidStaffIdList"), of("flowControlledStaffIdList"), of("filteredStaffIdList"))
    };
    assert_eq!(lists(Standing::Fine), (0, 0, 0));
    assert_eq!(lists(Standing::Invalid), (1, 0, 0));
    assert_eq!(lists(Standing::Flooded(1)), (0, 1, 0));
    assert_eq!(lists(Standing::Filtered), (0, 0, 1));
}
