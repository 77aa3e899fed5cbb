use super::*;
use crate::{
    OutFile,
    telegram::{
        TelegramChannel,
        loopback::{Do, TOKEN, TelegramLoopback, config},
    },
};
use serde_json::{Value, json};
use std::time::Duration;

fn text(body: &str) -> TelegramText {
    TelegramText { body: body.into(), html: true, buttons: Vec::new() }
}

async fn server() -> TelegramLoopback {
    TelegramLoopback::start(|method, _, _| match method {
        "sendmessage" | "editmessagetext" | "sendphoto" => Do::Result(json!({
            "message_id": 9, "message_thread_id": 5, "is_topic_message": true,
            "reply_to_message": {"message_id": 4}, "chat": {"id": 7}, "something": "new",
        })),
        _ => Do::Result(json!(true)),
    })
    .await
}

#[tokio::test]
async fn calls_have_the_documented_parameters() {
    let server = server().await;
    let client = server.client();
    let buttons = vec![Choice { label: "Stop".into(), action: "/stop".into() }];
    let to = Thread { topic: Some(5), reply_to: Some(4) };
    let off = json!({"is_disabled": true});
    let keyboard = json!({"inline_keyboard": [[{"text": "Stop", "callback_data": "/stop"}]]});
    let cases: [(TelegramCall, &str, Value); 6] = [
        (
            TelegramCall::Send { to, text: TelegramText { buttons: buttons.clone(), ..text("<b>a</b>") } },
            "sendmessage",
            json!({
                "chat_id": 7, "text": "<b>a</b>", "parse_mode": "HTML", "message_thread_id": 5,
                "link_preview_options": off, "reply_markup": keyboard,
                "reply_parameters": {"message_id": 4, "allow_sending_without_reply": true},
            }),
        ),
        (
            TelegramCall::Edit { id: 9, text: TelegramText { html: false, ..text("a") } },
            "editmessagetext",
            json!({"chat_id": 7, "message_id": 9, "text": "a", "link_preview_options": off}),
        ),
        (
            TelegramCall::Edit { id: 10, text: TelegramText { buttons, ..text("a") } },
            "editmessagetext",
            json!({
                "chat_id": 7, "message_id": 10, "text": "a", "parse_mode": "HTML",
                "link_preview_options": off, "reply_markup": keyboard,
            }),
        ),
        (TelegramCall::Delete { id: 9 }, "deletemessage", json!({"chat_id": 7, "message_id": 9})),
        (
            TelegramCall::Typing { topic: Some(5) },
            "sendchataction",
            json!({"chat_id": 7, "message_thread_id": 5, "action": "typing"}),
        ),
        (
            TelegramCall::Seen { id: 4 },
            "setmessagereaction",
            json!({"chat_id": 7, "message_id": 4, "reaction": [{"type": "emoji", "emoji": "👀"}]}),
        ),
    ];
    for (call, method, parameters) in cases {
        let posted = client.call(7, &call).await.unwrap();
        let makes = matches!(call, TelegramCall::Send { .. } | TelegramCall::Edit { .. });
        assert_eq!(posted, if makes { SentMessage { id: 9, thread: to } } else { SentMessage::default() });
        assert_eq!(server.asked(method).pop(), Some(parameters));
    }
}

#[tokio::test]
async fn a_picture_is_uploaded_with_its_name_and_topic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, b"PIXELS").unwrap();
    let server = server().await;
    let file = OutFile { name: "cat.png".into(), path };
    let to = Thread { topic: Some(5), reply_to: None };
    let posted = server.client().call(7, &TelegramCall::Upload { to, file, photo: true }).await.unwrap();
    assert_eq!(posted.id, 9);
    let form = server.asked("sendphoto").pop().unwrap().as_str().unwrap().to_owned();
    for piece in [
        "name=\"chat_id\"\r\n\r\n7\r\n",
        "name=\"message_thread_id\"\r\n\r\n5\r\n",
        "name=\"photo\"; filename=\"cat.png\"\r\n",
        "\r\n\r\nPIXELS\r\n",
    ] {
        assert!(form.contains(piece), "{piece:?} is not in {form:?}");
    }
}

