//! Every ugly row that was ever met: none fails its file, none is lost, and each says what it can.

use super::catalog::Yard;
use rollyard_store::catalog::RowNo;
use rollyard_store::records::{Body, Channel};

fn body(raw: impl Into<Vec<u8>>) -> Body {
    Body { raw: raw.into().into(), url: "/a.jsonl".into(), line: 1, offset: 0 }
}

/// What a table of rows is checked for: some columns, as SQL writes them.
fn check(name: &str, line: &[u8], sql: &str, expected: &str) {
    let yard = Yard::new();
    yard.write("120.jsonl", [b"\xef\xbb\xbf\n".as_slice(), line, b"\n"].concat());
    let catalog = yard.refreshed();
    let connection = catalog.connect().unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM all_rows", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1, "{name}");
    let got: String = connection
        .query_row(&format!("SELECT concat_ws(' ', {sql}) FROM all_rows"), [], |row| row.get(0))
        .unwrap();
    assert_eq!(got, expected, "{name}");
    let body = catalog.body(RowNo(1)).unwrap();
    assert_eq!(body.raw, line.strip_suffix(b"\r").unwrap_or(line), "{name}");
    assert_eq!(body.line, 2, "{name}");
    let is_bad: bool = connection.query_row("SELECT bad FROM all_rows", [], |row| row.get(0)).unwrap();
    assert_eq!(body.rollout().is_err(), is_bad, "{name}");
    assert_eq!(body.pieces().is_err(), is_bad, "{name}");
}

#[test]
fn odd_rows_are_rows() {
    let said = |content: &str| {
        format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": \"q\"}}, {{\"role\": \"assistant\", \"content\": {content}}}]}}"
        )
    };
    let with = |attributes: &str| {
        format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": \"q\"}}], \"attributes\": {{{attributes}}}}}"
        )
    };
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("content is null", said("null").into(), "bad, odd, response_chars, turns", "0 0 0 1"),
        (
            "content is a list of parts",
            said("[{\"type\": \"text\", \"text\": \"ab\"}, \"c\", {\"type\": \"image_url\"}]").into(),
            "bad, odd, response_chars",
            "0 0 14",
        ),
        ("content is a number", said("12").into(), "bad, response_chars", "0 2"),
        ("an unclosed thought", said("\"<think>never\"").into(), "unclosed, reasoning_chars", "1 12"),
        ("two thoughts", said("\"<think>a</think>b<think>c</think>\"").into(), "unclosed, reasoning_chars", "0 32"),
        ("half an emoji", said("\"\\ud83d\"").into(), "bad, response_chars", "0 1"),
        ("with a carriage return", (said("\"x\"") + "\r").into(), "bad, response_chars", "0 1"),
        ("reward is NaN", with("\"reward\": NaN").into(), "bad, odd, reward", "0 1"),
        ("reward is infinite", with("\"reward\": -Infinity").into(), "bad, odd, reward", "0 1"),
        ("reward is text", with("\"reward\": \"0.5\"").into(), "odd, reward", "1 0.5"),
        ("reward is a word", with("\"reward\": \"good\"").into(), "odd, reward", "1"),
        (
            "reward has a total",
            with("\"reward\": {\"score\": 2, \"format\": 1}").into(),
            "odd, reward, extra",
            "0 2.0 {\"reward.score\":2,\"reward.format\":1}",
        ),
        (
            "reward has parts only",
            with("\"reward\": {\"style\": 2, \"format\": NaN}").into(),
            "odd, reward, extra",
            "1 {\"reward.style\":2,\"reward.format\":\"NaN\"}",
        ),
        ("step is a float", with("\"step\": 3.0").into(), "odd, step", "1 3"),
        ("step is text", with("\"step\": \"7\"").into(), "odd, step", "1 7"),
        ("nothing is told", with("").into(), "step, data_source, experiment_name, validate, rollout_n", "0 unknown unknown 0 0"),
        ("a key twice", b"{\"messages\": [], \"step\": 1, \"step\": 2}".to_vec(), "bad, step", "0 2"),
        ("no messages", b"{\"attributes\": {\"step\": 4}}".to_vec(), "bad, odd, step", "0 1 4"),
        ("messages are no list", b"{\"messages\": \"x\"}".to_vec(), "bad, odd", "0 1"),
        ("messages of no objects", b"{\"messages\": [1, \"x\", null]}".to_vec(), "bad, odd, message_count", "0 1 3"),
        ("broken UTF-8", [said("\"a").as_bytes(), b"\xff"].concat(), "bad", "1"),
        ("broken UTF-8 in text", said("\"ab\"").replace("ab", "a\u{0}b").into_bytes().into_iter().map(|b| if b == 0 { 0xff } else { b }).collect(), "bad, odd, response_chars", "0 1 3"),
        ("a list", b"[1]".to_vec(), "bad, problem", "1 the row is JSON, but no object"),
        ("a number", b"42".to_vec(), "bad, problem", "1 the row is JSON, but no object"),
        ("half a line", b"{\"messages\": [".to_vec(), "bad, problem", "1 the row ends in the middle, after byte 14"),
        ("deep", "[".repeat(100_000).into(), "bad, problem", "1 nested deeper than 512 at byte 513"),
        ("long", said(&format!("\"{}\"", "x".repeat(10 << 20))).into(), "bad, response_chars", "0 10485760"),
        (
            "a call and its result",
            b"{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"reasoning_content\": \"hm\", \"tool_calls\": \
              [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": \"{}\"}}]}, \
              {\"role\": \"tool\", \"content\": \"3\"}]}"
                .to_vec(),
            "odd, tool_calls, reasoning_chars, message_count, prompt_chars",
            "0 1 2 2 0",
        ),
        (
            "verl",
            b"{\"input\": \"q\", \"output\": \"<think>a</think>b\", \"gts\": \"42\", \"score\": 1.0}".to_vec(),
            "step, reward, turns, prompt_chars, response_chars, extra",
            "120 1.0 1 1 17 {\"gts\":\"42\"}",
        ),
        (
            "slime",
            b"{\"group_index\": 3, \"index\": 7, \"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"response\": \"ab\", \
              \"response_length\": 5, \"reward\": 0.5, \"status\": \"truncated\", \"metadata\": {\"env\": \"x\"}}"
                .to_vec(),
            "step, reward, tokens, status, truncated, sample_index, message_count",
            "120 0.5 5 truncated 1 7 2",
        ),
        (
            "a dump",
            b"{\"task_id\": 5, \"sample_idx\": 1, \"seqlen\": 10, \"prompt_len\": 4, \"head_version\": 2, \"tail_version\": 3, \
              \"reward\": 1, \"prompt\": \"q\", \"completion\": \"a\", \"status\": \"accepted\", \"version_rle\": [[2, 3], [3, 3]]}"
                .to_vec(),
            "instance_id, rollout_n, tokens, version, mixed, status",
            "5 1 6 2 1 accepted",
        ),
        (
            "a trace",
            b"{\"example_id\": 9, \"task\": \"math\", \"prompt\": [{\"role\": \"user\", \"content\": \"q\"}], \"completion\": \
              [{\"role\": \"assistant\", \"content\": \"a\"}], \"reward\": 1.0, \"is_truncated\": true}"
                .to_vec(),
            "instance_id, data_source, reward, truncated, message_count",
            "9 math 1.0 1 2",
        ),
        (
            "a yard item",
            b"{\"uid\": \"u\", \"instance_id\": \"i\", \"messages\": [], \"reward\": 2, \"extra_info\": {\"round\": 1, \"k\": \"v\"}}"
                .to_vec(),
            "uid, instance_id, reward, extra",
            "u i 2.0 {\"extra_info.round\":1,\"extra_info.k\":\"v\"}",
        ),
    ];
    for (name, line, sql, expected) in &cases {
        check(name, line, sql, expected);
    }
}

