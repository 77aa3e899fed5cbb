//! Options of a run: each takes effect, is refused, or is reported as ignored.

use super::{Client, asked, frames, names};
use crate::house::{House, http};
use pudu_sim::model::Reply;
use serde_json::{Value, json};

/// Starts a run and returns the names in `X-Pudu-Ignored` and the body.
async fn post(client: &Client<'_>, path: &str, body: &Value) -> (String, String) {
    let answer = http().post(client.at(path)).json(body).send().await.unwrap();
    let ignored = answer.headers().get("x-pudu-ignored").map(|names| names.to_str().unwrap().to_owned());
    assert_eq!(answer.status(), 200, "{path}");
    (ignored.unwrap_or_default(), answer.text().await.unwrap())
}

#[tokio::test]
async fn options_without_effect_are_named_in_each_kind_of_answer() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let newer = json!({"stream_mode": ["values", "messages-tuple", "custom", "tools", "updates", "events", "lifecycle"],
        "stream_subgraphs": true, "stream_resumable": true, "on_disconnect": "continue", "durability": "async",
        "if_not_exists": "create", "config": {"tags": ["a"]}, "context": {"mode": "pro", "is_plan_mode": true}});
    let expected = "stream_mode.tools, stream_mode.lifecycle, stream_subgraphs, config.tags, context.mode";
    let place = format!("/threads/{thread}");
    for path in ["/runs/stream", "/runs/wait", "/runs"] {
        let (ignored, told) = post(&client, &format!("{place}{path}"), &asked("hello", &newer)).await;
        assert_eq!(ignored, expected, "{path}");
        if path == "/runs/stream" {
            let frames = frames(&told);
            assert_eq!(names(&frames).last(), Some(&"end"), "{told}");
            assert!(names(&frames).contains(&"values") && names(&frames).contains(&"messages"), "{told}");
        }
        let (ignored, _) = post(&client, path, &asked("hello", &newer)).await;
        assert_eq!(ignored, expected, "{path} without a thread");
        let runs = client.get(&format!("{place}/runs?limit=1")).await;
        client.until(&thread, runs[0]["run_id"].as_str().unwrap(), "success").await;
    }
    let (ignored, _) = post(&client, "/runs/wait", &asked("hello", &json!({"stream_mode": "values"}))).await;
    assert_eq!(ignored, "", "nothing is ignored");
}

#[tokio::test]
async fn a_run_switches_the_list_of_todos_and_sub_agents() {
    let house = House::open("").await;
    let client = Client(&house);
    for (context, todos, task, at_once) in [
        (json!({}), true, true, "up to 3 times"),
        (json!({"is_plan_mode": false}), false, true, ""),
        (json!({"subagent_enabled": false}), true, false, ""),
        (
            json!({"is_plan_mode": true, "subagent_enabled": true, "max_concurrent_subagents": 2}),
            true,
            true,
            "up to 2 times",
        ),
    ] {
        let more = json!({ "context": context });
        post(&client, "/runs/wait", &asked("hello", &more)).await;
        let asked =
            house.model.requests().into_iter().rfind(|ask| ask.last_user().contains("hello")).unwrap();
        let tools = asked.tools();
        assert_eq!(
            (tools.contains(&"write_todos"), tools.contains(&"task")),
            (todos, task),
            "{more} {tools:?}"
        );
        assert!(json!(asked.body["tools"]).to_string().contains(at_once), "{more}");
    }
    let wrong = asked("hello", &json!({"context": {"max_total_subagents": "many"}}));
    let (status, answer) = client.call("POST", "/runs/wait", Some(wrong)).await;
    assert_eq!(status, 422);
    assert!(answer["detail"].to_string().contains("max_total_subagents must be a whole number"), "{answer}");
}

