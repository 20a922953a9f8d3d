//! Conversations as tokens.

use crate::program::{Outcome, rollyard, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const TOKENIZER: &str = include_str!("../../../core/tests/fixtures/tokens/chatml/tokenizer.json");
const TEMPLATE: &str = include_str!("../../../core/tests/fixtures/templates/chatml.jinja");

/// A folder with a model in it, and a file of these lines.
pub(crate) fn with(lines: &[String]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    std::fs::create_dir(&model).unwrap();
    std::fs::write(model.join("tokenizer.json"), TOKENIZER).unwrap();
    std::fs::write(model.join("chat_template.jinja"), TEMPLATE).unwrap();
    std::fs::write(dir.path().join("data.jsonl"), lines.join("\n")).unwrap();
    dir
}

fn tokens(dir: &Path, flags: &[&str]) -> Outcome {
    let mut program = rollyard(dir);
    program.env_remove("NO_COLOR").args(["tokens", "model", "data.jsonl"]).args(flags);
    run(program)
}

fn weather() -> Value {
    let call = |city: &str| json!({"type": "function", "function": {"name": "weather", "arguments": {"city": city}}});
    json!({
        "uid": "w-1",
        "tools": [{"type": "function", "function": {"name": "weather"}}],
        "messages": [
            {"role": "user", "content": "Paris and Rome?"},
            {"role": "assistant", "content": "", "tool_calls": [call("Paris"), call("Rome")]},
            {"role": "tool", "content": "18"},
            {"role": "tool", "content": "25"},
            {"role": "assistant", "content": "18 and\n25."},
        ],
    })
}

fn greeting() -> Value {
    json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "hello there"}])
}

#[test]
fn a_conversation_with_tools_is_shown_turn_by_turn() {
    let dir = with(&[weather().to_string()]);
    let outcome = tokens(dir.path(), &[]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr, "");
    assert_eq!(outcome.stdout, include_str!("tokens_weather.txt"));
}

#[test]
fn trained_tokens_are_coloured_or_in_brackets() {
    let dir = with(&[weather().to_string()]);
    for (flags, expected) in [
        (&["--color", "always"][..], "\x1b[32m18 and\x1b[0m\n\x1b[32m25.<|im_end|>\x1b[0m"),
        (&["--color", "never"], "⟦18 and\n25.<|im_end|>⟧"),
        // Nobody reads this on a terminal.
        (&["--color", "auto"], "⟦18 and\n25.<|im_end|>⟧"),
    ] {
        let outcome = tokens(dir.path(), flags);
        assert!(outcome.stdout.contains(expected), "{flags:?}: {}", outcome.stdout);
        let is_coloured = outcome.stdout.contains('\x1b');
        assert_eq!(is_coloured, flags == ["--color", "always"], "{flags:?}");
    }
}

/// The prompt of [`greeting`] in this vocabulary, and its answer as the text gives it.
struct Greeting {
    prompt: Vec<u32>,
    answer: Vec<u32>,
}

impl Greeting {
    fn new() -> Self {
        let files = rollyard_core::tokens::ModelFiles { chat_template: Some(TEMPLATE), ..Default::default() };
        let tokenizer = rollyard_core::tokens::Tokenizer::new(TOKENIZER.as_bytes(), files).unwrap();
        let encode = |text: &str| tokenizer.encoder().encode(text).unwrap();
        let opening = "<|im_start|>system\nYou are a helpful test model.<|im_end|>\n";
        Self {
            prompt: encode(&format!("{opening}<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")),
            answer: encode("hello there<|im_end|>"),
        }
    }

    /// Sampled byte by byte, as a model may and the tokenizer would not.
    fn in_pieces(&self) -> Vec<u32> {
        let vocabulary: Value = serde_json::from_str(TOKENIZER).unwrap();
        let id =
            |letter: char| u32::try_from(vocabulary["model"]["vocab"][letter.to_string()].as_u64().unwrap());
        let letters = "hello".chars().map(|letter| id(letter).unwrap());
        letters.chain(self.answer.iter().copied().skip_while(|token| !self.begins_there(*token))).collect()
    }

    fn begins_there(&self, token: u32) -> bool {
        let vocabulary: Value = serde_json::from_str(TOKENIZER).unwrap();
        let vocabulary = vocabulary["model"]["vocab"].as_object().unwrap();
        vocabulary.iter().any(|(text, id)| id.as_u64() == Some(u64::from(token)) && text.starts_with('Ġ'))
    }

    fn item(&self, uid: &str, answer: &[u32]) -> String {
        let tokens: Vec<u32> = self.prompt.iter().chain(answer).copied().collect();
        json!({"uid": uid, "messages": greeting(), "tokens": tokens, "response_length": answer.len()})
            .to_string()
    }
}

