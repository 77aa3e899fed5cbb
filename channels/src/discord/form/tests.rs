use super::*;
use crate::form::tests::{FormSink, form_of_each_kind};
use crate::{Address, EventKey, InboundKind, QuestionForm, Sender, discord::loopback::DiscordLoopback};

fn form() -> QuestionForm {
    let mut form = form_of_each_kind();
    form.fields.retain(|field| !matches!(field.kind, FieldKind::Textarea | FieldKind::Number));
    form
}

fn submission(components: &Value) -> Interaction {
    let data = json!({"custom_id": MODAL, "components": components});
    serde_json::from_value(json!({"id": "5", "type": 5, "token": "tok", "data": data})).unwrap()
}

fn inbound() -> Inbound {
    Inbound {
        key: EventKey("i5".into()),
        address: Address { account: "d".into(), chat: "2".into(), topic: None },
        private: true,
        message: "8".into(),
        reply_to: None,
        sender: Sender { id: "7".into(), name: "Ada".into(), language: None },
        addressed: true,
        at: 0,
        pointed: Vec::new(),
        hint: None,
        kind: InboundKind::Submit { text: String::new(), attachments: Vec::new() },
    }
}

#[test]
fn each_kind_of_field_has_its_component() {
    let modal = modal(&OpenForm { form: form(), language: Language::English });
    let components = modal["components"].as_array().unwrap();
    let kinds: Vec<&Value> = components.iter().map(|labelled| &labelled["component"]["type"]).collect();
    assert_eq!(kinds, [4, 3, 3, 3, 4]);
    let name = json!({
        "type": 18, "label": "Text",
        "component": {"type": 4, "custom_id": "field_0", "style": 1, "required": true, "max_length": 4000,
            "placeholder": "Ada"},
    });
    assert_eq!(components[0], name);
    let sizes = &components[2]["component"];
    assert_eq!((&sizes["min_values"], &sizes["max_values"]), (&json!(0), &json!(2)));
    assert_eq!(sizes["options"][1], json!({"label": "L, with lid", "value": "1"}));
}

#[tokio::test]
async fn a_submission_is_checked_and_stored() {
    let server = DiscordLoopback::start(|_, _| (200, json!({}))).await;
    let discord = server.discord();
    let sink = FormSink { form: Some(form()), ..FormSink::default() };
    let labelled = |input: Value| json!({"type": 18, "id": 1, "component": input});
    let send = async |components: Value| {
        discord.handler.submit_form(&submission(&components), inbound(), &sink).await
    };
    for garbage in [
        json!(null),
        json!([7]),
        json!([labelled(json!([])), labelled(json!({"custom_id": "field_0", "value": [], "values": 1}))]),
    ] {
        let Ok(EventResponse::Respond { body, .. }) = send(garbage).await else {
            panic!("the form is accepted")
        };
        assert_eq!(
            (&body["type"], &body["data"]["content"]),
            (&json!(4), &json!("Text: Please fill this in."))
        );
        assert_eq!(body["data"]["flags"], 68, "the message is shown only to the user");
    }
    assert!(sink.answers().is_empty());
    let right = json!([
        labelled(json!({"custom_id": "field_0", "value": "Ada"})),
        labelled(json!({"custom_id": "field_1", "values": ["0"]})),
        labelled(json!({"custom_id": "field_2", "values": ["0", "1"]})),
        labelled(json!({"custom_id": "field_3", "values": []})),
        labelled(json!({"custom_id": "field_99", "value": "?"})),
    ]);
    assert!(matches!(send(right).await, Ok(EventResponse::Press { .. })));
    assert_eq!(sink.answers(), ["Text: Ada\nSelect: S\nMultiSelect: S, L, with lid\nCheckbox: no"]);
    let over = FormSink::default();
    let refused = discord.handler.submit_form(&submission(&json!([])), inbound(), &over).await;
    let Ok(EventResponse::Respond { body, .. }) = refused else { panic!("the form is accepted") };
    assert_eq!(body["data"]["content"], "It is over.");
}
