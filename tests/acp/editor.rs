//! An editor: starts `pudu acp` and exchanges lines with it.

use crate::house::{House, SOON};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

/// An editor with its agent.
pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    last: u64,
    /// Updates that the test has not taken.
    updates: Vec<Value>,
    /// The option that the user of the editor chooses.
    option: String,
}

impl Editor {
    /// Starts an agent for the daemon of a house.
    pub(crate) fn start(house: &House, args: &[&str]) -> Self {
        let url = format!("http://{}", house.address);
        let folder = house.path("editor");
        std::fs::create_dir_all(&folder).unwrap();
        Self::start_in(&folder, &[&["--url", &url], args].concat())
    }

    /// Starts an agent in a folder.
    pub(crate) fn start_in(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pudu"))
            .arg("acp")
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("GATEWAY_PORT", "0")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nothing but messages may be on standard output.
                send.send(serde_json::from_str(&line).unwrap_or_else(|_| json!({ "noise": line }))).ok();
            }
        });
        Self { child, stdin, lines, last: 100, updates: Vec::new(), option: "deny".to_owned() }
    }

    pub(crate) fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        message["params"] = params;
        self.write(&message.to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        self.write(&message.to_string());
        id
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.answer_to(&json!(id))
    }

    /// Waits for an answer. Requests for permission get the chosen option meanwhile.
    pub(crate) fn answer_to(&mut self, id: &Value) -> Value {
        loop {
            let mut message = self.lines.recv_timeout(SOON).unwrap();
            match message["method"].as_str() {
                Some("session/update") => self.updates.push(message["params"]["update"].take()),
                Some("session/request_permission") => {
                    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": self.option } });
                    self.write(
                        &json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome }).to_string(),
                    );
                }
                None if message["id"] == *id && message["jsonrpc"] == "2.0" => return message,
                _ => panic!("unexpected: {message}"),
            }
        }
    }

    /// Sends a request and returns the whole answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Sends a request and returns its result.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(&mut self) -> String {
        let opened = self.request("session/new", json!({ "cwd": "/project", "mcpServers": [] }));
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt_params(session: &str, text: &str) -> Value {
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
    }

    /// Sends a prompt and returns why its work ended.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> String {
        let ended = self.request("session/prompt", Self::prompt_params(session, text));
        ended["stopReason"].as_str().unwrap().to_owned()
    }

    /// Sets the option that the user chooses from now on.
    pub(crate) fn chooses(&mut self, option: &str) {
        option.clone_into(&mut self.option);
    }

    /// Takes the updates so far.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.updates)
    }

    /// Takes the text of the agent so far.
    pub(crate) fn text(&mut self) -> String {
        let updates = self.take();
        let said = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Closes standard input and returns the exit status.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.stdin = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.stdin = None;
        self.child.wait().ok();
    }
}
