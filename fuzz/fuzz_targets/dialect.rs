//! Any bytes as an agent's request: refused with a reason, or asked and answered, at once and as a stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rollyard_gateway::dialect::Dialect;
use rollyard_gateway::tell::{Answer, Begun, Call, Choice, Ended, Piece, Spoken, Stop};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    for dialect in Dialect::ALL {
        match dialect.read(bytes) {
            Err(refusal) => {
                assert!(!refusal.message.is_empty());
                json(&dialect.refuse(&refusal));
            }
            Ok(ask) => {
                let answer = answer(bytes);
                json(&dialect.write(&answer, &ask));
                let mut voice = dialect.voice(answer.begun.clone(), &ask);
                let mut out = Vec::new();
                voice.begin(&mut out);
                for choice in &answer.choices {
                    voice.speak(&spoken(choice), &mut out);
                    voice.end(&choice.ended, &mut out);
                }
                voice.close(&mut out);
                let stream = std::str::from_utf8(&out).expect("a stream is text");
                for line in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
                    assert!(line == "[DONE]" || serde_json::from_str::<Value>(line).is_ok(), "{line}");
                }
            }
        }
    }
});

fn json(bytes: &[u8]) {
    serde_json::from_slice::<Value>(bytes).expect("what is told is JSON");
}

/// Says what was sent, so that the words are strange too.
fn answer(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let begun = Begun { id: "1".into(), created: 7, model: text.clone(), prompt_tokens: 2, cached_tokens: 1 };
    let ended = Ended {
        choice: 0,
        stop: Stop::ToolCalls,
        stop_text: Some(text.clone()),
        completion_tokens: 1,
        reasoning_tokens: 1,
    };
    let call = Call { id: text.clone(), name: text.clone(), arguments: text.clone() };
    let choice =
        Choice { reasoning: Some(text.clone()), content: text, calls: vec![call], tokens: Vec::new(), ended };
    Answer { begun, choices: vec![choice] }
}

fn spoken(choice: &Choice) -> Spoken {
    let mut pieces = vec![Piece::Content(choice.content.clone())];
    pieces.extend(choice.reasoning.clone().map(Piece::Reasoning));
    for (index, call) in (0..).zip(&choice.calls) {
        pieces.push(Piece::CallBegun { index, id: call.id.clone(), name: call.name.clone() });
        pieces.push(Piece::CallArguments { index, json: call.arguments.clone() });
    }
    Spoken { choice: choice.ended.choice, pieces, tokens: Vec::new() }
}
