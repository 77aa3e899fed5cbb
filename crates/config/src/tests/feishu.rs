//! Settings of a Feishu bot, and messages about invalid ones.

use super::*;
use secrecy::ExposeSecret;

#[test]
fn a_feishu_bot_is_read_completely() {
    let read = |text: &str| {
        let loaded = good(text, [("T", "hush"), ("K", "key"), ("V", "token")]);
        let platform = loaded.config.hot.accounts[0].platform.clone();
        let secrets: Vec<_> = platform.secrets().into_iter().map(ExposeSecret::expose_secret).collect();
        (format!("{platform:?}"), platform.transport(), secrets.join(" "))
    };
    let config = |domain: &str, mode: &str, rest: &str| {
        format!(
            "FeishuAccountConfig(FeishuConfig {{ account: \"\", app_id: \"cli_1\", app_secret: SecretBox<str>([REDACTED]), domain: {:?}, \
             mode: {mode}, {rest} }})",
            Url::parse(domain).unwrap(),
        )
    };
    let deerflow = "channels: {feishu: {enabled: true, app_id: cli_1, app_secret: $T, domain: https://open.larksuite.com}}";
    let usual = "require_mention: true, stream_interval: 500ms";
    let expected = config("https://open.larksuite.com", "LongConnection", usual);
    assert_eq!(read(deerflow), (expected, "ws", "hush".to_owned()));
    let posted =
        "channels: {bot: {type: feishu, app_id: cli_1, app_secret: $T, mode: webhook, encrypt_key: $K,
                  verification_token: $V, require_mention: false, stream_interval_ms: 1500}}";
    let mode =
        "Webhook { encrypt_key: SecretBox<str>([REDACTED]), verification_token: SecretBox<str>([REDACTED]) }";
    let expected = config("https://open.feishu.cn", mode, "require_mention: false, stream_interval: 1.5s");
    assert_eq!(read(posted), (expected, "webhook", "hush key token".to_owned()));
}

/// GHSA-g353-mgv3-8pcj: the verification token alone is not enough for a webhook.
#[test]
fn a_webhook_requires_its_keys() {
    let help = "help: copy it from the developer console: Events & Callbacks, Encryption Strategy";
    for (missing, there) in [("encrypt_key", "verification_token"), ("verification_token", "encrypt_key")] {
        let text =
            format!("channels: {{feishu: {{app_id: a, app_secret: s, mode: webhook, {there}: hush}}}}\n");
        let messages = messages(&text, []);
        let expected = format!("channels.feishu.{missing}: required for `mode: webhook`");
        assert!(
            messages.contains(&expected) && messages.contains(help) && !messages.contains("hush"),
            "{messages}"
        );
    }
    let off = "channels: {feishu: {enabled: false, app_id: a, mode: webhook}}\n";
    assert_eq!(messages(off, []), "");
}

#[test]
fn only_ids_are_allowed_users() {
    let account =
        |ids: &str| format!("channels: {{feishu: {{app_id: a, app_secret: s, allowed_users: {ids}}}}}\n");
    assert_eq!(messages(&account("[ou_1a]"), []), "");
    for typed in ["[ada]", "[\"@ada\"]", "[7]", "[ou_]", "[\"ou_1 \\\\n\"]", "\"\""] {
        let messages = messages(&account(typed), []);
        assert!(messages.contains("begin with `ou_` for users"), "{typed}: {messages}");
    }
}