#[test]
fn sampled_tokens_are_shown_as_they_are_and_drift_is_counted() {
    let greeting = Greeting::new();
    let (whole, pieces) = (greeting.answer.clone(), greeting.in_pieces());
    assert_ne!(whole, pieces);
    let bare = json!({"tokens": whole, "response_length": 1}).to_string();
    let foreign = json!({"messages": [], "tokens": [1, 99_999], "response_length": 1}).to_string();
    let dir = with(&[greeting.item("same", &whole), greeting.item("pieces", &pieces), bare, foreign]);
    let outcome = tokens(dir.path(), &["--row", "1", "--row", "2", "--row", "4"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for part in [
        "row 1 · same · sampled tokens\n── given · ",
        "⟦hello there<|im_end|>⟧\n",
        "no drift: its text gives the same tokens\n",
        "row 2 · pieces · sampled tokens\n",
        "that its text would not give, in 1 place\n",
        &format!("    at token {}: sampled \"", greeting.prompt.len()),
        "row 4 · sampled tokens\n",
        "1 token not in this model's vocabulary: did another model sample them?\n",
        "4 with sampled tokens: 1 drifted from the text, by ",
        "2 whose text could not be compared\n    row 3: its text cannot be compared: field \"messages\" is missing",
    ] {
        assert!(outcome.stdout.contains(part), "{part:?} is not in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("tokenised from text"), "{}", outcome.stdout);
}

#[test]
fn bad_lines_are_counted_and_named_and_the_rest_is_shown() {
    let dir = with(&[
        "nonsense".to_owned(),
        json!({"uid": "silent"}).to_string(),
        String::new(),
        json!({"messages": [{"role": "user", "content": null}]}).to_string(),
        json!({"uid": "good", "messages": greeting()}).to_string(),
        json!({"messages": [{"role": "user", "content": "?"}]}).to_string(),
        "[1]".to_owned(),
        json!({"messages": "Hi"}).to_string(),
        json!({"tokens": [1, 2]}).to_string(),
        "{\"uid\": \"half\", \"messages\": [{\"role\": \"us".to_owned(),
    ]);
    let outcome = tokens(dir.path(), &["--row", "1", "--row", "5", "--row", "5"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for part in [
        "row 1\nnot JSON: expected ident at column 2\n",
        "row 5 · good · tokens made from its text\n",
        "⟦hello there<|im_end|>⟧",
        "9 rollouts: ",
        "2 tokenised from text (mask auto): not proven to be what was sampled\n",
        "1 without a trained token\n",
        "7 could not be read or masked\n    row 1: not JSON: expected ident at column 2\n",
        "    row 2: field \"messages\" is missing\n",
        "    row 4: message 0 (user) has no content",
        "    and 2 more\n",
    ] {
        assert!(outcome.stdout.contains(part), "{part:?} is not in {}", outcome.stdout);
    }
    let half = tokens(dir.path(), &["--row", "10"]);
    assert!(half.stdout.contains("row 10\nthe JSON ends in the middle"), "{}", half.stdout);
}

/// Takes a file or a folder away, or puts a text in its place.
fn change(path: &Path, text: Option<&str>) {
    match text {
        Some(text) => std::fs::write(path, text),
        None if path.is_dir() => std::fs::remove_dir_all(path),
        None => std::fs::remove_file(path),
    }
    .unwrap();
}

#[test]
fn what_is_missing_is_named() {
    let good = json!({"messages": greeting()}).to_string();
    let blank_first = format!("\n{good}");
    for (path, text, part) in [
        ("model", None, "no model folder"),
        ("model/tokenizer.json", None, "no tokenizer.json"),
        ("model/tokenizer.json", Some("{"), "tokenizer.json is not"),
        ("model/chat_template.jinja", None, "chat template"),
        ("model/chat_template.jinja", Some("{% if"), "template"),
        ("data.jsonl", None, "cannot read: No such file"),
        ("data.jsonl", Some("\n\n"), "no rollouts"),
        ("data.jsonl", Some("nonsense"), "no rollout could be read or masked; row 1: not JSON"),
        ("data.jsonl", Some(blank_first.as_str()), "row 1 is a blank line"),
    ] {
        let dir = with(std::slice::from_ref(&good));
        change(&dir.path().join(path), text);
        let outcome = tokens(dir.path(), &[]);
        assert_eq!(outcome.code, Some(1), "{path} {text:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{path} {text:?}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{path} {text:?}: {}", outcome.stderr);
    }
}

#[test]
fn flags_that_ask_for_what_is_not_there_are_refused() {
    let dir = with(&[json!({"messages": greeting()}).to_string()]);
    for (flags, code, part) in [
        (["--row", "3"], 1, "there is no row 3; the last is 1"),
        (["--mask", "qwen9"], 2, "known are auto, distill_qwen, qwen, qwen3, qwen3_5"),
        (["--color", "red"], 2, "possible values: auto, always, never"),
    ] {
        let outcome = tokens(dir.path(), &flags);
        assert_eq!(outcome.code, Some(code), "{flags:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{flags:?}: {}", outcome.stderr);
    }
}

#[test]
fn many_lines_are_counted_once_each_and_in_order() {
    let talk =
        |nth: usize| json!({"uid": format!("u-{nth}"), "messages": greeting(), "pad": "x".repeat(3000)});
    let lines: Vec<String> = (1..=3000).map(|nth| talk(nth).to_string()).collect();
    let dir = with(&lines);
    let outcome = tokens(dir.path(), &["--row", "2999", "--row", "2"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (second, last) = (outcome.stdout.find("row 2 · u-2 ·"), outcome.stdout.find("row 2999 · u-2999 ·"));
    assert!(second.is_some() && second < last, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\n3,000 rollouts: "), "{}", outcome.stdout);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let talk = json!({"messages": [{"role": "user", "content": "?\n".repeat(200_000)}]});
    let dir = with(&[talk.to_string()]);
    let mut program = rollyard(dir.path());
    program.args(["tokens", "model", "data.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let end = child.wait_with_output().unwrap();
    assert_eq!((end.status.code(), end.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(line, "row 1 · tokens made from its text\n");
}