#[tokio::test]
async fn an_incompletely_sent_file_did_not_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/tg", listener.local_addr().unwrap());
    tokio::spawn(async move {
        // Reads at most a megabyte of each call, and closes the connection.
        while let Ok((line, _)) = listener.accept().await {
            let (mut line, mut got) = (tokio::io::AsyncReadExt::take(line, 1_000_000), Vec::new());
            while !got.ends_with(b"--\r\n") {
                match tokio::io::AsyncReadExt::read_buf(&mut line, &mut got).await {
                    Ok(1..) => {}
                    _ => break,
                }
            }
        }
    });
    let client = TelegramClient::new(TOKEN.into(), url.parse().unwrap()).unwrap();
    for (size, perhaps) in [(40_000_000, false), (10, true)] {
        let path = folder.path().join(size.to_string());
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        let file = OutFile { name: "a.bin".into(), path };
        let call = TelegramCall::Upload { to: Thread::default(), file, photo: false };
        let error = client.call(7, &call).await.unwrap_err();
        assert_eq!(matches!(error, CallError::Unknown(_)), perhaps, "{size}: {error}");
    }
}

#[tokio::test]
async fn an_unreadable_response_leaves_the_outcome_unknown() {
    let server = TelegramLoopback::start(|method, _, _| match method {
        "sendmessage" => Do::Bytes(b"<html>bad gateway</html>".to_vec()),
        _ => Do::Result(json!({"unexpected": true})),
    })
    .await;
    let client = server.client();
    for call in [
        TelegramCall::Send { to: Thread::default(), text: text("a") },
        TelegramCall::Edit { id: 1, text: text("a") },
    ] {
        let error = client.call(7, &call).await.unwrap_err();
        assert_eq!(error, CallError::Unknown("an unreadable response (HTTP 200)".into()));
    }
}

#[tokio::test]
async fn the_token_is_in_no_error() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let client = TelegramClient::new(TOKEN.into(), gone.parse().unwrap()).unwrap();
    let error = client.call(7, &TelegramCall::Delete { id: 1 }).await.unwrap_err();
    assert!(matches!(error, CallError::Unconnected(_)), "{error:?}");
    let telegram = TelegramChannel::new(config(&gone)).unwrap();
    let attachment = crate::Attachment { handle: "F".into(), name: "a".into(), size: None };
    let download = crate::Channel::download(&telegram, &attachment, "/nowhere/a".as_ref(), 10).await;
    let texts = [
        format!("{error} {error:?}"),
        format!("{download:?}"),
        format!("{:?}", config(&gone)),
        format!(
            "{:?}",
            TelegramChannel::new(crate::telegram::TelegramConfig { token: "1:a b".into(), ..config(&gone) })
                .err()
        ),
    ];
    for text in texts {
        assert!(!text.contains("AAF7") && !text.contains("a b"), "{text}");
    }
}

#[tokio::test]
async fn the_token_is_in_no_error_of_a_truncated_or_slow_exchange() {
    let server = TelegramLoopback::start(|_, _, _| Do::Wait).await;
    let client = server.client();
    let slow = client.ask_by_name::<_, bool>("X", &json!({}), Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(slow, CallError::Unknown("the call timed out: operation timed out".into()));
}

/// A fake platform server must not fill the memory.
#[tokio::test]
async fn an_endless_response_is_not_read_to_its_end() {
    let endless = || async {
        let chunk = bytes::Bytes::from(vec![b' '; 1 << 20]);
        let chunks = futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
        axum::body::Body::from_stream(chunks)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(endless)).await });
    let client = TelegramClient::new(TOKEN.into(), url.parse().unwrap()).unwrap();
    let answer = client.ask_by_name::<_, Value>("getMe", &json!({}), CALL_TIMEOUT).await;
    assert_eq!(answer.err(), Some(CallError::Unknown("the response is too large".to_owned())));
}
