//! A browser controlled over its debugging protocol.

use crate::house::SOON;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

/// Names of the program on various systems.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-port=0",
    "about:blank",
];

/// A browser with one page.
pub struct Browser {
    child: Child,
    _profile: TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    /// Errors of the page's scripts.
    pub failures: Vec<String>,
    /// Missing addresses that the page requested, from its console.
    pub unanswered: Vec<String>,
    /// Whether responses to messages are lost: the daemon has the message, but the page does not know.
    pub lose_answers: bool,
}

impl Browser {
    /// Starts a browser; `None` if there is none, unless `PUDU_REQUIRE_BROWSER=1` requires one.
    pub async fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let Some(child) = NAMES.iter().find_map(|name| spawn(name, &profile)) else {
            let required = std::env::var("PUDU_REQUIRE_BROWSER").is_ok_and(|value| value == "1");
            assert!(!required, "no browser: none of {NAMES:?} can be started");
            println!("skipped: no browser is installed ({})", NAMES.join(", "));
            return None;
        };
        Some(Self::drive(child, profile).await)
    }

    async fn drive(mut child: Child, profile: TempDir) -> Self {
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once("listening on ")?.1.to_owned()));
        // The output has to be read, or the browser would block.
        std::thread::spawn(move || lines.for_each(drop));
        let (socket, _) = connect_async(address.unwrap()).await.unwrap();
        let session = String::new();
        let mut browser = Self {
            child,
            _profile: profile,
            socket,
            session,
            calls: 0,
            failures: Vec::new(),
            unanswered: Vec::new(),
            lose_answers: false,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach).await;
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser.call("Runtime.enable", json!({})).await;
        browser.call("Log.enable", json!({})).await;
        // From the beginning: an open page may not notice.
        let messages = json!([{ "urlPattern": "*/runs/stream", "requestStage": "Response" }]);
        browser.call("Fetch.enable", json!({ "patterns": messages })).await;
        browser
    }

    /// Opens an address.
    pub async fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url })).await;
    }

    /// Types into the focused element.
    pub async fn types(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// Presses a key.
    pub async fn presses(&mut self, key: &str) {
        self.chord(key, 0).await;
    }

    /// Presses a key with modifiers: 2 is Control, 8 is Shift, 10 both.
    pub async fn chord(&mut self, key: &str, modifiers: u8) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            "Tab" => 9,
            _ => key.bytes().next().map_or(0, |byte| i32::from(byte.to_ascii_uppercase())),
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code, "modifiers": modifiers,
            });
            self.call("Input.dispatchKeyEvent", event).await;
        }
    }

    /// Clicks on the first element that matches a selector.
    pub async fn clicks(&mut self, selector: &str) {
        self.sees(&format!("Boolean(document.querySelector({selector:?})?.checkVisibility())"), true).await;
        self.eval(&format!("document.querySelector({selector:?}).click()")).await;
    }

    /// Chooses a file in the element that matches a selector.
    pub async fn chooses(&mut self, selector: &str, file: &std::path::Path) {
        let root = self.call("DOM.getDocument", json!({})).await["root"]["nodeId"].clone();
        let node = self.call("DOM.querySelector", json!({ "nodeId": root, "selector": selector })).await;
        let chosen = json!({ "files": [file.to_str().unwrap()], "nodeId": node["nodeId"] });
        self.call("DOM.setFileInputFiles", chosen).await;
    }

    /// Resizes the window.
    pub async fn resizes(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Sets the user's languages, as in `Accept-Language`, for pages that are opened later.
    pub async fn reads(&mut self, languages: &str) {
        let agent = json!({ "userAgent": "Mozilla/5.0", "acceptLanguage": languages });
        self.call("Emulation.setUserAgentOverride", agent).await;
    }

    /// Sets the system's color scheme, dark or light.
    pub async fn prefers(&mut self, scheme: &str) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media).await;
    }

    /// Deletes all cookies.
    pub async fn forgets_cookies(&mut self) {
        self.call("Network.clearBrowserCookies", json!({})).await;
    }

    /// Evaluates an expression on the page.
    pub async fn eval(&mut self, expression: &str) -> Value {
        self.evaluate(expression).await.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Evaluates an expression; returns its exception, or the browser's error, for example if the page is left
    /// meanwhile.
    async fn evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let ask = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.try_call("Runtime.evaluate", ask).await?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(thrown.clone()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression has a value.
    pub async fn sees(&mut self, expression: &str, wanted: impl Into<Value>) {
        let (wanted, deadline) = (wanted.into(), Instant::now() + SOON);
        loop {
            // A page that is being left does not respond; the next one does. An element may not be drawn yet.
            let seen = self.evaluate(expression).await;
            if seen.as_ref() == Ok(&wanted) {
                return;
            }
            if Instant::now() > deadline {
                let page = self.eval("[document.body.innerText, document.activeElement.id, box.value]").await;
                panic!("{expression} is {seen:?}, not {wanted}: {page} {:?}", self.failures);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message
                    .get("error")
                    .map_or_else(|| Ok(message["result"].clone()), |error| Err(error.clone()));
            }
            self.hear(&message).await;
        }
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": params });
        if !self.session.is_empty() {
            call["sessionId"] = self.session.clone().into();
        }
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        self.calls
    }

    async fn next(&mut self) -> Value {
        let message = tokio::time::timeout(SOON, self.socket.next()).await.unwrap();
        serde_json::from_str(message.unwrap().unwrap().to_text().unwrap()).unwrap()
    }

    async fn hear(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.failures.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded")
                if params["entry"]["text"].as_str().is_some_and(|text| text.contains("404")) =>
            {
                self.unanswered.push(params["entry"]["url"].to_string());
            }
            Some("Fetch.requestPaused") if self.lose_answers => {
                let failed = json!({ "requestId": params["requestId"], "errorReason": "ConnectionReset" });
                self.send("Fetch.failRequest", failed).await;
            }
            Some("Fetch.requestPaused") => {
                self.send("Fetch.continueRequest", json!({ "requestId": params["requestId"] })).await;
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(name: &str, profile: &TempDir) -> Option<Child> {
    Command::new(name)
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()
}
