//! What a write accepts, refuses and says.

use super::server::{Server, item, read_all};
use rollyard_server::{CompressAnswers, Settings};
use serde_json::{Value, json};
use std::io::Write;

#[test]
fn a_write_echoes_only_when_asked() {
    let server = Server::start(json!({}));
    let (status, plain) = server.post("/buffer/write", item("a", "i", 1.0));
    assert_eq!((status, &plain["success"], &plain["data"]["data"]), (200, &json!(true), &json!([])));
    let echoed = server.post("/buffer/write?echo=1", item("b", "i", 1.0)).1;
    assert_eq!(echoed["data"]["data"], json!([item("b", "i", 1.0)]));
}

#[test]
fn bulk_lines_stand_for_themselves() {
    let server = Server::start(json!({"group_size": 2}));
    let lines = [
        item("a", "i", 1.0).to_string(),
        "{broken".to_owned(),
        String::new(),
        item("b", "i", 0.0).to_string(),
        item("a", "i", 1.0).to_string(),
        item("a", "i", 0.25).to_string(),
        r#"{"uid":"c","instance_id":"i","messages":[],"reward":null}"#.to_owned(),
        item("d", "j", 0.0).to_string(),
    ];
    let (status, written) = server.send("/api/runs/default/rollouts", lines.join("\n").as_bytes(), &[]);
    assert_eq!(status, 200, "{written}");
    assert_eq!((&written["accepted"], &written["duplicates"]), (&json!(3), &json!(1)));
    let rejected: Vec<(u64, &str)> = written["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["line"].as_u64().unwrap(), line["code"].as_str().unwrap()))
        .collect();
    assert_eq!(rejected, [(2, "not_json"), (6, "uid_taken"), (7, "wrong_field")]);
    let fields = [0, 1, 2].map(|at| &written["rejected"][at]["field"]);
    assert_eq!(fields, [&Value::Null, &Value::Null, &json!("reward")]);
    assert_eq!(server.books()["admitted"], 3);
}

#[test]
fn packed_bodies_are_unpacked() {
    let server = Server::start(json!({}));
    let text = item("a", "i", 1.0).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    assert_eq!(server.send("/buffer/write", &packed, &[("content-encoding", "gzip")]).0, 200);
    assert_eq!(server.get("/api/runs/default/rollouts/a").1["state"], "held");
    let packed_by_zstd = zstd_frame(&item("z", "i", 1.0).to_string());
    assert_eq!(server.send("/buffer/write", &packed_by_zstd, &[("content-encoding", "zstd")]).0, 200);
    assert_eq!(server.get("/api/runs/default/rollouts/z").1["state"], "held");
    let (status, _) = server.send("/buffer/write", &packed[..20], &[("content-encoding", "gzip")]);
    assert_eq!(status, 400);
    assert_eq!(server.send("/buffer/write", b"x", &[("content-encoding", "br")]).0, 415);
}

/// The smallest zstd frame there is: the text in one block, as it is.
fn zstd_frame(text: &str) -> Vec<u8> {
    let text = format!("{text:<300}");
    let len = u16::try_from(text.len() - 256).unwrap();
    let last_raw_block = 1 | (text.len() as u32) << 3;
    let head = [&[0x28, 0xb5, 0x2f, 0xfd, 0x60][..], &len.to_le_bytes(), &last_raw_block.to_le_bytes()[..3]];
    [&head.concat(), text.as_bytes()].concat()
}

#[test]
fn answers_are_packed_for_those_who_accept_it() {
    for (compress, packed) in [(CompressAnswers::Always, true), (CompressAnswers::Remote, false)] {
        let settings = Settings { compress_answers: compress, ..Settings::default() };
        let server = Server::start_with(json!({"group_size": 2}), settings);
        server.fill("a", 2);
        let mut stream = server.connect();
        let request = "POST /get_rollout_data HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\
                       Connection: close\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        assert_eq!(answer.contains("content-encoding: gzip"), packed, "{compress:?}");
    }
}

/// Packing may ask for more after the end, depending on how the threads run: many answers, so that one does.
#[test]
fn a_packed_answer_ends_whole_every_time() {
    let settings = Settings { compress_answers: CompressAnswers::Always, ..Settings::default() };
    let server = Server::start_with(json!({"group_size": 2}), settings);
    for round in 0..100 {
        server.fill(&format!("i{round}"), 2);
        let mut stream = server.connect();
        let request = "POST /get_rollout_data HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\
                       Connection: close\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
        assert!(answer.ends_with(b"0\r\n\r\n"), "the last chunk of round {round} is missing");
    }
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let settings = Settings { body_bytes_max: 10_000, ..Settings::default() };
    let server = Server::start_with(json!({}), settings);
    let (status, body) = server.post("/buffer/write", item(&"u".repeat(20_000), "i", 1.0));
    assert_eq!((status, &body["error"]["code"]), (413, &json!("body_too_large")));
    assert!(body["error"]["message"].as_str().unwrap().contains("10000"));
    let (status, body) = server.send("/api/runs/default/rollouts", &[b'x'; 20_000], &[]);
    assert_eq!((status, &body["error"]["code"]), (413, &json!("line_too_large")));
    // A small body that unpacks to a large one.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![b' '; 10_000_000]).unwrap();
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() < 10_000 * 2);
    assert_eq!(server.send("/buffer/write", &bomb, &[("content-encoding", "gzip")]).0, 413);
    assert_eq!(server.books()["admitted"], 0);
}

