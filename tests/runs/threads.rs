//! Threads with an active run, and concurrent operations on them.

use super::{Client, asked, frames, names, shared_house};
use crate::house::{House, SOON, Talker, http};
use pudu_sim::model::{At, Reply};
use serde_json::json;

#[tokio::test]
async fn nothing_is_deleted_under_a_run_that_was_accepted() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(1, At::Chunk(1));
    let run = client.begin(&thread, "hello", json!({})).await;
    hold.reached().await.unwrap();
    for path in
        [format!("/storage/threads/{thread}"), format!("/threads/{thread}"), "/users/default".to_owned()]
    {
        let mut delete = http().delete(client.at(&path));
        let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
        delete = delete.bearer_auth(token.trim());
        assert_eq!(delete.send().await.unwrap().status(), 409, "{path}");
    }
    hold.proceed();
    client.get(&format!("/threads/{thread}/runs/{run}/join")).await;
    assert_eq!(client.said(&thread).await, ["human: hello", "ai: echo: hello"]);
    assert_eq!(client.call("DELETE", &format!("/threads/{thread}"), None).await.0, 200);
    assert_eq!(client.call("GET", &format!("/threads/{thread}"), None).await.0, 404);
}

#[tokio::test]
async fn a_message_that_is_sent_once_more_is_answered_once_more() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let message = |id: &str, text: &str| json!({"type": "human", "id": id, "content": text});
    let wait = async |messages: Vec<serde_json::Value>| {
        let mut body = asked("", &json!({}));
        body["input"]["messages"] = json!(messages);
        client.post(&format!("/threads/{thread}/runs/wait"), body).await;
        client.said(&thread).await
    };
    wait(vec![message("a", "one")]).await;
    let said = wait(vec![message("a", "another one")]).await;
    assert_eq!(said, ["ai: echo: one", "human: another one", "ai: echo: another one"]);
    // Some clients send the whole conversation with each message.
    let said = wait(vec![message("a", "another one"), message("b", "two")]).await;
    assert_eq!(said[1..], ["human: another one", "ai: echo: another one", "human: two", "ai: echo: two"]);
    let said = wait(vec![message("a", "the first"), message("c", "three")]).await;
    assert_eq!(said[1], "human: the first");
    assert_eq!(said[5..], ["human: three", "ai: echo: three"]);
}

#[tokio::test]
async fn a_goal_is_taken_back_in_a_chat_while_a_client_works_on_its_thread() {
    let mut house = shared_house("").await;
    house.start();
    let (client, ada) = (Client(&house), Talker::new(&house, "Ada"));
    ada.says("hello", "echo: hello").await;
    let thread = client.thread_of_chat().await;
    client
        .call("PUT", &format!("/threads/{thread}/goal"), Some(json!({"objective": "count all regions"})))
        .await;
    assert!(client.get(&format!("/threads/{thread}/goal")).await["goal"].is_object());
    let mut hold = house.model.hold(1, At::Chunk(2));
    house.model.next(Reply::text("there are sixteen").words_per_chunk(1));
    let run = client.begin(&thread, "how many?", json!({})).await;
    hold.reached().await.unwrap();
    ada.say("/goal clear");
    ada.say("/help");
    // Other commands do not wait.
    ada.reads_so(|text| text.contains("/models")).await;
    hold.proceed();
    client.until(&thread, &run, "success").await;
    ada.reads_so(|text| text.contains("oal")).await;
    assert_eq!(client.get(&format!("/threads/{thread}/goal")).await["goal"], serde_json::Value::Null);
    assert_eq!(client.said(&thread).await[2..], ["human: how many?", "ai: there are sixteen"]);
}

/// Waits until a thread is gone.
async fn goes(client: &Client<'_>, thread: &str) {
    let deadline = std::time::Instant::now() + SOON;
    while client.call("GET", &format!("/threads/{thread}"), None).await.0 != 404 {
        assert!(std::time::Instant::now() < deadline, "{thread} is still there: {}", client.0.log());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_thread_goes_with_the_run_for_which_it_was_made_if_the_client_wants_that() {
    let mut house = House::open("").await;
    let begin = async |house: &House, path: &str, more: serde_json::Value| {
        let body = asked("hello", &more);
        let answer = http().post(Client(house).at(path)).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let place = answer.headers()["content-location"].to_str().unwrap().to_owned();
        let thread = place.split('/').nth(3).unwrap().to_owned();
        (thread, answer.text().await.unwrap())
    };
    let delete = || json!({"on_completion": "delete"});
    let (thread, values) = begin(&house, "/runs/wait", delete()).await;
    assert!(values.contains("echo: hello"), "{values}");
    goes(&Client(&house), &thread).await;
    let (thread, told) = begin(&house, "/runs/stream", delete()).await;
    assert_eq!(names(&frames(&told)).last(), Some(&"end"), "{told}");
    goes(&Client(&house), &thread).await;
    for more in [json!({}), json!({"on_completion": "keep"})] {
        let (thread, _) = begin(&house, "/runs/wait", more).await;
        assert_eq!(Client(&house).said(&thread).await, ["human: hello", "ai: echo: hello"]);
    }
    let (kept, client) = (Client(&house).thread().await, Client(&house));
    let mut named = asked("hello", &delete());
    named["config"] = json!({"configurable": {"thread_id": kept}});
    for (path, body) in [
        (format!("/threads/{kept}/runs"), asked("hello", &delete())),
        ("/runs".to_owned(), named),
        ("/runs".to_owned(), asked("hello", &json!({"on_completion": "perhaps"}))),
    ] {
        let (status, told) = client.call("POST", &path, Some(body)).await;
        assert!(status == 422 && told["detail"].as_str().unwrap().starts_with("on_completion"), "{told}");
    }

    let mut hold = house.model.hold(1, At::Chunk(1));
    let (thread, _) = begin(&house, "/runs", delete()).await;
    hold.reached().await.unwrap();
    house.kill();
    hold.proceed();
    house.start();
    goes(&Client(&house), &thread).await;
}
