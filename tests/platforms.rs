//! Simulators of the platforms, and the macro that generates a test for each.

use pudu_sim::{
    DingTalk, Discord, Feishu, Platform, Slack, Telegram, dingtalk, discord, feishu, slack, telegram,
};
use std::{sync::Arc, time::Duration};

/// Generates a module of tests for each platform, with a test for each scenario of a list: functions next to the call
/// that take a [`Scene`](crate::scene::Scene).
macro_rules! on_each_platform {
    ($scenarios:tt) => {
        $crate::platforms::on_each_platform!(telegram feishu dingtalk slack discord => $scenarios);
    };
    ($($platform:ident)+ => $scenarios:tt) => {
        $(mod $platform { $crate::platforms::on_each_platform!(@tests $platform open $scenarios); })+
    };
    (@tests $platform:ident $open:ident [$($scenario:ident)+]) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $scenario() {
            let scene = $crate::scene::Scene::$open($crate::platforms::$platform().await).await;
            super::$scenario(scene).await;
        })+
    };
}
pub(crate) use on_each_platform;

pub(crate) async fn telegram() -> Arc<dyn Platform> {
    Arc::new(Telegram::start(telegram::Options::default()).await.unwrap())
}

pub(crate) async fn feishu() -> Arc<dyn Platform> {
    // The platform repeats events for seven hours; a test that kills the daemon for minutes must not exhaust this.
    let redelivery = [&[1, 2][..], &[5; 200]].concat().into_iter().map(Duration::from_secs).collect();
    Arc::new(Feishu::start(feishu::Options { redelivery, ..Default::default() }).await.unwrap())
}

pub(crate) async fn dingtalk() -> Arc<dyn Platform> {
    // Unacknowledged messages are repeated after a minute there, which is too long here.
    let repeat = Some(Duration::from_millis(200));
    Arc::new(DingTalk::start(dingtalk::Options { repeat, ..Default::default() }).await.unwrap())
}

pub(crate) async fn dingtalk_without_cards() -> Arc<dyn Platform> {
    let repeat = Some(Duration::from_millis(200));
    Arc::new(DingTalk::start(dingtalk::Options { repeat, cards: false, ..Default::default() }).await.unwrap())
}

pub(crate) async fn slack() -> Arc<dyn Platform> {
    Arc::new(Slack::start(slack::Options::default()).await.unwrap())
}

pub(crate) async fn discord() -> Arc<dyn Platform> {
    Arc::new(Discord::start(discord::Options::default()).await.unwrap())
}
