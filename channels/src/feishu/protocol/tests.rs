use super::*;
use proptest::prelude::*;

fn frame(id: &str, sum: usize, seq: usize, part: &[u8]) -> Vec<u8> {
    let headers = vec![
        FrameHeader::new("type", "event"),
        FrameHeader::new("message_id", id),
        FrameHeader::new("sum", sum.to_string()),
        FrameHeader::new("seq", seq.to_string()),
        FrameHeader::new("trace_id", "t"),
    ];
    let payload = Some(part.to_vec());
    let seq_id = seq as u64 + 7;
    FeishuFrame { seq_id, log_id: 9, service: 3, method: DATA, headers, payload, ..FeishuFrame::default() }
        .encode_to_vec()
}

/// Returns the events of these frames, each pushed a second after the previous one.
fn events(frames: &[Vec<u8>]) -> Vec<String> {
    let mut protocol = Protocol::new(3);
    let start = Instant::now();
    let mut events = Vec::new();
    for (n, bytes) in frames.iter().enumerate() {
        let now = start + Duration::from_secs(n as u64);
        if let ProtocolStep::Event(delivery) = protocol.push(bytes, now) {
            events.push(String::from_utf8(delivery.payload).unwrap());
        }
    }
    events
}

#[test]
fn fragments_are_joined_in_any_order_and_interleaved() {
    let (a, b) = ("鹿".as_bytes(), [&b"x"[..], b"y", b"z"]);
    let (a0, a1) = (frame("a", 2, 0, &a[..1]), frame("a", 2, 1, &a[1..]));
    let b: Vec<_> = b.iter().enumerate().map(|(seq, part)| frame("b", 3, seq, part)).collect();
    let cases = [
        (vec![frame("a", 1, 0, b"{}")], vec!["{}"]),
        (vec![a0.clone(), a1.clone()], vec!["鹿"]),
        (vec![a1.clone(), a0.clone()], vec!["鹿"]),
        (vec![b[2].clone(), a1.clone(), b[0].clone(), a0.clone(), b[1].clone()], vec!["鹿", "xyz"]),
        (vec![a0.clone(), a0.clone(), a1.clone()], vec!["鹿"]),
        // A complete set is forgotten: a repetition has to be complete again.
        (vec![a0.clone(), a1.clone(), a1.clone()], vec!["鹿"]),
        (vec![a0.clone(), a1.clone(), a0.clone(), a1.clone()], vec!["鹿", "鹿"]),
        // A frame that announces another number of fragments starts over.
        (vec![a0, frame("a", 3, 1, b"?"), a1], vec![]),
        (vec![frame("a", 2, 2, b"x"), frame("a", 100_000, 0, b"x"), frame("a", 2, 9, b"x")], vec![]),
    ];
    for (frames, expected) in cases {
        assert_eq!(events(&frames), expected);
    }
}

#[test]
fn incomplete_events_are_dropped() {
    let mut protocol = Protocol::new(3);
    let now = Instant::now();
    assert_eq!(protocol.push(&frame("a", 2, 0, b"x"), now), ProtocolStep::Nothing);
    assert_eq!(protocol.push(&frame("a", 2, 1, b"y"), now + FRAGMENT_TIMEOUT), ProtocolStep::Nothing);
    for n in 0..10 * SETS {
        protocol.push(&frame(&n.to_string(), 2, 0, &vec![0; 1024 * 1024]), now + FRAGMENT_TIMEOUT);
    }
    assert!(protocol.sets.len() <= SETS && protocol.bytes <= BYTES);
    let sum: usize = protocol.sets.values().map(|set| set.bytes).sum();
    assert_eq!(sum, protocol.bytes);
}

#[test]
fn an_acknowledgement_echoes_its_frame() {
    let mut protocol = Protocol::new(3);
    protocol.push(&frame("a", 2, 1, b"}"), Instant::now());
    let ProtocolStep::Event(delivery) = protocol.push(&frame("a", 2, 0, b"{"), Instant::now()) else {
        panic!()
    };
    let toast = Ok(Some(json!({"toast": {}})));
    let cases = [
        (Ok(None), json!({"code": 200})),
        (Err(()), json!({"code": 500})),
        (toast, json!({"code": 200, "data": "eyJ0b2FzdCI6e319"})),
    ];
    for (answer, payload) in cases {
        let sent =
            FeishuFrame::decode(&*delivery.clone().acknowledge(answer, Duration::from_millis(12))).unwrap();
        assert_eq!((sent.seq_id, sent.log_id, sent.service, sent.method), (7, 9, 3, DATA));
        assert_eq!((sent.header("message_id"), sent.header("biz_rt")), (Some("a"), Some("12")));
        assert_eq!(serde_json::from_slice::<Value>(&sent.payload.unwrap()).unwrap(), payload);
    }
}

#[test]
fn a_ping_encodes_zeros_and_a_pong_sets_the_interval() {
    let ping = Protocol::new(5).ping();
    assert_eq!(ping, b"\x08\x00\x10\x00\x18\x05\x20\x00\x2a\x0c\x0a\x04type\x12\x04ping");
    let pong = |payload: &str| {
        let headers = vec![FrameHeader::new("type", "pong")];
        let payload = Some(payload.as_bytes().to_vec());
        FeishuFrame { method: CONTROL, headers, payload, ..FeishuFrame::default() }.encode_to_vec()
    };
    let cases = [
        ("", None),
        ("{}", None),
        ("?", None),
        (r#"{"PingInterval":90,"ReconnectCount":-1}"#, Some(90)),
        (r#"{"PingInterval":0}"#, None),
        (r#"{"PingInterval":-5}"#, None),
        (r#"{"PingInterval":99999}"#, Some(120)),
    ];
    for (payload, seconds) in cases {
        let step = Protocol::new(5).push(&pong(payload), Instant::now());
        assert_eq!(step, ProtocolStep::Pulse(seconds.map(Duration::from_secs)), "{payload}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut protocol = Protocol::new(1);
        protocol.push(&bytes, Instant::now());
    }

    #[test]
    fn truncated_frames_are_harmless_and_shuffled_events_are_complete(
        text in "\\PC{0,60}", size in 1_usize..20, seed in any::<u64>(), cut in any::<prop::sample::Index>(),
    ) {
        let parts: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let frames = parts.iter().enumerate().map(|(seq, part)| frame("a", parts.len(), seq, part));
        let mut frames: Vec<Vec<u8>> = frames.collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut frames);
        let mut protocol = Protocol::new(1);
        let mut received = Vec::new();
        for bytes in &frames {
            protocol.push(&bytes[..cut.index(bytes.len())], Instant::now());
        }
        let mut protocol = Protocol::new(1);
        for bytes in &frames {
            if let ProtocolStep::Event(delivery) = protocol.push(bytes, Instant::now()) {
                received.push(String::from_utf8(delivery.payload).unwrap());
            }
        }
        prop_assert_eq!(received, if text.is_empty() { vec![] } else { vec![text] });
        prop_assert_eq!(protocol.bytes, 0);
    }
}