#[test]
fn all_ugly_rows_together_fail_no_file_and_add_up() {
    let yard = Yard::new();
    let lines: [&[u8]; 9] = [
        b"{\"messages\": []}",
        b"",
        b"  \t ",
        b"\xff\xfe\x00",
        b"{\"a\": NaN}",
        b"[1]",
        b"\x00\x00",
        b"{\"messages\": [{\"role\": \"user\"}]}",
        b"{\"messages\": ",
    ];
    yard.write("a.jsonl", lines.join(b"\n".as_slice()));
    yard.write(
        "binary.jsonl",
        (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<_>>(),
    );
    yard.write("empty.jsonl", "");
    let catalog = yard.refreshed();
    let health = catalog.health().unwrap();
    assert!(health.unread_files.is_empty(), "{health:?}");
    let good = health.rows - health.bad_rows;
    assert_eq!(good, 3);
    assert_eq!(health.half_written, 2);
    for row in 1..=health.rows {
        let body = catalog.body(RowNo(row as i64)).unwrap();
        assert!(!body.raw.is_empty());
    }
}

#[test]
fn pieces_tell_the_channels_apart_and_keep_every_character() {
    use Channel::{Assistant, Reasoning, System, ToolCall, ToolResult, User};
    let raw = r#"{"messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "ü"}]},
        {"role": "assistant", "content": "<think>t</think>a", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
        {"role": "tool", "content": "r"},
        {"role": "assistant", "reasoning_content": "t2", "content": "<|channel|>analysis<|message|>h"}]}"#;
    let pieces = body(raw).pieces().unwrap();
    let got: Vec<_> =
        pieces.iter().map(|piece| (piece.message, piece.channel, piece.text.as_str())).collect();
    assert_eq!(
        got,
        [
            (0, System, "s"),
            (1, User, "ü"),
            (2, Reasoning, "<think>t</think>"),
            (2, Assistant, "a"),
            (2, ToolCall, "f {\"x\":1}"),
            (3, ToolResult, "r"),
            (4, Reasoning, "t2"),
            (4, Reasoning, "<|channel|>analysis<|message|>h"),
        ]
    );
}

#[test]
fn a_rollout_keeps_what_it_does_not_know() {
    let raw = r#"{"messages": [{"role": "user", "content": "q", "name": "n"}], "attributes": {"step": 1, "mine": [NaN]},
        "timestamp": "t", "segments": [1], "uid": "u"}"#;
    let rollout = body(raw).rollout().unwrap();
    assert_eq!(rollout.messages, [serde_json::json!({"role": "user", "content": "q", "name": "n"})]);
    assert_eq!(rollout.attributes["mine"], serde_json::json!(["NaN"]));
    assert_eq!(rollout.timestamp, Some("t".into()));
    assert_eq!(rollout.rest.keys().collect::<Vec<_>>(), ["segments", "uid"]);
    let verl = body(r#"{"input": "q", "output": "a", "score": 1}"#).rollout().unwrap();
    assert_eq!(verl.messages[1], serde_json::json!({"role": "assistant", "content": "a"}));
    assert_eq!(verl.rest.keys().collect::<Vec<_>>(), ["score"]);
}
