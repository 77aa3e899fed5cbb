//! A browser's cookies, and the command line with a password.

use crate::house::{House, http};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
};

/// A browser that stores cookies and sends its CSRF token.
pub struct Jar {
    address: String,
    cookies: BTreeMap<String, String>,
    /// Sent with each request.
    pub headers: Vec<(&'static str, String)>,
    /// Replaces the cookie's value; not sent if empty.
    pub csrf: Option<String>,
}

/// A response.
#[derive(Debug)]
pub struct Told {
    pub status: u16,
    pub body: Value,
    pub cookies: Vec<String>,
    pub exposed: Option<String>,
    pub location: Option<String>,
}

impl Told {
    /// Returns the error code.
    pub fn code(&self) -> &str {
        self.body["detail"]["code"].as_str().unwrap_or_default()
    }
}

impl Jar {
    pub fn new(house: &House) -> Self {
        Self { address: house.address.clone(), cookies: BTreeMap::new(), headers: Vec::new(), csrf: None }
    }

    /// Continues with a restarted daemon.
    pub fn at(&mut self, house: &House) {
        self.address.clone_from(&house.address);
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    pub fn keep(&mut self, name: &str, value: &str) {
        self.cookies.insert(name.to_owned(), value.to_owned());
    }

    pub async fn get(&mut self, path: &str) -> Told {
        self.send(Method::GET, path, |call| call).await
    }

    pub async fn delete(&mut self, path: &str) -> Told {
        self.send(Method::DELETE, path, |call| call).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Told {
        self.send(Method::POST, path, |call| call.json(body)).await
    }

    pub async fn form(&mut self, path: &str, pairs: &[(&str, String)]) -> Told {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(pairs);
        let body = body.finish();
        let kind = "application/x-www-form-urlencoded";
        self.send(Method::POST, path, |call| call.header("content-type", kind).body(body)).await
    }

    /// Sends a request with any method.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        finish: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Told {
        let mut call = http().request(method, format!("http://{}{path}", self.address));
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !pairs.is_empty() {
            call = call.header("cookie", pairs.join("; "));
        }
        let csrf = self.csrf.clone().or_else(|| self.cookies.get("csrf_token").cloned());
        if let Some(csrf) = csrf.filter(|csrf| !csrf.is_empty()) {
            call = call.header("x-csrf-token", csrf);
        }
        for (name, value) in &self.headers {
            call = call.header(*name, value);
        }
        let answer = finish(call).send().await.unwrap();
        let status = answer.status().as_u16();
        let texts = |name: &str| {
            let all = answer.headers().get_all(name).iter();
            all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let (cookies, exposed) = (texts("set-cookie"), texts("access-control-expose-headers").pop());
        let location = texts("location").pop();
        for cookie in &cookies {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            match cookie.contains("Max-Age=0") {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
        let text = answer.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Told { status, body, cookies, exposed, location }
    }
}

/// Runs `pudu user …` with a password on its standard input.
pub fn add_user(house: &House, args: &[&str], password: &str) -> (bool, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pudu"))
        .arg("user")
        .args(args)
        .current_dir(house.path(""))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{password}").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}
