//! Files in both directions.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::{
    model::Reply,
    telegram::{Post, Upload, View},
};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn files_sent_together_are_one_message_and_the_agent_finds_them() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let post = Post::text("compare these")
        .file(Upload::document("../a b.csv", "text/csv", "1,2"))
        .file(Upload::document("b.csv", "text/csv", "3,4"));
    house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/uploads/b.csv"})));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    house.model.wait(SOON, |_| (house.model.count() == 2).then_some(())).await.unwrap();
    let requests = house.model.requests();
    let asked: String = requests[0].messages()[1..].iter().map(|m| m["content"].to_string()).collect();
    assert!(asked.contains("compare these") && asked.contains("/mnt/user-data/uploads/a b.csv"), "{asked}");
    assert_eq!(requests[1].last_tool(), "3,4");
    assert_eq!(ada.answers().len(), 1, "one answer for the album");
}

#[tokio::test]
async fn a_file_that_cannot_be_had_is_told_and_the_words_are_answered() {
    let house = House::furnish(Default::default(), "", "uploads:\n  max_file_size: 10\n").await;
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let post = Post::text("look").file(Upload::document("big.bin", "application/octet-stream", vec![0; 100]));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    let text = ada.reads_so(|text| text.contains("could not be fetched")).await;
    assert!(text.starts_with("echo: look") && text.contains("big.bin"), "{text}");
}

#[tokio::test]
async fn the_agent_sends_files_and_pictures_as_what_they_are() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let write = |name: &str, content: &str| json!({"path": format!("/mnt/user-data/outputs/{name}"), "content": content});
    let show = json!({"filepaths": ["/mnt/user-data/outputs/report.md"]});
    house.model.next(Reply::tool("write_file", &write("report.md", "# Report")));
    house.model.next(Reply::tool("present_files", &show));
    house.model.next(Reply::text("Here is the report."));
    ada.say("report please");
    let sent = house.telegram.wait(SOON, |view| {
        let file = view.answers(ada.chat).into_iter().find_map(|answer| answer.file)?;
        Some((file.name.clone(), view.bytes(&file)?))
    });
    let (name, bytes) = sent.await.unwrap();
    assert_eq!((name.as_str(), bytes.as_ref()), ("report.md", &b"# Report"[..]));
    let texts: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(texts[0], "Here is the report.");
}

#[tokio::test]
async fn an_image_that_the_model_made_is_a_file_of_the_thread_and_is_sent() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    // Some gateways put it into the text.
    house.model.next(Reply::text(&format!("![dot](data:image/png;base64,{png})")));
    ada.say("draw a dot");
    let sent = house.telegram.wait(SOON, |view| {
        let file = view.answers(ada.chat).into_iter().find_map(|answer| answer.file)?;
        Some((file.name.clone(), view.bytes(&file)?))
    });
    let (name, bytes) = sent.await.unwrap();
    assert!(name.starts_with("image-") && name.ends_with(".png"), "{name}");
    assert!(bytes.starts_with(b"\x89PNG"));
    let texts: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(texts[0], name, "no path is shown");
    assert!(house.threads().remove(0).join("user-data/outputs").join(&name).is_file());
    // The model knows the file's path.
    ada.says("again", "echo: again").await;
    let asked = house.model.requests().pop().unwrap();
    let before = asked.messages().iter().map(|message| message["content"].to_string()).collect::<String>();
    assert!(before.contains(&format!("/mnt/user-data/outputs/{name}")), "{before}");
    assert!(!before.contains("image_url"), "a blind model is shown nothing");
}

#[tokio::test]
async fn nothing_outside_the_outputs_is_ever_sent() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    for path in ["/etc/passwd", "/mnt/user-data/outputs/../../../../pudu.db", "/mnt/user-data/workspace/x"] {
        house.model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
        house.model.next(Reply::text("No."));
        ada.says("/new", "New conversation started.").await;
        ada.says("send it", "No.").await;
        let refused = house.model.requests().last().unwrap().last_tool();
        assert!(refused.starts_with("Error: "), "{path}: {refused}");
    }
    assert_eq!(house.telegram.count("sendDocument") + house.telegram.count("sendPhoto"), 0);
}