#[test]
fn a_gigabyte_is_refused_before_it_is_sent() {
    let server = Server::start(json!({}));
    let mut stream = server.connect();
    let head = "POST /buffer/write HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1073741824\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut buffer = [0; 512];
    let count = std::io::Read::read(&mut stream, &mut buffer).unwrap();
    let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[test]
fn every_bad_field_is_named_with_its_value() {
    let server = Server::start(json!({}));
    for (field, value) in [
        ("uid", json!("")),
        ("uid", json!(1.5)),
        ("uid", json!(null)),
        ("instance_id", json!([1])),
        ("instance_id", json!(true)),
        ("messages", json!("hi")),
        ("messages", json!([1])),
        ("reward", json!("0.5")),
        ("reward", json!(null)),
        ("extra_info", json!(3)),
        ("weight_version", json!(-1)),
    ] {
        let mut rollout = item("x", "i", 1.0);
        rollout[field] = value.clone();
        let (status, body) = server.post("/buffer/write", rollout);
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.contains(field), "{message}");
        if value != Value::Null {
            assert!(message.contains(&value.to_string()), "{message} lacks {value}");
        }
    }
    assert_eq!(server.books()["admitted"], 0);
}

#[test]
fn unknown_fields_and_numbers_come_back_as_they_were() {
    let server = Server::start(json!({"group_size": 2, "validate": "sized", "normalize": "none"}));
    let odd = r#"{"uid":"a","instance_id":1,"messages":[],"reward":0.1,"tokens":[1,2],"big":12345678901234567890123,"f":1.50}"#;
    assert_eq!(server.send("/buffer/write", odd.as_bytes(), &[]).0, 200);
    server.post("/buffer/write", item("b", "1", 0.3));
    let mut stream = server.connect();
    super::server::post_raw(&mut stream, "/get_rollout_data", "{}");
    let mut answer = String::new();
    while !answer.contains("]}}") {
        let mut piece = [0; 4096];
        let count = std::io::Read::read(&mut stream, &mut piece).unwrap();
        answer.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    for part in [r#""big":12345678901234567890123"#, r#""f":1.50"#, r#""tokens":[1,2]"#, r#""reward":0.1"#] {
        assert!(answer.contains(part), "{answer} lacks {part}");
    }
}
