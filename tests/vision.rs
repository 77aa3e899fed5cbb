//! Images of users, tools and servers: what a model with vision receives, and what users are told by one without.

use crate::house::{House, SOON, Talker, http};
use base64::{Engine, prelude::BASE64_STANDARD};
use image::{DynamicImage, GenericImageView, ImageFormat, Rgb, RgbImage};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::{Post, Upload},
};
use serde_json::{Value, json};
use std::{io::Cursor, os::unix::fs::PermissionsExt, sync::Arc};

/// An image of this size.
pub fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let shade = |x: u32, y: u32| Rgb([x, y, x ^ y].map(|value| (value % 251).to_le_bytes()[0]));
    let mut out = Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::from_fn(width, height, shade)).write_to(&mut out, format).unwrap();
    out.into_inner()
}

/// The images of a request, each with the text before it.
pub fn shown(ask: &Ask) -> Vec<(String, String, Vec<u8>)> {
    let parts: Vec<&Value> =
        ask.messages().iter().filter_map(|message| message["content"].as_array()).flatten().collect();
    let urls = parts.windows(2).filter_map(|pair| Some((pair[0], pair[1]["image_url"]["url"].as_str()?)));
    urls.map(|(name, url)| {
        let (mime, bytes) = url.strip_prefix("data:").unwrap().split_once(";base64,").unwrap();
        let bytes = BASE64_STANDARD.decode(bytes).unwrap();
        (name["text"].as_str().unwrap_or_default().to_owned(), mime.to_owned(), bytes)
    })
    .collect()
}

impl House {
    /// A house whose model has vision or not, with more models after it.
    async fn of_model(sees: bool, more: &str) -> Self {
        let house = Self::build("").await;
        let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
        let vision = format!("    model: sim-1\n    supports_vision: {sees}\n");
        let more = more.replace("BASE", &house.model.url());
        let config = config
            .replace("    model: sim-1\n", &vision)
            .replace("channels:\n", &format!("{more}channels:\n"));
        house.write_config(&config);
        house
    }

    fn asked(&self) -> Arc<Ask> {
        self.model.requests().last().unwrap().clone()
    }

    /// Returns an uploaded file.
    fn upload(&self, name: &str) -> Vec<u8> {
        let threads = self.threads().into_iter();
        let mut found = threads.map(|thread| thread.join("user-data/uploads").join(name));
        std::fs::read(found.find(|path| path.is_file()).unwrap()).unwrap()
    }
}

impl Talker {
    fn sends(&self, house: &House, text: &str, name: &str, bytes: &[u8]) {
        let file = Upload::document(name, "application/octet-stream", bytes.to_vec());
        house.telegram.post(self.chat, self.person, &Post::text(text).file(file)).unwrap();
    }
}

#[tokio::test]
async fn an_image_that_a_person_sends_is_in_the_first_request_of_a_model_that_sees() {
    let png = picture(40, 30, ImageFormat::Png);
    let mut house = House::of_model(true, "").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("A deer."));
    ada.sends(&house, "what is this?", "deer.png", &png);
    ada.reads("A deer.").await;
    let path = "/mnt/user-data/uploads/deer.png".to_owned();
    assert_eq!(shown(&house.asked()), [(path, "image/png".to_owned(), png)]);
    ada.says("sure?", "echo: sure?").await;
    assert_eq!(shown(&house.asked()), [], "the model has said what it saw");
}

#[tokio::test]
async fn a_large_image_is_scaled_down_for_the_model_and_kept_whole() {
    let (png, jpeg) = (picture(3136, 1000, ImageFormat::Png), picture(40, 30, ImageFormat::Jpeg));
    let mut house = House::of_model(true, "").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("Wide."));
    ada.sends(&house, "look", "wide.png", &png);
    ada.reads("Wide.").await;
    let (_, mime, bytes) = shown(&house.asked()).pop().unwrap();
    assert_eq!(image::load_from_memory(&bytes).unwrap().dimensions(), (1568, 500));
    assert_eq!(mime, "image/png");
    assert_eq!(house.upload("wide.png"), png);
    // The same image has the same bytes; a wrong extension is harmless, and an invalid image is an error.
    house.model.next(Reply::tool("view_image", &json!({"image_path": "/mnt/user-data/uploads/wide.png"})));
    house.model.next(Reply::text("Wide still."));
    ada.says("look again", "Wide still.").await;
    assert_eq!(shown(&house.asked()).pop().unwrap().2, bytes);
    house.model.next(Reply::text("A photo."));
    ada.sends(&house, "and this?", "photo.png", &jpeg);
    ada.reads("A photo.").await;
    assert_eq!(shown(&house.asked()).pop().unwrap().1, "image/jpeg");
    for (name, bytes, why) in [
        ("cut.png", &png[..png.len() / 2], "it is damaged or truncated"),
        ("words.png", &b"no image at all"[..], "it is not a PNG, JPEG, WebP or GIF image"),
    ] {
        house.model.next(Reply::text(name));
        ada.sends(&house, "and now?", name, bytes);
        ada.reads(name).await;
        let asked = house.asked();
        let note = format!("/mnt/user-data/uploads/{name} cannot be shown: {why}");
        assert!(asked.body.to_string().contains(&note), "{asked:?}");
        assert_eq!(shown(&asked), []);
        assert_eq!(house.upload(name), bytes);
    }
}

