//! A program that embeds the agent gets the gateway's responses: both read the same folder.

use crate::{
    documents::docx,
    gateway::{Api, THREAD},
    house::http,
};
use futures_util::TryStreamExt;
use pudu_agent::MemoryOf;
use pudu_base::{Model, ThreadId};
use pudu_client::Client;
use pudu_langgraph::modes::Modes;
use pudu_model::Offline;
use pudu_runs::StreamRequest;
use pudu_sim::model::Reply;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// Compares the gateway's response with the client's, byte for byte.
async fn same(api: &Api, path: &str, given: &impl Serialize) {
    let (status, text) = api.house.get(path).await;
    assert_eq!((status, text), (200, serde_json::to_string(given).unwrap()), "{path}");
}

#[tokio::test]
async fn the_gateway_answers_what_the_embedded_client_gives() {
    let api = Api::open("memory: {debounce_seconds: 7}\n").await;
    let at = |more: &str| format!("/api/threads/{THREAD}{more}");
    api.house.model.next(Reply::text("A tent and **tea**."));
    let asked = json!({
        "assistant_id": "lead_agent", "if_not_exists": "create",
        "input": {"messages": [{"role": "user", "content": "pack for a trip"}]},
    });
    assert_eq!(api.send(Method::POST, &at("/runs/wait"), &asked).await.0, 200);
    let part = |bytes: Vec<u8>, name: &'static str| Part::bytes(bytes).file_name(name);
    let form = Form::new().part("files", part(docx(&["One"]), "a.docx"));
    let form = form.part("files", part(b"x".to_vec(), "ü b"));
    let uploads = format!("http://{}{}", api.house.address, at("/uploads"));
    assert_eq!(http().post(uploads).multipart(form).send().await.unwrap().status(), 200);
    assert_eq!(api.send(Method::POST, "/api/memory/facts", &json!({"content": "Drinks tea"})).await.0, 200);
    assert_eq!(api.send(Method::PUT, &at("/goal"), &json!({"objective": "be ready"})).await.0, 200);

    let model: Arc<dyn Model> = Arc::new(Offline);
    let client = Client::open(&api.house.path(".pudu"), [model]).await.unwrap();
    let (thread, me) = (ThreadId::from(THREAD), MemoryOf::default());
    same(&api, &at(""), &client.get_thread(&thread).await.unwrap()).await;
    same(&api, &at("/goal"), &client.get_goal(&thread).await.unwrap()).await;
    let listed = client.list_uploads(&thread).await.unwrap();
    assert_eq!(listed.count, 3, "both files, and the text of one");
    same(&api, &at("/uploads/list"), &listed).await;
    same(&api, "/api/memory", &client.get_memory(&me).await.unwrap()).await;
    let listed = api.send(Method::POST, "/api/threads/search", &json!({})).await;
    assert_eq!(listed, (200, json!(client.list_threads(10).await.unwrap())));
    let answer =
        http().get(format!("http://{}{}", api.house.address, at("/artifacts/mnt/user-data/uploads/a.md")));
    let answer = answer.send().await.unwrap();
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let (bytes, media_type) = client.get_artifact(&thread, "mnt/user-data/uploads/a.md").await.unwrap();
    assert_eq!(
        (kind, answer.bytes().await.unwrap().to_vec()),
        (format!("{media_type}; charset=utf-8"), bytes)
    );

    let runs = api.get(&at("/runs")).await.1;
    let run = runs[0]["run_id"].as_str().unwrap();
    let modes = Modes { values: true, ..Modes::default() };
    let request = StreamRequest {
        thread,
        run: run.into(),
        assistant: "lead_agent".to_owned(),
        modes,
        after: None,
        lost: None,
    };
    let frames: Vec<_> = client.runs().follow(request).try_collect::<Vec<_>>().await.unwrap().concat();
    let frames: String = frames.iter().map(ToString::to_string).collect();
    let (status, text) = api.house.get(&at(&format!("/runs/{run}/stream?stream_mode=values"))).await;
    assert_eq!((status, text), (200, frames));
}