#[tokio::test]
async fn a_checkpoint_that_a_client_saw_comes_back_and_the_newest_of_one_is_without() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    client.waits(&thread, "one").await;
    // DeerFlow's frontend: the hook sends back the checkpoint of the only entry, without its thread.
    let newest = client.post(&format!("/threads/{thread}/history"), json!({"limit": 1})).await;
    assert!(newest[0].get("checkpoint").is_none() && newest[0]["checkpoint_id"].is_string(), "{newest}");
    let all = client.post(&format!("/threads/{thread}/history"), json!({"limit": 1000})).await;
    for shown in [&all[0]["checkpoint"], &client.get(&format!("/threads/{thread}/state")).await["checkpoint"]]
    {
        let mut checkpoint = shown.clone();
        checkpoint.as_object_mut().unwrap().remove("thread_id");
        assert!(checkpoint["id"].is_string() && checkpoint["ts"].is_string(), "{checkpoint}");
        house.model.next(Reply::text("a second answer"));
        post(
            &client,
            &format!("/threads/{thread}/runs/wait"),
            &asked("two", &json!({ "checkpoint": checkpoint })),
        )
        .await;
        let said = client.said(&thread).await;
        assert_eq!(
            said,
            ["human: one", "ai: echo: one", "human: two", "ai: a second answer"],
            "{checkpoint}"
        );
    }
}

#[tokio::test]
async fn an_unknown_event_id_gets_a_gap_and_then_everything() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let run = client.begin(&thread, "hello", json!({})).await;
    client.until(&thread, &run, "success").await;
    let all = client.follows(&thread, &run, Some("-1"), "stream_mode=values").await;
    for id in ["lg:7", "1764000000000-4", "1764000000000-0", "99999-end", "\u{fc}"] {
        let told = client.follows(&thread, &run, Some(id), "stream_mode=values").await;
        assert_eq!(names(&told)[..2], ["metadata", "gap"], "{id}: {told:?}");
        assert_eq!(told[1].2["code"], "stream_replay_gap");
        assert_eq!(names(&told)[2..], names(&all)[1..], "{id}: all frames of the run");
    }
}

#[tokio::test]
async fn threads_are_found_page_by_page_whatever_is_written_meanwhile() {
    let house = House::open("").await;
    let client = Client(&house);
    for number in 0..12 {
        client
            .post(
                "/threads",
                json!({"thread_id": format!("t{number:02}"), "metadata": {"even": number % 2 == 0}}),
            )
            .await;
    }
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"limit": 5, "metadata": {"even": true}, "cursor": cursor, "select": ["thread_id"]});
        let answer = http().post(client.at("/threads/search")).json(&body).send().await.unwrap();
        let next =
            answer.headers().get("x-pagination-cursor").map(|cursor| cursor.to_str().unwrap().to_owned());
        let page: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        seen.extend(page.as_array().unwrap().iter().map(|one| one["thread_id"].as_str().unwrap().to_owned()));
        client
            .call("PATCH", &format!("/threads/{}", seen[0]), Some(json!({"metadata": {"used": true}})))
            .await;
        let Some(next) = next else { break };
        cursor = next.into();
    }
    seen.sort();
    assert_eq!(seen, ["t00", "t02", "t04", "t06", "t08", "t10"]);
    assert_eq!(client.post("/threads/count", json!({"metadata": {"even": false}})).await, 6);
    for wrong in [
        json!({"cursor": "x"}),
        json!({"cursor": cursor, "sort_order": "asc"}),
        json!({"cursor": cursor, "sort_by": "status"}),
    ] {
        assert_eq!(client.call("POST", "/threads/search", Some(wrong.clone())).await.0, 422, "{wrong}");
    }
}

