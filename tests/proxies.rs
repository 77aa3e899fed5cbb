//! WebSockets use the proxy in the environment, and no log contains their addresses.

use crate::{house::House, platforms, scene::Scene};
use pudu_sim::{ForwardProxy, Platform};
use std::sync::Arc;

/// User and password of the proxy: in its URL and in the header.
const USER: &str = "ada:s3cret-pass";
const CREDENTIALS: &str = "Basic YWRhOnMzY3JldC1wYXNz";

/// Secrets in the URLs of connections and of the proxy.
const SECRETS: [&str; 4] = ["access_key=", "ticket=", "s3cret-pass", "YWRhOnMzY3JldC1wYXNz"];

/// Talks through the proxy, then without it, and then with one that refuses tunnels.
async fn by_proxy(platform: Arc<dyn Platform>) {
    let proxy = ForwardProxy::start(Some(CREDENTIALS)).await.unwrap();
    let address = proxy.address();
    let mut scene = Scene::build(platform).await;
    scene.house.set("HTTP_PROXY", &format!("http://{USER}@{address}"));
    scene.house.set("RUST_LOG", "trace");
    let says = async |scene: &Scene, text: &str| {
        scene.say(text);
        scene.reads(&scene.chat, &format!("echo: {text}")).await;
    };
    scene.start().await;
    says(&scene, "hello").await;
    let tunnels = proxy.tunnels().len();
    assert!(tunnels > 0 && !proxy.plain().is_empty(), "{:?}", proxy.plain());
    scene.house.kill();

    scene.house.set("no_proxy", "localhost, 127.0.0.0/8");
    scene.start().await;
    says(&scene, "and now").await;
    assert_eq!(proxy.tunnels().len(), tunnels, "it is not used for exceptions");
    scene.house.kill();

    scene.house.set("no_proxy", "");
    proxy.refuse_tunnels();
    scene.house.start();
    scene.house.logs(&format!("no connection through the proxy http://{address}: ")).await;
    let log = scene.house.log();
    for secret in SECRETS {
        assert!(!log.contains(secret), "{secret}: {:?}", log.lines().find(|line| line.contains(secret)));
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_stops_the_start() {
    let mut house = House::build("").await;
    house.set("https_proxy", &format!("socks://{USER}@127.0.0.1:1"));
    assert!(!house.try_start(), "it started");
    let log = house.log();
    assert!(log.contains("error: the environment variable HTTPS_PROXY is not the URL of a proxy"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    house.set("https_proxy", "");
    house.start();
}

/// Generates a test for each platform with a WebSocket.
macro_rules! by_proxy {
    ($($platform:ident)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $platform() {
            by_proxy(platforms::$platform().await).await;
        })+
    };
}

by_proxy!(feishu dingtalk slack discord);
