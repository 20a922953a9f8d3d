//! Conversations at random: what the engine is asked with is what it said, and what the template writes behind it.

use proptest::prelude::*;
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::generate::{Message, Segment};
use rollyard_engine::workflow::render::Renderer;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::continuity::Continuity;
use super::memory::made;
use super::opening::Opening;
use super::prepare::{Finder, Prepared};
use super::state::State;
use super::turn::{Cut, Facts, Turn};
use crate::ask::{Chat, Prompt, ToolChoice};
use crate::parse::{Grammar, Listener};
use crate::testing::{CHATML, LLAMA, THINKING, encode, with_template};
use crate::words::Words;

/// A session without a gateway around it.
struct Talk {
    tokenizer: Arc<Tokenizer>,
    grammar: Grammar,
    continuity: Continuity,
    state: State,
    keeps_thoughts: bool,
    /// As an agent has it.
    messages: Vec<Value>,
    tools: Option<Box<RawValue>>,
}

impl Talk {
    fn new(template: &str) -> Self {
        let tokenizer = with_template(template);
        let grammar = Grammar::of_template(template);
        let tool =
            json!([{"type": "function", "function": {"name": "echo", "parameters": {"type": "object"}}}]);
        let tools = (template != LLAMA).then(|| to_raw_value(&tool).unwrap());
        Self {
            tokenizer,
            grammar,
            continuity: Continuity::default(),
            state: State::default(),
            keeps_thoughts: false,
            messages: Vec::new(),
            tools,
        }
    }

    fn prepare(&mut self) -> Prepared {
        let kwargs = Map::new();
        let messages: Vec<Message> = self.messages.iter().map(|said| to_raw_value(said).unwrap()).collect();
        let chat = Chat { follows: None, messages, tools: self.tools.clone(), tool_choice: ToolChoice::Auto };
        let finder = Finder {
            session: "s",
            tokenizer: &self.tokenizer,
            continuity: &self.continuity,
            template_kwargs: &kwargs,
            keeps_thoughts: self.keeps_thoughts,
        };
        finder.prepare(&self.state.tree, &mut self.state.memory, &Prompt::Chat(chat)).unwrap()
    }

    /// The model says these tokens; the agent is told what was heard.
    fn answer(&mut self, prepared: Prepared, sampled: Vec<i32>) -> Value {
        let mut listener = Listener::new(&self.grammar, self.tools.as_deref(), &prepared.prompt_end, 0);
        let mut words = Words::new(Arc::clone(&self.tokenizer), Vec::new());
        listener.push(&words.push(&sampled));
        listener.push(&words.finish().0);
        let (_, heard) = listener.finish();
        let calls: Vec<Value> = heard
            .calls
            .iter()
            .map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}))
            .collect();
        let mut message = json!({"role": "assistant", "content": heard.content});
        if let Some(reasoning) = &heard.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let answer = made(&message);
        let count = sampled.len();
        self.state.push(Turn {
            id: self.state.next_id,
            follows: prepared.follows,
            cut: prepared.cut,
            prefix: prepared.prefix,
            given: prepared.given.into(),
            sampled: sampled.into(),
            logprobs: vec![-0.5; count].into(),
            segments: vec![Segment { tokens: count, version: 1 }].into(),
            messages: prepared.messages,
            standing: prepared.standing.after(&answer),
            answer,
            question: 0,
            facts: Facts { reasoning_tokens: u32::from(heard.reasoning.is_some()), ..Facts::default() },
        });
        message
    }

    /// Without its thoughts, as frameworks send it back.
    fn hear(&mut self, mut message: Value) {
        message.as_object_mut().unwrap().remove("reasoning_content");
        self.messages.push(message);
    }

    fn rendered(&self) -> Vec<i32> {
        let renderer = Renderer::new(&self.tokenizer, self.tools.as_deref(), &Map::new()).unwrap();
        let known: Vec<_> = self.messages.iter().map(made).collect();
        let refs: Vec<&RawValue> = known.iter().map(|message| &*message.json).collect();
        renderer.encode(&renderer.asked(&refs).unwrap()).unwrap()
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The tokens of a reply; a `¦` parts them where the tokenizer would not.
fn sampled(talk: &Talk, reply: &str, end: &str) -> Vec<i32> {
    reply.split('¦').chain([end]).flat_map(|piece| encode(&talk.tokenizer, piece)).collect()
}

fn end_of(template: &str) -> &'static str {
    if template == LLAMA { "<|eot_id|>" } else { "<|im_end|>" }
}

