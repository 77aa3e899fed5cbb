//! Settings of a Feishu account, and messages on wrong ones.

use super::*;
use secrecy::ExposeSecret;

#[test]
fn a_feishu_account_has_all_that_it_needs() {
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

/// GHSA-g353-mgv3-8pcj: a webhook is not opened with the verification token alone.
#[test]
fn a_webhook_is_not_opened_without_its_keys() {
    let help = "help: copy it from the developer console: Events & Callbacks, Encryption Strategy";
    for (missing, there) in [("encrypt_key", "verification_token"), ("verification_token", "encrypt_key")] {
        let text =
            format!("channels: {{feishu: {{app_id: a, app_secret: s, mode: webhook, {there}: hush}}}}\n");
        let said = said(&text, []);
        let expected = format!("channels.feishu.{missing}: `mode: webhook` needs it");
        assert!(said.contains(&expected) && said.contains(help) && !said.contains("hush"), "{said}");
    }
    let off = "channels: {feishu: {enabled: false, app_id: a, mode: webhook}}\n";
    assert_eq!(said(off, []), "");
}

#[test]
fn only_ids_open_the_door() {
    let account =
        |ids: &str| format!("channels: {{feishu: {{app_id: a, app_secret: s, allowed_users: {ids}}}}}\n");
    assert_eq!(said(&account("[ou_1a]"), []), "");
    for typed in ["[ada]", "[\"@ada\"]", "[7]", "[ou_]", "[\"ou_1 \\\\n\"]", "\"\""] {
        let said = said(&account(typed), []);
        assert!(said.contains("people's begin with `ou_`"), "{typed}: {said}");
    }
}
