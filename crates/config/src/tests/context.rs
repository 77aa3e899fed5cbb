//! Recent messages of groups, and summaries of long conversations.

use super::*;

#[test]
fn groups_are_buffered_only_on_request_and_without_a_platform_history() {
    let text = "channels:
  slack: {bot_token: xoxb-a, app_token: xapp-a, allowed_users: [U1]}
  open: {type: slack, bot_token: xoxb-b, app_token: xapp-b}
  telegram: {bot_token: t, allowed_users: [1]}
  buffering: {type: telegram, bot_token: t2, context: {messages: 20, minutes: 5}}
  dingtalk: {client_id: c, client_secret: s, context: {messages: 10}}
";
    let hot = good(text, []).config.hot;
    let check = |account: &str, messages: usize, minutes: u64, buffered: bool| {
        let context = hot.policies[account].context;
        let found = (context.messages, context.age.as_secs() / 60, context.is_buffered());
        assert_eq!(found, (messages, minutes, buffered), "{account}");
    };
    check("slack", 50, 1440, false);
    check("open", 0, 1440, false);
    check("telegram", 0, 1440, false);
    check("buffering", 20, 5, true);
    check("dingtalk", 10, 1440, true);
    let reads_groups = |account: &str| {
        let platform = hot.accounts.iter().find(|one| one.name == account).map(|one| &one.platform);
        format!("{platform:?}").contains("reads_groups: true")
    };
    assert_eq!(["telegram", "buffering"].map(reads_groups), [false, true]);
}

#[test]
fn invalid_summarization_settings_are_refused_with_their_position() {
    for (text, expect) in [
        ("{model_name: gpt}", "error: summarization.model_name: there is no model gpt"),
        ("{trigger: {type: tokens}}", "error: summarization.trigger: `value` is missing"),
        ("{trigger: [{value: 3}]}", "error: summarization.trigger[0]: `type` is missing"),
        (
            "{trigger: {type: fraction, value: 80}}",
            "error: summarization.trigger.value: 80 is not a fraction of the window",
        ),
        ("{keep: {type: messages, value: 0.5}}", "error: summarization.keep.value: 0.5 is not a count"),
        (
            "{trim_tokens_to_summarize: 4000}",
            "warning: summarization.trim_tokens_to_summarize: this has no effect",
        ),
        (
            "{trigger: {type: messages, value: 10}, keep: {type: messages, value: 10}}",
            "warning: summarization.keep: `keep` is as large as `trigger`",
        ),
    ] {
        let problems = messages(&format!("summarization: {text}\n"), []);
        assert!(problems.contains(expect), "{text}: {problems}");
    }
    assert_eq!(
        messages("summarization: {trim_tokens_to_summarize: null, model_name: null, trigger: null}\n", []),
        ""
    );
}