#[tokio::test]
async fn whose_model_is_blind_is_told_once_which_one_sees() {
    let png = picture(4, 4, ImageFormat::Png);
    let spare = "  - name: eyes\n    use: langchain_openai:ChatOpenAI\n    model: eyes-1\n    base_url: BASE\n    \
                 api_key: sk-spare-key-0123456789\n    supports_vision: true\n";
    let told = "sim cannot see images, but eyes can: /models eyes switches to it.";
    for (more, told) in [(spare, told), ("", "sim cannot see images, and no other configured model can.")] {
        let mut house = House::of_model(false, more).await;
        house.start();
        let ada = Talker::new(&house, "Ada");
        house.model.next(Reply::text("I see nothing."));
        ada.sends(&house, "what is this?", "deer.png", &png);
        ada.reads(&format!("I see nothing.\n\n{told}")).await;
        let asked = house.asked();
        assert_eq!(shown(&asked), []);
        assert!(asked.last_user().contains("You cannot see the images among these files"), "{asked:?}");
        house.model.next(Reply::text("Still nothing."));
        ada.sends(&house, "and this?", "doe.png", &png);
        ada.reads("Still nothing.").await;
        let asked = house.asked();
        assert!(asked.last_user().contains("You cannot see the images among these files"), "{asked:?}");
        if more.is_empty() {
            continue;
        }
        ada.say("/models eyes");
        ada.reads_so(|text| text.contains("now uses eyes")).await;
        house.model.next(Reply::text("A fawn."));
        ada.sends(&house, "and now?", "fawn.png", &png);
        ada.reads("A fawn.").await;
        assert_eq!(shown(&house.asked()).len(), 1);
    }
}

/// An MCP server in the shell that returns an image between two texts.
const CAMERA: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"camera","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"take","description":"Takes a photo.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"click"},{"type":"image","mimeType":"image/png","data":"DATA"},{"type":"text","text":"done"}]}' ;;
  esac
done
"#;

#[tokio::test]
async fn images_of_a_servers_answer_and_of_files_that_are_read_reach_a_model_that_sees() {
    let png = picture(40, 30, ImageFormat::Png);
    for sees in [true, false] {
        let mut house = House::of_model(sees, "").await;
        let server = house.path("camera.sh");
        std::fs::write(&server, CAMERA.replace("DATA", &BASE64_STANDARD.encode(&png))).unwrap();
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        let servers = json!({"mcpServers": {"camera": {"command": server}}});
        std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
        house.start();
        house.logs("connected MCP servers").await;
        let ada = Talker::new(&house, "Ada");
        house.model.next(Reply::tool("camera_take", &json!({})));
        house.model.next(Reply::text("A photo."));
        ada.says("a photo, please", "A photo.").await;
        let asked = house.asked();
        let result = asked.messages().iter().find(|message| message["role"] == "tool").unwrap();
        let result = result["content"].as_str().unwrap().to_owned();
        assert!(
            result.contains("click\n[image 1, image/png,") && result.contains("bytes]\ndone\n"),
            "{result}"
        );
        let (_, path) = result.split_once("[image 1 is in ").unwrap_or_else(|| panic!("{result}"));
        let path = path.split_once(']').unwrap().0.to_owned();
        assert!(path.starts_with("/mnt/user-data/outputs/.tool-results/camera_take-"), "{path}");
        let seen = if sees { vec![(path.clone(), "image/png".to_owned(), png.clone())] } else { Vec::new() };
        assert_eq!(shown(&asked), seen);
        let blind = "[You cannot see images: say so, and do not guess what they show.]";
        assert_eq!(result.contains(blind), !sees, "{result}");
        house.model.next(Reply::tool("read_file", &json!({"path": path})));
        house.model.next(Reply::text("It is the photo."));
        ada.says("read it", "It is the photo.").await;
        assert_eq!(shown(&house.asked()), seen);
        let result = house.asked().last_tool();
        assert!(result.contains("is an image (image/png, ") && result.contains(blind) != sees, "{result}");
    }
}

/// Asks for a run over the HTTP API, and returns the response's status and detail.
async fn post(house: &House, content: &Value, options: &Value) -> (u16, String) {
    let url = format!("http://{}/api/threads/demo/runs", house.address);
    let mut body = json!({
        "input": {"messages": [{"type": "human", "content": content}]},
        "if_not_exists": "create",
        "multitask_strategy": "enqueue",
    });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let answer = http().post(url).json(&body).send().await.unwrap();
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    (status, body["detail"].as_str().unwrap_or_default().to_owned())
}