#[tokio::test]
async fn a_file_that_is_too_large_for_the_chat_becomes_a_link() {
    let rest = "gateway:\n  public_url: https://pudu.example.com/bot\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let write = json!({"path": "/mnt/user-data/outputs/small.md", "content": "x"});
    house.model.next(Reply::tool("write_file", &write));
    house.model.next(Reply::text("Made."));
    ada.says("make it", "Made.").await;
    let outputs = house.threads().remove(0).join("user-data/outputs");
    std::fs::File::create(outputs.join("big one.zip")).unwrap().set_len(60_000_000).unwrap();
    house
        .model
        .next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/big one.zip"]})));
    house.model.next(Reply::text("Here it is."));
    ada.says("send it", "Here it is.\n\n📎 big one.zip (this link works for one day)").await;
    let last = ada.answers().pop().unwrap();
    let link = last.entities.iter().find_map(|entity| entity.url.clone()).unwrap();
    let path = link.strip_prefix("https://pudu.example.com/bot").unwrap();
    let ask = http().get(format!("http://{}{path}", house.address)).header("host", "pudu.example.com");
    let answer = ask.send().await.unwrap();
    assert_eq!(answer.headers()["content-disposition"], "attachment; filename*=UTF-8''big%20one.zip");
    assert_eq!(answer.bytes().await.unwrap().len(), 60_000_000);
    let (status, _) = house.get(&format!("{path}x")).await;
    assert_eq!(status, 404, "a link that was tampered with opens nothing");
}

#[tokio::test]
async fn what_somebody_who_sent_a_file_has_yet_to_approve_is_asked_again_after_a_restart() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let wish = json!({"path": "/mnt/user-data/outputs/a.txt", "content": "a"});
    house.model.next(Reply::tool("write_file", &wish));
    let post = Post::text("write it").file(Upload::document("a.csv", "text/csv", "1,2"));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    let waits = house.telegram.wait(SOON, |view| {
        let last = view.answers(ada.chat).pop()?;
        last.buttons.iter().flatten().any(|button| button.text == "Approve").then_some(last)
    });
    let asked = waits.await.unwrap();
    house.kill();
    house.start();
    // A press during the end of the old connection is lost, and users press again.
    for _ in 0..SOON.as_secs() {
        house.telegram.press(ada.chat, ada.person, asked.id, "Approve").ok();
        let done = |view: &View<'_>| view.last_answer(ada.chat)?.starts_with("echo: ").then_some(());
        if house.telegram.wait(Duration::from_secs(1), done).await.is_ok() {
            break;
        }
    }
    ada.reads_so(|text| text.contains(" approved write_file ")).await;
    assert_eq!(house.model.requests()[1].last_tool(), "OK");
}

#[tokio::test]
async fn files_are_fetched_when_their_run_may_work_and_not_before() {
    let rest = "  max_concurrency: 1\napprovals: {dangerous: allow}\nsandbox: {allow_host_bash: true}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    house.model.next(Reply::tool("bash", &json!({"command": "sleep 600"})));
    bob.say("work");
    bob.reads_so(|text| text.contains("bash")).await;
    let post = Post::text("look").file(Upload::document("a.csv", "text/csv", "1,2"));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    let store = house.database().await;
    let deadline = std::time::Instant::now() + SOON;
    while store.open_turns().await.unwrap().len() < 2 {
        assert!(std::time::Instant::now() < deadline, "{}", house.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    ada.reads_so(|text| text.contains("…")).await;
    Talker::new(&house, "Cy").says("/usage", "No active conversation.").await;
    assert_eq!(house.telegram.count("getFile"), 0, "one run may work, and it does");
    bob.say("/stop");
    ada.reads_so(|text| text.starts_with("echo: look")).await;
    assert_eq!(house.telegram.count("getFile"), 1);
}
