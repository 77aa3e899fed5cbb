use super::*;
use crate::{
    HealthCell,
    form::tests::{FormSink, form_of_each_kind},
    slack::{
        account_state::SlackAccountState, client::SlackClient, event_handler::Source, wire::SlackIdentity,
    },
};
use std::sync::Arc;

fn handler() -> SlackEventHandler {
    let client = SlackClient::new("http://127.0.0.1:9/api".parse().unwrap(), "xoxb-1".into(), None).unwrap();
    let state = SlackAccountState::new(client);
    let _ = state.me.set(SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() });
    SlackEventHandler {
        account: "slack".into(),
        state: Arc::new(state),
        require_mention: true,
        commands: Arc::new([]),
        health: HealthCell::default(),
        order: Arc::default(),
    }
}

fn submission(values: &Value) -> Value {
    let place = r#"{"channel": "C1", "message": "5.1", "thread": "4.1"}"#;
    json!({
        "type": "view_submission", "user": {"id": "U7", "name": "ada", "team_id": "T1"},
        "view": {"id": "V1", "callback_id": "pudu_form", "private_metadata": place, "state": {"values": values}},
    })
}

#[test]
fn each_kind_of_field_has_its_element() {
    let open = OpenForm { form: form_of_each_kind(), language: Language::English };
    let place = FormPlace { channel: "C1".into(), message: "5.1".into(), thread: None };
    let view = modal(&open, &place);
    assert_eq!(view["private_metadata"], r#"{"channel":"C1","message":"5.1"}"#);
    assert_eq!(view["blocks"][0]["text"]["text"], "Where *to*?");
    let blocks = view["blocks"].as_array().unwrap();
    let kinds: Vec<&Value> = blocks.iter().skip(1).map(|block| &block["element"]["type"]).collect();
    assert_eq!(
        kinds,
        [
            "plain_text_input",
            "plain_text_input",
            "number_input",
            "static_select",
            "multi_static_select",
            "checkboxes",
            "datepicker",
            "file_input"
        ]
    );
    let name = json!({
        "type": "input", "block_id": "field_0", "label": {"type": "plain_text", "text": "Text"}, "optional": false,
        "element": {"type": "plain_text_input", "action_id": "answer",
            "placeholder": {"type": "plain_text", "text": "Ada"}},
    });
    assert_eq!(blocks[1], name);
    let options = json!([
        {"text": {"type": "plain_text", "text": "S"}, "value": "0"},
        {"text": {"type": "plain_text", "text": "L, with lid"}, "value": "1"},
    ]);
    assert_eq!(blocks[4]["element"]["options"], options);
}

#[tokio::test]
async fn a_submission_is_checked_and_stored_with_its_files() {
    let (handler, sink) = (handler(), FormSink { form: Some(form_of_each_kind()), ..FormSink::default() });
    let send = async |values: Value| handler.keep(Source::Action, submission(&values), &sink).await.unwrap();
    let chosen = |at: &str| json!({"answer": {"selected_options": [{"value": at}]}});
    let wrong = send(json!({"field_2": {"answer": {"value": "many"}}, "field_3": {"answer": {"selected_option": {"value": "9"}}}, "field_99": {}})).await;
    let errors = json!({
        "field_0": "Please fill this in.", "field_2": "Please enter a number.",
        "field_3": "Please choose one of the options: S / L, with lid",
    });
    assert_eq!(wrong, Some(json!({"response_action": "errors", "errors": errors})));
    for garbage in [json!(null), json!([]), json!({"field_0": 7}), json!({"field_0": {"answer": []}})] {
        let response = send(garbage).await;
        assert_eq!(
            response.map(|response| response["errors"]["field_0"].clone()),
            Some("Please fill this in.".into())
        );
    }
    assert!(sink.answers().is_empty());
    let file = json!({"id": "F1", "name": "a.txt", "url_private": "https://files.slack.com/a"});
    let right = json!({
        "field_0": {"answer": {"value": "Ada"}}, "field_4": chosen("1"), "field_5": chosen("yes"),
        "field_6": {"answer": {"selected_date": "2026-12-01"}}, "field_7": {"answer": {"files": [file, 7]}},
    });
    assert_eq!(send(right).await, None);
    assert_eq!(sink.answers(), ["Text: Ada\nMultiSelect: L, with lid\nCheckbox: yes\nDate: 2026-12-01"]);
    let kept = sink.kept.lock().unwrap().pop().unwrap();
    assert_eq!((kept.key.0.as_str(), kept.message.as_str()), ("vV1", "5.1"));
    assert_eq!(kept.address.topic.as_deref(), Some("4.1"));
    let InboundKind::Submit { attachments, .. } = kept.kind else { panic!("no form") };
    assert_eq!(attachments.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a.txt"]);
}

#[tokio::test]
async fn a_closed_form_is_reported_and_invalid_submissions_are_ignored() {
    let (handler, sink) = (handler(), FormSink::default());
    let over = handler.keep(Source::Action, submission(&json!({})), &sink).await.unwrap().unwrap();
    assert_eq!(over["response_action"], "update");
    assert_eq!(over["view"]["blocks"][0]["text"]["text"], "It is over.");
    for (path, value) in [
        ("/view/callback_id", json!("other")),
        ("/view/id", json!(7)),
        ("/view/private_metadata", json!("{")),
        ("/view/private_metadata", json!("{}")),
        ("/user", json!(null)),
        ("/view", json!([])),
    ] {
        let mut payload = submission(&json!({}));
        *payload.pointer_mut(path).unwrap() = value;
        assert_eq!(handler.keep(Source::Action, payload, &sink).await.unwrap(), None, "{path}");
    }
    assert!(sink.answers().is_empty());
}
