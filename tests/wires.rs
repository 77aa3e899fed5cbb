//! Each wire end to end: the real daemon with a model of each provider's class, against the simulated provider that the
//! official clients accept and that refuses modified replies.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::{
    Model,
    model::{Ask, At, Cause, Reply, RetryAfter, Wire},
};
use serde_json::json;
use std::{os::unix::fs::PermissionsExt, time::Duration};

/// An MCP server in the shell, whose only tool's schema has keywords that some providers refuse.
const SERVER: &str = r##"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"mail","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"send","description":"Sends a letter.","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"to":{"$ref":"#/$defs/address"},"copies":{"type":["integer","null"],"exclusiveMinimum":0},"kind":{"const":"letter"},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}},"$defs":{"address":{"type":"string","format":"email","pattern":"@"}},"required":["to"],"additionalProperties":false}}]}' ;;
    *'"tools/call"'*) answer '{"content":[{"type":"text","text":"sent"}]}' ;;
  esac
done
"##;

/// Returns the configuration of a model for a wire's class, with thinking if the wire supports it.
fn entry(model: &Model, name: &str, wire: Wire) -> String {
    let (class, address, more) = match wire {
        Wire::Chat => ("langchain_openai:ChatOpenAI", model.url(), ""),
        Wire::Responses => (
            "langchain_openai:ChatOpenAI",
            model.url(),
            "    use_responses_api: true\n    reasoning: {effort: low, summary: auto}\n",
        ),
        Wire::Messages => (
            "langchain_anthropic:ChatAnthropic",
            model.root(),
            "    max_tokens: 8192\n    supports_thinking: true\n    when_thinking_enabled: {thinking: {type: enabled, budget_tokens: 2048}}\n",
        ),
        Wire::Gemini => {
            ("langchain_google_genai:ChatGoogleGenerativeAI", model.root(), "    include_thoughts: true\n")
        }
        Wire::Ollama => ("langchain_ollama:ChatOllama", model.root(), "    reasoning: true\n"),
    };
    format!(
        "  - name: {name}\n    use: {class}\n    model: sim-1\n    base_url: {address}\n    \
         api_key: sk-simulated-key-0123456789\n{more}"
    )
}

/// Builds a house whose only model uses this wire, with additional keys of the model and sections of the configuration.
pub async fn build(wire: Wire, more: &str, rest: &str) -> House {
    let house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let (_, channels) = config.split_once("channels:").unwrap();
    let model = entry(&house.model, "sim", wire);
    house.write_config(&format!("config_version: 34\nmodels:\n{model}{more}channels:{channels}{rest}"));
    house
}

