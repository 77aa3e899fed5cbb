//! Realistic models: each wire behind a chat, signed parts of replies, fallbacks for failing models, selectable
//! thinking, and costs.

use crate::house::{House, SOON, Talker};
use pudu_sim::model::Reply;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A provider that returns these bytes, one reply after another.
struct RawProvider {
    address: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl RawProvider {
    async fn start(kind: &'static str, replies: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<_>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            let mut replies = replies.into_iter();
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read(&mut stream).await else { continue };
                seen.lock().unwrap().push(request);
                let body = replies.next().unwrap_or_default();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
                stream.write_all((head + &body).as_bytes()).await.unwrap();
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads one request: its head in lower case, and its body.
async fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = vec![0; 16 * 1024];
        let length = stream.read(&mut chunk).await.ok().filter(|length| *length > 0)?;
        bytes.extend_from_slice(&chunk[..length]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let size = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if let Some(body) = bytes.get(end + 4..end + 4 + size.unwrap_or(0)) {
            return Some((head, serde_json::from_slice(body).unwrap_or_default()));
        }
    }
}

fn events(events: &[Value]) -> String {
    let named = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\r\n\r\n"),
    };
    events.iter().map(named).collect()
}

/// A house whose only model has this class and provider.
async fn house_of(class: &str, provider: &RawProvider, more: &str) -> (House, Talker) {
    let mut house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let (_, channels) = config.split_once("channels:").unwrap();
    let model = format!(
        "config_version: 34\nmodels:\n  - name: sim\n    use: {class}\n    model: wire-1\n    base_url: {}\n    \
         api_key: sk-raw-key-0123456789\n{more}",
        provider.address
    );
    house.write_config(&format!("{model}channels:{channels}"));
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

#[tokio::test]
async fn messages_of_anthropic_go_both_ways_with_what_is_signed() {
    let start = json!({"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}}});
    let stop = |reason: &str| {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}),
            json!({"type": "message_stop"}),
        ]
    };
    let mut call = vec![
        start.clone(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmVk"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_01", "name": "ls", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"/mnt/user-data\"}"}}),
        json!({"type": "content_block_stop", "index": 1}),
    ];
    call.extend(stop("tool_use"));
    let mut text = vec![
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Three folders."}}),
        json!({"type": "content_block_stop", "index": 0}),
    ];
    text.extend(stop("end_turn"));
    let provider = RawProvider::start("text/event-stream", vec![events(&call), events(&text)]).await;
    let more = "    pricing: {currency: USD, input_per_million: 3, output_per_million: 15, input_cache_hit_per_million: 0.3}\n";
    let (_house, ada) = house_of("deerflow.models.claude_provider:ClaudeChatModel", &provider, more).await;
    ada.says("what is there?", "Three folders.").await;
    let asked = provider.asked();
    assert!(asked[0].0.starts_with("post /v1/messages http"), "{}", asked[0].0);
    assert!(asked[0].0.contains("x-api-key: sk-raw-key-0123456789"), "{}", asked[0].0);
    let told = asked[1].1["messages"].to_string();
    assert!(told.contains(r#""signature":"c2lnbmVk""#) && told.contains("toolu_01"), "{told}");
    ada.say("/usage");
    let usage = ada.reads_so(|text| text.starts_with("Tokens in this conversation: ")).await;
    for part in ["200 read, 40 written", "90 % of the input", "Cost: USD 0.000714."] {
        assert!(usage.contains(part), "{part} is missing in {usage}");
    }
}

#[tokio::test]
async fn gemini_gets_the_signature_of_its_call_back() {
    let call = json!({"candidates": [{"content": {"role": "model", "parts": [
        {"functionCall": {"name": "ls", "args": {"path": "/mnt/user-data"}}, "thoughtSignature": "c2lnbmVk"}]},
        "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2}});
    let text = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Three folders."}]},
        "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 3}});
    let provider = RawProvider::start("text/event-stream", vec![events(&[call]), events(&[text])]).await;
    let (_house, ada) = house_of("langchain_google_genai:ChatGoogleGenerativeAI", &provider, "").await;
    ada.says("what is there?", "Three folders.").await;
    let asked = provider.asked();
    assert!(
        asked[0].0.starts_with("post /v1beta/models/wire-1:streamgeneratecontent?alt=sse"),
        "{}",
        asked[0].0
    );
    assert!(asked[0].0.contains("x-goog-api-key: sk-raw-key-0123456789"), "{}", asked[0].0);
    let told = asked[1].1["contents"].to_string();
    assert!(told.contains(r#""thoughtSignature":"c2lnbmVk""#) && told.contains("functionResponse"), "{told}");
}

#[tokio::test]
async fn responses_get_their_encrypted_thoughts_back() {
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl"});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "ls",
        "arguments": "{\"path\":\"/mnt/user-data\"}", "status": "completed"});
    let usage =
        json!({"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}});
    let done = |items: Value| json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": items, "usage": usage}});
    let first = [
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": call}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": call}),
        done(json!([reasoning, call])),
    ];
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Three folders.", "annotations": []}]});
    let second = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "Three folders."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": message}),
        done(json!([message])),
    ];
    let provider = RawProvider::start("text/event-stream", vec![events(&first), events(&second)]).await;
    let more =
        "    use_responses_api: true\n    supports_thinking: true\n    supports_reasoning_effort: true\n";
    let (_house, ada) = house_of("langchain_openai:ChatOpenAI", &provider, more).await;
    ada.say("/think high");
    ada.reads_so(|text| text.starts_with("Thinking is set to high here")).await;
    ada.says("what is there?", "Three folders.").await;
    let asked = provider.asked();
    assert!(asked[0].0.starts_with("post /responses http"), "{}", asked[0].0);
    assert_eq!(asked[0].1["reasoning"]["effort"], "high", "what people chose reaches the provider");
    let told = asked[1].1["input"].to_string();
    assert!(
        told.contains(r#""encrypted_content":"b3BhcXVl""#) && told.contains("function_call_output"),
        "{told}"
    );
}

#[tokio::test]
async fn ollama_is_spoken_to_in_its_own_way() {
    let call = "{\"model\":\"wire-1\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"ls\",\"arguments\":{\"path\":\"/mnt/user-data\"}}}]},\"done\":false}\n\
        {\"model\":\"wire-1\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":9,\"eval_count\":2}\n";
    let text = "{\"message\":{\"role\":\"assistant\",\"content\":\"Three \"},\"done\":false}\n{\"message\":{\"content\":\"folders.\"},\"done\":false}\n\
        {\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":9,\"eval_count\":2}\n";
    let provider = RawProvider::start("application/x-ndjson", vec![call.to_owned(), text.to_owned()]).await;
    let (_house, ada) = house_of("langchain_ollama:ChatOllama", &provider, "    num_ctx: 8192\n").await;
    ada.says("what is there?", "Three folders.").await;
    let asked = provider.asked();
    assert!(asked[0].0.starts_with("post /api/chat http"), "{}", asked[0].0);
    assert_eq!(asked[0].1["options"]["num_ctx"], 8192);
    let told = asked[1].1["messages"].to_string();
    assert!(told.contains(r#""role":"tool""#) && told.contains(r#""tool_name":"ls""#), "{told}");
}

#[tokio::test]
async fn another_model_answers_while_one_is_down_and_status_says_so() {
    let mut house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let models = format!(
        "    fallbacks: [spare]\n  - name: spare\n    use: langchain_openai:ChatOpenAI\n    model: spare-1\n    base_url: {}\n    \
         api_key: sk-spare-key-0123456789\nllm_call: {{retry_base_delay_ms: 1, retry_cap_delay_ms: 2}}\nchannels:\n",
        house.model.url()
    );
    house.write_config(&config.replace("channels:\n", &models));
    house.model.when(|ask| ask.model() == "sim-1", |_| Reply::status(529).into());
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    let models: Vec<String> = house.model.requests().iter().map(|ask| ask.model().to_owned()).collect();
    assert_eq!(
        models,
        ["sim-1", "sim-1", "sim-1", "sim-1", "spare-1"],
        "it is asked again, and then the other"
    );
    ada.say("/status");
    let status = ada.reads_so(|text| text.starts_with("Active thread: ")).await;
    assert!(
        status.contains("Model: sim, spare gave the last answer, because this model was unavailable"),
        "{status}"
    );
    house.model.wait(SOON, |model| (model.active() == 0).then_some(())).await.unwrap();
}

#[tokio::test]
async fn without_a_model_it_is_said_once_at_the_start_and_nothing_is_asked_that_it_cannot_know() {
    let mut house = House::build("").await;
    house.write_config("config_version: 34\nmemory: {debounce_seconds: 1}\n");
    house.start();
    let post = async |path: &str, body: Value| {
        let asked = crate::house::http().post(format!("http://{}{path}", house.address)).json(&body);
        asked.send().await.unwrap().json::<Value>().await.unwrap()
    };
    post("/api/threads", json!({"thread_id": "first"})).await;
    for text in ["I always drink green tea.", "/goal be nice"] {
        let said = json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": text}]}});
        let state = post("/api/threads/first/runs/wait", said).await.to_string();
        assert!(state.contains("built-in **offline** model"), "{state}");
    }
    let asked =
        json!({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]});
    let suggested = post("/api/threads/first/suggestions", asked).await;
    assert_eq!(suggested, json!({"suggestions": []}));
    let (db, late) = (house.database().await, std::time::Instant::now() + SOON);
    while db.next_learning().await.unwrap().is_some() {
        assert!(std::time::Instant::now() < late, "it waits still\n{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let log = house.log();
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("WARN"))
        .filter(|line| ["model", "learn", "suggest", "judge"].iter().any(|word| line.contains(word)))
        .collect();
    assert!(told.len() == 1 && told[0].contains("found no language model"), "{told:#?}");
}