impl House {
    /// Waits for the next request after a message over the HTTP API.
    async fn next_asked(&self, count: usize) -> Arc<Ask> {
        let wait = self.model.wait(SOON, |model| model.requests().get(count - 1).cloned());
        wait.await.unwrap_or_else(|timeout| panic!("{timeout}"))
    }
}

#[tokio::test]
async fn images_of_messages_over_the_api_reach_a_model_that_sees() {
    let png = picture(40, 30, ImageFormat::Png);
    let mut house = House::of_model(true, "").await;
    house.start();
    let base64 = BASE64_STANDARD.encode(&png);
    let content = json!([
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{base64}")}},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": base64},
    ]);
    assert_eq!(post(&house, &content, &json!({})).await.0, 200);
    let asked = house.next_asked(1).await;
    let path = |name: &str| format!("/mnt/user-data/uploads/{name}");
    let images = shown(&asked);
    let names: Vec<&str> = images.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, [path("image-1.png"), path("image-2.png")]);
    assert!(images.iter().all(|(_, mime, bytes)| mime == "image/png" && *bytes == png));
    assert_eq!(house.upload("image-1.png"), png);
    for (content, status, why) in [
        (json!([{"type": "image", "base64": "no"}]), 400, "its data is not valid base64"),
        (json!([]), 422, "the message is empty"),
        (json!({"type": "text"}), 400, "content must be text or a list of blocks"),
        (
            json!([{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/secret.png"}}]),
            422,
            "send them as `data:` URLs",
        ),
    ] {
        let (refused, detail) = post(&house, &content, &json!({})).await;
        assert!(refused == status && detail.contains(why), "{content}: {refused} {detail}");
    }
}

#[tokio::test]
async fn options_of_a_message_over_the_api_count_for_its_run_alone() {
    let more = "    supports_thinking: true\n    supports_reasoning_effort: true\n  - name: spare\n    \
                use: langchain_openai:ChatOpenAI\n    model: spare-1\n    base_url: BASE\n    \
                api_key: sk-spare-key-0123456789\n    supports_thinking: true\n    supports_reasoning_effort: true\n";
    let mut house = House::of_model(true, more).await;
    house.start();
    let mut count = 0_usize;
    for (options, model, effort) in [
        (json!({}), "sim-1", Value::Null),
        (json!({"context": {"model_name": "spare", "reasoning_effort": "low"}}), "spare-1", json!("low")),
        (json!({"config": {"configurable": {"model": "spare"}}}), "spare-1", Value::Null),
        (json!({"context": {"thinking_enabled": true, "reasoning_effort": "high"}}), "sim-1", json!("high")),
        (json!({}), "sim-1", Value::Null),
    ] {
        count += 1;
        assert_eq!(post(&house, &json!(count.to_string()), &options).await.0, 200);
        let asked = house.next_asked(count).await;
        assert_eq!((asked.model(), &asked.body["reasoning_effort"]), (model, &effort), "{options}");
        house.model.wait(SOON, |model| (model.active() == 0).then_some(())).await.unwrap();
    }
    for (context, status, why) in [
        (json!({"model_name": "none"}), 400, "unknown model `none`"),
        (json!({"thinking_enabled": 1}), 422, "thinking_enabled must be true or false"),
        (
            json!({"reasoning_effort": "much"}),
            422,
            "reasoning_effort must be none, minimal, low, medium or high",
        ),
    ] {
        let options = json!({ "context": context });
        assert_eq!(post(&house, &json!("6"), &options).await, (status, why.to_owned()));
    }
    assert_eq!(house.model.requests().len(), count, "what is refused starts nothing");
}

#[tokio::test]
async fn a_model_gets_its_own_image_back_with_the_next_question_and_not_again() {
    let mut house = House::of_model(true, "").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let drawn = picture(30, 20, ImageFormat::Png);
    let address = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(&drawn));
    house.model.next(Reply::text("A dot:").image(&address));
    ada.say("draw a dot");
    ada.reads_so(|text| text.starts_with("A dot:")).await;
    // The simulated model would repeat the name of the image.
    house.model.next(Reply::text("It is blue."));
    ada.says("make it blue", "It is blue.").await;
    let seen = shown(&house.asked());
    let [(name, mime, bytes)] = &seen[..] else { panic!("{seen:?}") };
    assert!(name.contains("/mnt/user-data/outputs/image-") && mime == "image/png", "{name}");
    assert_eq!(image::load_from_memory(bytes).unwrap().dimensions(), (30, 20));
    ada.says("thanks", "echo: thanks").await;
    assert!(shown(&house.asked()).is_empty(), "images are dear");
}