/// A house with a running daemon, and Ada in a chat.
async fn house_on(wire: Wire, rest: &str) -> (House, Talker) {
    let mut house = build(wire, "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// Fails if the provider refused a request.
fn accepted(house: &House, wire: Wire) {
    assert_eq!(house.model.refused(), Vec::<String>::new(), "{wire:?}\n{}", house.log());
}

/// Returns whether a request contains the opaque parts of the provider's answers.
fn brings_thoughts(ask: &Ask) -> bool {
    let body = ask.body.to_string();
    match ask.wire {
        Wire::Chat | Wire::Ollama => true,
        Wire::Responses => body.contains(r#""encrypted_content":""#),
        Wire::Messages => body.contains(r#""signature":""#),
        // The placeholder for a missing signature does not count.
        Wire::Gemini => {
            body.contains(r#""thoughtSignature":""#) && !body.contains("skip_thought_signature_validator")
        }
    }
}

#[tokio::test]
async fn an_answer_streams_over_each_wire_and_counts_once() {
    for wire in Wire::ALL {
        let (house, ada) = house_on(wire, "").await;
        house.model.next(Reply::text("one two three").reasoning("let me see").usage(100, 20));
        let mut hold = house.model.hold(1, At::End);
        ada.say("count");
        hold.reached().await.unwrap();
        ada.reads_so(|text| text.contains("one two three")).await;
        hold.proceed();
        ada.reads("one two three").await;
        ada.say("/usage");
        let usage = ada.reads_so(|text| text.starts_with("Tokens in this conversation: ")).await;
        assert!(usage.contains("100 read, 20 written"), "{wire:?}: {usage}");
        let asked = house.model.requests().remove(0);
        assert_eq!((asked.wire, asked.last_user().as_str(), asked.model()), (wire, "count", "sim-1"));
        accepted(&house, wire);
        let (_, said) = house.pudu(&["doctor"]);
        println!("{wire:?} {said}");
    }
}

#[tokio::test]
async fn calls_run_and_their_results_go_back_with_what_is_signed_or_encrypted() {
    for wire in Wire::ALL {
        let (mut house, ada) = house_on(wire, "").await;
        let path = |n: u32| format!("/mnt/user-data/outputs/{n}.txt");
        let write = |n: u32| json!({"path": path(n), "content": "größe\n"});
        let calls = Reply::text("I write.").reasoning("let me see").tool("write_file", &write(1));
        house.model.next(calls.tool("write_file", &write(2)).usage(10, 5));
        house
            .model
            .next(Reply::tool("read_file", &json!({"path": path(1)})).reasoning("and now").usage(20, 5));
        house.model.next(Reply::text("It says größe.").reasoning("well").usage(30, 5));
        ada.says("write it", "I write.\n\nIt says größe.").await;
        let asked = house.model.requests();
        assert_eq!(asked.len(), 3, "{wire:?}");
        assert_eq!(asked[1].last_tool(), "OK", "{wire:?}: {:#?}", asked[1].messages());
        let results = asked[1].messages().iter().filter(|message| message["role"] == "tool").count();
        assert_eq!(results, 2, "{wire:?}: {:#?}", asked[1].messages());
        assert!(asked[2].last_tool().contains("größe"), "{wire:?}: {}", asked[2].last_tool());
        assert!(asked[1..].iter().all(|ask| brings_thoughts(ask)), "{wire:?}: {}", asked[2].body);
        accepted(&house, wire);
        // Earlier messages are repeated byte for byte, also by the next process.
        house.kill();
        house.start();
        ada.says("go on", "echo: go on").await;
        let after = house.model.requests().pop().unwrap();
        assert!(brings_thoughts(&after), "{wire:?}: {}", after.body);
        accepted(&house, wire);
        ada.say("/usage");
        let usage = ada.reads_so(|text| text.starts_with("Tokens in this conversation: ")).await;
        assert!(usage.contains("in 2 runs"), "{wire:?}: {usage}");
    }
}

#[tokio::test]
async fn a_conversation_moves_from_provider_to_provider() {
    let mut house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let (_, channels) = config.split_once("channels:").unwrap();
    let name = |wire: Wire| format!("{wire:?}").to_lowercase();
    let models: String = Wire::ALL.map(|wire| entry(&house.model, &name(wire), wire)).concat();
    house.write_config(&format!("config_version: 34\nmodels:\n{models}channels:{channels}"));
    house.model.otherwise(|ask| {
        let path = format!("/mnt/user-data/outputs/{:?}.txt", ask.wire);
        match ask.last_role() {
            "tool" => Reply::text(&format!("{} it is.", ask.last_user())).reasoning("well").into(),
            _ => {
                let call = json!({"path": path, "content": "x", "append": true});
                Reply::tool("write_file", &call)
                    .tool("ls", &json!({"path": "/mnt"}))
                    .reasoning("let me see")
                    .into()
            }
        }
    });
    house.start();
    let ada = Talker::new(&house, "Ada");
    // Twice around, so that each wire receives the messages of all others and its own.
    for (n, wire) in Wire::ALL.into_iter().chain(Wire::ALL).enumerate() {
        ada.say(&format!("/models {}", name(wire)));
        ada.reads_so(|text| text.contains(&format!("now uses {}", name(wire)))).await;
        ada.says(&format!("turn {n}"), &format!("turn {n} it is.")).await;
        let asked = house.model.requests().pop().unwrap();
        let people = asked.messages().iter().filter(|message| message["role"] == "user").count();
        assert_eq!((asked.wire, people), (wire, n + 1), "{:#?}", asked.messages());
        accepted(&house, wire);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_the_model_of_each_wire() {
    for wire in Wire::ALL {
        let house = build(wire, "", "").await;
        let (_, said) = house.pudu(&["doctor"]);
        let line = said.lines().find(|line| line.contains("model sim: ")).unwrap_or_default();
        assert!(line.starts_with("  ok    model sim: "), "{wire:?}: {said}");
    }
}

#[tokio::test]
async fn a_tool_with_any_schema_is_taken_by_each_provider() {
    for wire in Wire::ALL {
        let mut house = build(wire, "", "").await;
        let server = house.path("mail.sh");
        std::fs::write(&server, SERVER).unwrap();
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        let servers = json!({"mcpServers": {"mail": {"command": server}}});
        std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
        house.start();
        house.logs("connected MCP servers").await;
        house.model.next(Reply::tool("mail_send", &json!({"to": "ada@example.org"})));
        house.model.next(Reply::text("It is sent."));
        Talker::new(&house, "Ada").says("send it", "It is sent.").await;
        let asked = house.model.requests();
        assert!(asked[0].tools().contains(&"mail_send"), "{wire:?}: {:?}", asked[0].tools());
        assert_eq!(asked[1].last_tool(), "sent", "{wire:?}");
        accepted(&house, wire);
    }
}

#[tokio::test]
async fn the_wait_that_a_provider_names_is_kept() {
    const QUICK: &str = "llm_call: {retry_base_delay_ms: 1, retry_cap_delay_ms: 2}\n";
    for wire in Wire::ALL {
        let (house, ada) = house_on(wire, QUICK).await;
        house.model.next(Reply::refused(Cause::RateLimit).retry_after(RetryAfter::Seconds(1)));
        ada.says("hello", "echo: hello").await;
        let asked = house.model.requests();
        assert_eq!(asked.len(), 2, "{wire:?}");
        let waited = asked[1].at - asked[0].at;
        assert!(waited >= Duration::from_millis(995), "{wire:?}: {waited:?}");
    }
}

#[tokio::test]
async fn a_wait_is_shown_with_its_length_and_bounded_by_the_patience() {
    const PATIENT: &str = "llm_call: {retry_max_attempts: 20, patience_seconds: 10}\n";
    let (house, ada) = house_on(Wire::Chat, PATIENT).await;
    let limited = || Reply::refused(Cause::RateLimit).retry_after(RetryAfter::Seconds(5));
    house.model.otherwise(move |_| limited().into());
    let begun = std::time::Instant::now();
    ada.say("hello");
    ada.reads_so(|text| text.contains("retrying in 5 s")).await;
    ada.reads_so(|text| text.contains("The model is busy, and waiting did not help.")).await;
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!((2..=3).contains(&house.model.count()), "{}", house.model.count());
    let before = house.model.count();
    let long = || Reply::refused(Cause::RateLimit).retry_after(RetryAfter::Seconds(600));
    house.model.otherwise(move |_| long().into());
    ada.say("and now?");
    ada.reads_so(|text| text.contains("Try again in 10 minutes")).await;
    assert_eq!(house.model.count() - before, 1, "a longer wait than the patience is not begun");
}

#[tokio::test]
async fn thoughts_reach_the_api_on_each_wire_and_never_a_chat() {
    for wire in Wire::ALL {
        let (house, ada) = house_on(wire, "").await;
        house.model.next(Reply::text("Forty-two.").reasoning("let me see").usage(10, 5));
        ada.says("why?", "Forty-two.").await;
        let shown = house.telegram.history(ada.chat, ada.answers()[0].id);
        assert!(shown.iter().all(|shown| !shown.text.contains("let me see")), "{wire:?}: {shown:?}");
        let body = json!({"input": {"messages": [{"role": "user", "content": "why?"}]}, "stream_mode": ["messages", "values"]});
        house.model.next(Reply::text("Forty-two.").reasoning("let me see").usage(10, 5));
        let url = format!("http://{}/api/runs/stream", house.address);
        let frames = http().post(url).json(&body).send().await.unwrap().text().await.unwrap();
        let thoughts = frames.matches("\"reasoning_content\":").count();
        assert!(thoughts >= 2, "a frame as they come and the message at the end, {wire:?}: {frames}");
        accepted(&house, wire);
    }
}

#[tokio::test]
async fn what_a_provider_refuses_is_told_as_what_it_is() {
    const QUICK: &str = "llm_call: {retry_max_attempts: 2, retry_base_delay_ms: 1, retry_cap_delay_ms: 2}\nsummarization: {enabled: false}\n";
    for wire in Wire::ALL {
        let (house, ada) = house_on(wire, QUICK).await;
        let refusals = [
            (Reply::status(401), "The model's provider rejected the API key.", 1),
            (
                Reply::status(404).message("model 'sim-1' not found"),
                "The model's provider does not know this model.",
                1,
            ),
            (Reply::refused(Cause::RateLimit), "The model is busy, and waiting did not help.", 2),
            (Reply::refused(Cause::Overloaded), "The model is busy, and waiting did not help.", 2),
            (Reply::refused(Cause::Overflow), "This conversation has become too long for the model.", 2),
        ];
        for (refusal, told, times) in refusals {
            let before = house.model.count();
            let reply = refusal.clone();
            house.model.otherwise(move |_| reply.clone().into());
            ada.say(&format!("hello {before}"));
            let said = ada.reads_so(|text| text.contains(told)).await;
            for theirs in ["HTTP", "sim-1", "slow down", "maximum"] {
                assert!(
                    !said.contains(theirs),
                    "a provider's words stay in the log: {wire:?} {refusal:?}: {said}"
                );
            }
            assert_eq!(house.model.count() - before, times, "{wire:?} {refusal:?}");
            house.model.otherwise(|_| Reply::text("ok").into());
            ada.says("and now?", "ok").await;
        }
        accepted(&house, wire);
        house.model.wait(SOON, |model| (model.active() == 0).then_some(())).await.unwrap();
    }
}

/// A model quotes its arguments twice, or writes its own format's markers into a name: the call takes effect, and no
/// later request contains anything that a provider refuses.
#[tokio::test]
async fn slips_of_a_model_are_repaired_and_never_sent_back() {
    for wire in Wire::ALL {
        let (house, ada) = house_on(wire, "").await;
        let path = "/mnt/user-data/outputs/w.txt";
        house
            .model
            .next(Reply::tool("write_file", &json!({"path": path, "content": "one\ntwo\nthree\nfour\n"})));
        house
            .model
            .next(Reply::tool("read_file", &json!({"path": path, "start_line": "2", "end_line": "3"})));
        house.model.next(Reply::tool("functions.ls", &json!({"path": "/mnt/user-data/outputs"})));
        house.model.next(Reply::tool("ls<|channel|>commentary", &json!({"path": "/mnt/user-data/outputs"})));
        house.model.next(Reply::tool("no.such<|tool|>", &json!({})));
        house.model.next(Reply::text("Done."));
        ada.says("go", "Done.").await;
        ada.says("and now?", "echo: and now?").await;
        let asked = house.model.requests();
        assert_eq!(asked.len(), 7, "{wire:?}");
        let read = asked[2].last_tool();
        assert!(read.contains("two") && read.contains("three") && !read.contains("four"), "{wire:?}: {read}");
        assert!(asked[3].last_tool().contains("w.txt") && asked[4].last_tool().contains("w.txt"), "{wire:?}");
        assert!(asked[5].last_tool().starts_with("Error: there is no tool"), "{wire:?}");
        for ask in &asked {
            let body = ask.body.to_string();
            for name in ["\"functions.ls\"", "\"ls<|channel|>commentary\"", "\"no.such<|tool|>\""] {
                assert!(!body.contains(name), "{wire:?}: {body}");
            }
        }
        accepted(&house, wire);
    }
}
