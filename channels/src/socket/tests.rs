use super::*;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async;

const KEEPALIVE: Keepalive = Keepalive { ping: Duration::from_secs(10), idle: Duration::from_secs(35) };

/// Serves one connection with `talk` and returns its URL.
async fn peer<F>(talk: impl FnOnce(WebSocketStream<TcpStream>) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        talk(accept_async(stream).await.unwrap()).await;
    });
    format!("ws://{address}/?ticket=s3cret")
}

#[tokio::test]
async fn text_and_bytes_are_exchanged_and_a_close_frame_is_reported() {
    let url = peer(|mut peer| async move {
        while let Some(Ok(message)) = peer.next().await {
            let done = message == Message::text("bye");
            peer.send(message).await.unwrap();
            if done {
                let frame = CloseFrame { code: CloseCode::Policy, reason: "renew".into() };
                peer.close(Some(frame)).await.unwrap();
            }
        }
    })
    .await;
    let mut socket = Socket::connect(&url, KEEPALIVE).await.unwrap();
    socket.send_binary(vec![1, 2]).await.unwrap();
    socket.send_text("bye".into()).await.unwrap();
    assert_eq!(socket.next().await, Ok(SocketFrame::Binary(vec![1, 2])));
    assert_eq!(socket.next().await, Ok(SocketFrame::Text("bye".into())));
    assert_eq!(socket.next().await, Ok(SocketFrame::Close(Some((1008, "renew".into())))));
}

#[tokio::test]
async fn an_oversized_message_is_refused() {
    let url = peer(|mut peer| async move {
        peer.send(Message::binary(vec![0; MAX_MESSAGE_BYTES + 1])).await.ok();
    })
    .await;
    let mut socket = Socket::connect(&url, KEEPALIVE).await.unwrap();
    assert_eq!(socket.next().await, Err(lost("a message is too large")));
}

#[tokio::test]
async fn errors_do_not_contain_the_url() {
    for url in ["ws://127.0.0.1:1/?ticket=s3cret", "http://s3cret", "ws://"] {
        let error = Socket::connect(url, KEEPALIVE).await.err().unwrap();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
}

#[tokio::test]
async fn a_refused_handshake_returns_the_platforms_codes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 2048];
        let _ = stream.read(&mut buffer).await.unwrap();
        let answer = "HTTP/1.1 514 no\r\nhandshake-status: 514\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let error = Socket::connect(&format!("ws://{address}/"), KEEPALIVE).await.err().unwrap();
    let SocketError::Refused { status, headers } = error else { panic!("{error:?}") };
    assert_eq!(status, 514);
    assert!(headers.contains(&("handshake-status".to_owned(), "514".to_owned())));
}

#[tokio::test]
async fn a_silent_peer_is_dead() {
    let pulse = Keepalive { ping: Duration::from_millis(20), idle: Duration::from_millis(200) };
    // This peer never reads, so it never answers a ping.
    let url = peer(|peer| async move {
        std::future::pending::<()>().await;
        drop(peer);
    })
    .await;
    let mut socket = Socket::connect(&url, pulse).await.unwrap();
    assert_eq!(socket.next().await, Err(SocketError::Silent));
}