#[tokio::test]
async fn marks_for_the_model_reach_no_client() {
    let house = House::build("").await;
    house.configure("", "sandbox: {allow_host_bash: true}\n");
    let mut house = house;
    house.start();
    let client = Client(&house);
    house.model.next(Reply::tool("bash", &json!({"description": "prints", "command": "echo printed words"})));
    house.model.next(Reply::text("Done."));
    let thread = client.thread().await;
    let modes = [
        "values",
        "messages-tuple",
        "messages",
        "updates",
        "custom",
        "events",
        "tasks",
        "debug",
        "checkpoints",
    ];
    let (_, stream) = post(
        &client,
        &format!("/threads/{thread}/runs/stream"),
        &asked("print", &json!({ "stream_mode": modes })),
    )
    .await;
    let seen = house.model.requests().last().unwrap().body.to_string();
    assert!(seen.contains("<tool_output tool=") && seen.contains("printed words"), "{seen}");
    let run = client.get(&format!("/threads/{thread}/runs")).await[0]["run_id"].as_str().unwrap().to_owned();
    let mut shown = vec![stream];
    for path in
        ["state", "messages", "messages/page", &format!("runs/{run}/events"), &format!("runs/{run}/join"), ""]
    {
        shown.push(client.get(format!("/threads/{thread}/{path}").trim_end_matches('/')).await.to_string());
    }
    shown.push(client.post(&format!("/threads/{thread}/history"), json!({})).await.to_string());
    for text in shown {
        assert!(text.contains("printed words") && !text.contains("tool_output"), "{text}");
    }
}

#[tokio::test]
async fn a_thread_that_several_clients_make_at_once_has_one_maker() {
    let house = House::open("").await;
    let client = Client(&house);
    let body = json!({"thread_id": "one-for-all", "if_exists": "raise"});
    let made =
        futures_util::future::join_all((0..12).map(|_| client.call("POST", "/threads", Some(body.clone()))))
            .await;
    let statuses: Vec<u16> = made.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
}

#[tokio::test]
async fn small_parts_of_langgraph_and_deerflow_are_there() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let run = client.begin(&thread, &"a very long first question ".repeat(9), json!({})).await;
    client.until(&thread, &run, "success").await;
    let title =
        client.get(&format!("/threads/{thread}")).await["values"]["title"].as_str().unwrap().to_owned();
    assert!(title.ends_with("...") && title.chars().count() <= 53, "{title}");
    client.call("PUT", &format!("/threads/{thread}/runs/{run}/feedback"), Some(json!({"rating": 1}))).await;
    assert_eq!(client.get(&format!("/runs/{run}/feedback")).await[0]["rating"], 1);
    assert_eq!(client.call("GET", "/runs/none/feedback", None).await.0, 404);
    let (status, why) = client.call("POST", "/webhooks/github", Some(json!({}))).await;
    assert_eq!((status, why["detail"].as_str()), (404, Some("pudu does not receive GitHub events")));
    for path in ["ok", "info"] {
        let (status, body) = house.get(&format!("/{path}")).await;
        assert!(status == 200 && body.contains('{'), "{path}: {body}");
    }
    let config = client.get("/memory/config").await;
    assert_eq!((&config["enabled"], &config["max_facts"]), (&json!(false), &json!(100)), "{config}");
}

/// A client that sends the whole file before it reads the response, like httpx, urllib and Node.
#[tokio::test]
async fn a_file_that_is_too_large_gets_its_refusal_after_it_was_sent() {
    let house = House::build("").await;
    house.configure("", "uploads: {max_file_size: 1000, max_total_size: 2000}\n");
    let mut house = house;
    house.start();
    let client = Client(&house);
    let thread = client.thread().await;
    let address = house.address.clone();
    let sent = tokio::task::spawn_blocking(move || {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let part = "--b\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.bin\"\r\n\r\n";
        let size = 24 * 1024 * 1024;
        let head = format!(
            "POST /api/threads/{thread}/uploads HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{part}",
            part.len() + size + 9
        );
        stream.write_all(head.as_bytes())?;
        for _ in 0..size / 65_536 {
            stream.write_all(&[b'x'; 65_536])?;
        }
        stream.write_all(b"\r\n--b--\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    let answer = sent.await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("detail"), "{answer}");
}

#[tokio::test]
async fn a_body_with_half_a_pair_is_accepted_and_the_model_sees_the_rest() {
    let house = House::open("").await;
    let body = br#"{"assistant_id":"lead_agent","input":{"messages":[{"type":"human","content":"title cut in the middle \ud83d"}]}}"#;
    let call = http().post(Client(&house).at("/runs/wait")).header("content-type", "application/json");
    let answer = call.body(body.to_vec()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("title cut in the middle \u{fffd}"));
    assert!(house.model.requests().last().unwrap().last_user().contains("title cut in the middle \u{fffd}"));
}
