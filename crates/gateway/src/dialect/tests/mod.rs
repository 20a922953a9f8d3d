//! Claims about the dialects: what is read and refused, what is told, and that a stream says what a whole answer says.

mod any;
mod gist;
mod read;
mod refused;
mod refused_messages;
mod stream;
mod told;

use super::Dialect;
use crate::ask::{Ask, Chat, Prompt};
use crate::tell::{Answer, Begun, Call, Choice, Ended, Piece, Spelled, Spoken, Stop};

/// The least that can be asked.
fn ask(dialect: Dialect) -> Ask {
    read(dialect, "")
}

/// The least, with further fields.
fn read(dialect: Dialect, more: &str) -> Ask {
    dialect.read(body(dialect, more).as_bytes()).unwrap()
}

fn body(dialect: Dialect, more: &str) -> String {
    let least = match dialect {
        Dialect::Chat => r#""messages": [{"role": "user", "content": "hi"}]"#,
        Dialect::Completions => r#""prompt": "hi""#,
        Dialect::Responses => r#""input": "hi""#,
        Dialect::Messages => r#""max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]"#,
    };
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    format!("{{{least}{more}}}")
}

fn chat(ask: &Ask) -> &Chat {
    match &ask.prompt {
        Prompt::Chat(chat) => chat,
        other => panic!("{other:?}"),
    }
}

fn begun() -> Begun {
    Begun { id: "1".into(), created: 7, model: "m".into(), prompt_tokens: 10, cached_tokens: 4 }
}

fn ended(stop: Stop) -> Ended {
    Ended { choice: 0, stop, stop_text: None, completion_tokens: 5, reasoning_tokens: 2 }
}

fn spelled(text: &str) -> Spelled {
    Spelled { id: 1, text: text.to_owned(), logprob: -0.5 }
}

/// Thoughts, words and a call.
fn pieces() -> Vec<Piece> {
    vec![
        Piece::Reasoning("hm".into()),
        Piece::Content("so".into()),
        Piece::CallBegun { index: 0, id: "c".into(), name: "f".into() },
        Piece::CallArguments { index: 0, json: r#"{"x":"#.into() },
        Piece::CallArguments { index: 0, json: "1}".into() },
    ]
}

/// The whole answer that was spoken in these pieces.
fn whole(all: &[Spoken], ended: &Ended) -> Answer {
    let mut choice = Choice {
        reasoning: None,
        content: String::new(),
        calls: Vec::new(),
        tokens: all.iter().flat_map(|spoken| spoken.tokens.clone()).collect(),
        ended: ended.clone(),
    };
    for piece in all.iter().flat_map(|spoken| &spoken.pieces) {
        match piece {
            Piece::Reasoning(text) => choice.reasoning.get_or_insert_default().push_str(text),
            Piece::Content(text) => choice.content.push_str(text),
            Piece::CallBegun { id, name, .. } => {
                choice.calls.push(Call { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            Piece::CallArguments { json, .. } => choice.calls.last_mut().unwrap().arguments.push_str(json),
        }
    }
    Answer { begun: begun(), choices: vec![choice] }
}

/// All of a stream.
fn streamed(dialect: Dialect, ask: &Ask, all: &[Spoken], ended: &Ended) -> String {
    let mut voice = dialect.voice(begun(), ask);
    let mut out = Vec::new();
    voice.begin(&mut out);
    for spoken in all {
        voice.speak(spoken, &mut out);
    }
    voice.end(ended, &mut out);
    voice.close(&mut out);
    String::from_utf8(out).unwrap()
}

/// The same pieces, spoken one at a time.
fn spoken(pieces: Vec<Piece>) -> Vec<Spoken> {
    let one = |piece| Spoken { choice: 0, pieces: vec![piece], tokens: Vec::new() };
    pieces.into_iter().map(one).collect()
}
