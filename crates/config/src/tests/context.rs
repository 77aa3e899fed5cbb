//! Recent messages of groups.

use super::*;

#[test]
fn groups_are_read_where_the_platform_has_a_history_and_buffered_where_the_account_asks() {
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