/// One step of an agent.
#[derive(Clone, Debug)]
enum Step {
    /// Says something to the model, and the model answers.
    Talk { text: String, reply: String },
    /// The model calls a tool, and the result is told.
    Call { result: String },
    /// Forgets the last answer and what led to it, and asks otherwise.
    Rewrite { text: String },
    /// The same question again.
    Again { reply: String },
}

fn words() -> impl Strategy<Value = String> {
    // Pieces that merge with one another, and a parting that no tokenizer would make.
    let piece = prop::sample::select(vec![
        " the", "the", "n", "\n", "\n\n", " ", "  ", "¦", "é", "ß", "'s", "12", "3", "{", "}", "th¦e",
        " un¦til", "🌍",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (words(), words()).prop_map(|(text, reply)| Step::Talk { text: text.replace('¦', ""), reply }),
        4 => words().prop_map(|result| Step::Call { result: result.replace('¦', "") }),
        1 => words().prop_map(|text| Step::Rewrite { text: text.replace('¦', "") }),
        1 => words().prop_map(|reply| Step::Again { reply }),
    ]
}

/// Runs the steps, and checks after each that nothing drifted.
fn run(template: &str, steps: &[Step], thinks: bool, system: bool) -> Talk {
    let mut talk = Talk::new(template);
    let mut whole = Talk::new(template);
    whole.continuity = Continuity::of_wholes();
    if system {
        talk.messages.push(json!({"role": "system", "content": "Be brief."}));
    }
    let thought = if thinks { "<think>\nhm¦m\n</think>\n\n" } else { "" };
    let end = end_of(template);
    for step in steps {
        let (reply, then) = match step {
            Step::Talk { text, reply } => {
                talk.messages.push(user(text));
                (format!("{thought}{reply}"), None)
            }
            Step::Call { result } => {
                if talk.messages.iter().all(|said| said["role"] != "user") {
                    talk.messages.push(user("begin"));
                }
                let call = "<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"a\": 1}}\n</tool_call>";
                let is_known = template != LLAMA;
                (format!("{thought}Let me¦ see.\n{call}"), is_known.then(|| result.clone()))
            }
            Step::Rewrite { text } => {
                let last = talk.messages.iter().rposition(|said| said["role"] == "user").unwrap_or(0);
                talk.messages.truncate(last);
                talk.messages.push(user(text));
                (format!("{thought}as you like"), None)
            }
            Step::Again { reply } => {
                let last = talk.messages.iter().rposition(|said| said["role"] != "assistant");
                talk.messages.truncate(last.map_or(0, |at| at + 1));
                if talk.messages.iter().all(|said| said["role"] != "user") {
                    talk.messages.push(user("begin"));
                }
                (format!("{thought}{reply}"), None)
            }
        };
        let prepared = check(&mut talk, &mut whole);
        let tokens = sampled(&talk, &reply, end);
        let again = whole.prepare();
        whole.answer(again, tokens.clone());
        let answer = talk.answer(prepared, tokens);
        let id = answer["tool_calls"][0]["id"].clone();
        talk.hear(answer);
        if let (Some(result), true) = (then, id.is_string()) {
            talk.messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        }
    }
    talk
}

fn check(talk: &mut Talk, whole: &mut Talk) -> Prepared {
    let prepared = talk.prepare();
    whole.messages.clone_from(&talk.messages);
    let proven = whole.prepare();
    assert_eq!(prepared.prompt, proven.prompt, "a window gives another prompt: {:?}", talk.messages);
    assert_eq!(prepared.cut, proven.cut);
    let shared = prepared.prefix.map(|prefix| talk.state.tree.first_tokens(prefix)).unwrap_or_default();
    assert_eq!([shared.as_slice(), &prepared.given].concat(), prepared.prompt);
    match (prepared.follows, prepared.cut) {
        (Some(before), None) => {
            let tokens = talk.state.tree.tokens(before);
            assert_eq!(shared, tokens, "a prompt goes on from all tokens before it");
        }
        _ => assert_eq!(prepared.prompt, talk.rendered(), "a prompt that begins anew is the template's"),
    }
    prepared
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_token_drifts_in_any_conversation(
        steps in prop::collection::vec(step(), 1..10),
        template in prop::sample::select(vec![CHATML, THINKING, LLAMA]),
        thinks in any::<bool>(),
        system in any::<bool>(),
    ) {
        let talk = run(template, &steps, thinks && template == THINKING, system);
        let samples = talk.state.samples(&Opening::default()).unwrap();
        // Every sampled token is trained on once.
        let trained: usize = samples
            .iter()
            .map(|sample| sample.rollout.as_ref().unwrap().sampled().values().filter(|on| *on).count())
            .sum();
        let all: usize = talk.state.tree.turns().map(|(_, turn)| turn.sampled.len()).sum();
        prop_assert_eq!(trained, all);
        prop_assert!(samples.iter().all(|sample| sample.rollout.as_ref().unwrap().is_exact()));
    }
}

#[test]
fn a_long_loop_of_tools_is_one_line_and_is_seldom_rendered_whole() {
    let steps = vec![Step::Call { result: "12 the".to_owned() }; 100];
    let talk = run(THINKING, &steps, true, true);
    assert!(talk.state.tree.turns().all(|(_, turn)| turn.cut.is_none()));
    assert_eq!(talk.state.tree.leaves().len(), 1);
    let counts = talk.continuity.counts();
    assert_eq!((counts.proofs, counts.differences), (7, 0), "{counts:?}");
}

#[test]
fn thoughts_that_the_template_drops_begin_a_new_sequence_or_are_kept_by_policy() {
    let steps = [("One?", "1"), ("Two?", "2")]
        .map(|(text, reply)| Step::Talk { text: text.to_owned(), reply: reply.to_owned() });
    let mut talk = run(THINKING, &steps, true, false);
    let cuts: Vec<_> = talk.state.tree.turns().map(|(_, turn)| turn.cut).collect();
    assert_eq!(cuts, [None, Some(Cut::Template)]);
    talk.keeps_thoughts = true;
    talk.messages.push(user("Three?"));
    let prepared = talk.prepare();
    assert!(prepared.keeps_thoughts && prepared.cut.is_none());
    let text = talk
        .tokenizer
        .encoder()
        .decode(&prepared.given.iter().map(|id| *id as u32).collect::<Vec<_>>(), false);
    assert_eq!(text.unwrap(), "\n<|im_start|>user\nThree?<|im_end|>\n<|im_start|>assistant\n");
}

#[test]
fn a_rewritten_history_forks_where_it_differs() {
    let mut talk = run(
        CHATML,
        &[Step::Call { result: "r".to_owned() }, Step::Talk { text: "a".to_owned(), reply: "b".to_owned() }],
        false,
        false,
    );
    let before = talk.messages.len();
    talk.messages[before - 2] = user("another question");
    talk.messages.truncate(before - 1);
    let prepared = talk.prepare();
    assert_eq!((prepared.follows.map(|no| no.0), prepared.cut), (Some(0), None));
    // A summary in the place of everything is a conversation of its own.
    talk.messages = vec![user("In short: all went well. Go on.")];
    let prepared = talk.prepare();
    assert_eq!((prepared.follows, prepared.cut), (None, Some(Cut::Rewritten)));
}

#[test]
fn two_hundred_turns_of_a_hundred_thousand_tokens_take_less_than_three_megabytes() {
    let mut talk = Talk::new(CHATML);
    let text = "the 12 ".repeat(80);
    while talk.state.tree.turns().last().is_none_or(|(_, turn)| turn.len() < 100_000) {
        talk.messages.push(user(&text));
        let prepared = talk.prepare();
        let tokens = sampled(&talk, &text, "<|im_end|>");
        let answer = talk.answer(prepared, tokens);
        talk.hear(answer);
    }
    assert!(talk.state.tree.len() >= 100);
    let bytes = talk.state.size_bytes();
    assert!(bytes < 3_000_000, "{bytes} bytes in {} turns", talk.state.tree.len());
}
