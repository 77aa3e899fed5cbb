use super::*;
use serde_json::json;

fn me() -> SlackIdentity {
    SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() }
}

fn read(message: &Value, thread: Option<&str>) -> Vec<PointedAt> {
    let message: SlackMessage = serde_json::from_value(message.clone()).unwrap();
    let names = HashMap::from([("U2".to_owned(), "Bob".to_owned())]);
    pointed(&message, "C1", thread, PieceContext { me: &me(), names: &names })
}

fn piece(kind: PointedKind, author: &str, text: &str) -> PointedAt {
    PointedAt::of_text(kind, text).by(Some(author))
}

fn error_log() -> Value {
    json!({"id": "F77", "name": "error.log", "mode": "hosted", "url_private_download": "https://files.slack.com/F77", "size": 11})
}

#[test]
fn shared_messages_cards_and_previews_are_read_with_their_files() {
    let check = |card: Value, expected: PointedAt| {
        assert_eq!(read(&json!({"text": "", "attachments": [card]}), None), [expected], "{card}");
    };
    let file =
        Attachment { handle: "https://files.slack.com/F77".into(), name: "error.log".into(), size: Some(11) };
    let forward = json!({
        "is_share": true, "is_msg_unfurl": true, "author_name": "Ann", "author_id": "U55", "channel_id": "C99",
        "channel_name": "ops", "ts": "1750000000.000100", "from_url": "https://team.example.org/archives/C99/p1750000000000100",
        "text": "the backup of <@U2> failed", "fallback": "[June 15th] Ann: the backup", "files": [error_log()],
    });
    let expected = piece(PointedKind::Forward, "Ann", "the backup of @Bob failed").from(Some("#ops"));
    let expected = PointedAt { at: Some(1_750_000_000_000), ..expected.with_files([file.clone()]) };
    check(forward, expected);
    // The text of the shared message is only in its blocks.
    let section = json!({"type": "rich_text_section", "elements": [{"type": "text", "text": "in blocks"}]});
    let blocks = json!([{"message": {"blocks": [{"type": "rich_text", "elements": [section]}]}}]);
    let own = json!({"is_share": true, "author_id": "UBOT", "author_name": "pudu", "text": "", "message_blocks": blocks});
    check(own, PointedAt { own: true, ..piece(PointedKind::Forward, "pudu", "in blocks") });
    let linked = json!({"is_msg_unfurl": true, "author_subname": "Cy", "text": "linked", "ts": 1_750_000_000, "channel_id": "C2"});
    check(linked, PointedAt { at: Some(1_750_000_000_000), ..piece(PointedKind::Link, "Cy", "linked") });
    let alert = json!({
        "color": "danger", "pretext": "look", "title": "disk full", "title_link": "https://m.example/1",
        "text": "host db1 at 98 %", "fields": [{"title": "Region", "value": "eu"}, {"value": "x"}, 7],
        "image_url": "https://m.example/g.png", "footer": "monitor", "fallback": "disk full",
    });
    let text = "look\ndisk full (https://m.example/1)\nhost db1 at 98 %\nRegion: eu\nx\n[image: https://m.example/g.png]\nmonitor";
    check(alert, PointedAt::of_text(PointedKind::Card, text));
    let preview = json!({"from_url": "https://x.example/a", "title": "A page", "text": "about"});
    check(preview, PointedAt::of_text(PointedKind::Embed, "A page\nabout").from(Some("https://x.example/a")));
    let bare = json!({"fallback": "only this"});
    check(bare, PointedAt::of_text(PointedKind::Card, "only this"));
    let app = json!({"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "*built*"}}]});
    check(app, PointedAt::of_text(PointedKind::Card, "*built*"));
    assert_eq!(read(&json!({"text": "hi", "attachments": [7, {"title": {}}, null]}), None), []);
    assert_eq!(read(&json!({"text": "hi", "attachments": {"a": 1}}), None), []);
    // A list with one malformed and one deleted file.
    let malformed =
        json!({"text": "x", "files": [{"id": {}}, error_log(), {"id": "F1", "mode": "tombstone"}, 3]});
    check(malformed, PointedAt::of_text(PointedKind::Card, "x").with_files([file]));
}

#[test]
fn links_to_messages_are_followed_once_and_no_other_links() {
    let check = |url: &str, expected: Option<&str>| {
        let found = SlackMessageLink::from_url(url).map(|link| link.reference());
        assert_eq!(found.as_deref(), expected, "{url}");
        let link = SlackMessageLink::from_url(url);
        assert_eq!(link.as_ref().and_then(|link| SlackMessageLink::from_reference(&link.reference())), link);
    };
    check("https://team.slack.com/archives/C9/p1750000000000100", Some("C9:1750000000.000100:"));
    let threaded = "https://team.slack.com/archives/C9/p1750000000000200?thread_ts=1750000000.000100&cid=C9";
    check(threaded, Some("C9:1750000000.000200:1750000000.000100"));
    check("https://team.slack.com/archives/C9", None);
    check("https://team.slack.com/archives/../p1750000000000100", None);
    check("https://team.slack.com/archives/C9/p17500000x0000100", None);
    check("https://team.slack.com/files/U1/F1/a.txt", None);
    check("javascript:alert(1)", None);
    let url = "https://t.slack.com/archives/C9/p1750000000000100";
    let linked = PointedAt::unread(PointedKind::Link, "C9:1750000000.000100:");
    let text = format!("see <{url}> and <{url}|this> and <https://x.example>");
    assert_eq!(read(&json!({"text": text}), None), std::slice::from_ref(&linked));
    let unfurl =
        json!({"is_msg_unfurl": true, "channel_id": "C9", "ts": "1750000000.000100", "text": "shown"});
    let shown = read(&json!({"text": text, "attachments": [unfurl]}), None);
    assert_eq!(shown.iter().filter(|piece| piece.reference.is_some()).count(), 0);
    let many: String =
        (10..40).map(|n| format!("<https://t.slack.com/archives/C9/p17500000000001{n}>")).collect();
    assert_eq!(read(&json!({"text": many}), None).len(), MAX_LINKS);
    let opening = PointedAt::unread(PointedKind::Opening, "C1:1.000100:");
    assert_eq!(read(&json!({"text": "hi"}), Some("1.000100")), [opening]);
}

#[test]
fn a_fetched_message_is_one_piece_with_its_cards_and_files() {
    let names = HashMap::from([("U2".to_owned(), "Bob".to_owned())]);
    let context = me();
    let context = PieceContext { me: &context, names: &names };
    let check = |message: Value, expected: PointedAt| {
        let message: SlackMessage = serde_json::from_value(message).unwrap();
        assert_eq!(context.message(PointedKind::Link, &message), expected);
    };
    check(
        json!({"user": "U2", "text": "hi <@U2>", "ts": "2.000100"}),
        PointedAt { at: Some(2000), ..piece(PointedKind::Link, "Bob", "hi @Bob") },
    );
    let alert = json!({"subtype": "bot_message", "bot_id": "B9", "username": "Monitor", "text": "", "ts": "2.0",
        "attachments": [{"title": "disk full", "files": [error_log()]}]});
    let file =
        Attachment { handle: "https://files.slack.com/F77".into(), name: "error.log".into(), size: Some(11) };
    let expected = piece(PointedKind::Link, "Monitor", "disk full").with_files([file]);
    check(alert, PointedAt { at: Some(2000), ..expected });
    let own = json!({"user": "UBOT", "bot_id": "BBOT", "bot_profile": {"name": "pudu"}, "text": "mine"});
    check(own, PointedAt { own: true, ..piece(PointedKind::Link, "pudu", "mine") });
}
