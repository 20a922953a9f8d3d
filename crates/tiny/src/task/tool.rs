//! A product and a sum, with a tool for the product: two turns.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rand_chacha::ChaCha8Rng;
use rollyard_core::tokens::Tokenizer;
use rollyard_engine::episode::{Context, SharedWorkflow};
use rollyard_engine::generate::GenerationConfig;
use rollyard_engine::reward::SharedReward;
use rollyard_engine::tool::{Tool, ToolBox, ToolError, ToolSyntax};
use rollyard_engine::workflow::MultiTurn;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

use super::arithmetic::careless;
use super::{Part, Problem, below, given, happens, said};

pub(super) fn problems() -> Vec<Problem> {
    let factors = (3..=9).flat_map(|a| (4..=9).map(move |b| (a, b)));
    let all = factors.flat_map(|(a, b)| (10..=99).map(move |c| (a, b, c)));
    all.map(|(a, b, c)| Problem {
        question: format!("{a}*{b}+{c}"),
        answer: (a * b + c).to_string(),
        numbers: [a, b, c],
    })
    .collect()
}

pub(super) fn workflow(
    tokenizer: Arc<Tokenizer>,
    gconfig: GenerationConfig,
    reward: SharedReward,
) -> SharedWorkflow {
    let tools = ToolBox::new(vec![Arc::new(Times::new())]).expect("there is one");
    Arc::new(MultiTurn {
        tools,
        syntax: ToolSyntax::Hermes,
        max_turns: 2,
        ..MultiTurn::new(Some(tokenizer), gconfig, reward)
    })
}

/// Carelessness is to guess the product instead of calling for it, and to forget to carry afterwards.
pub(super) fn show(problem: &Problem, careless_percent: usize, rng: &mut ChaCha8Rng) -> Vec<Part> {
    let [a, b, c] = problem.numbers;
    let asked = given(format!("<|user|>{}<|end|><|assistant|>", problem.question));
    if happens(rng, careless_percent * 7 / 10) {
        let guess = 12 + below(rng, 70) as u32;
        return vec![asked, said(format!("{}<|end|>", guess + c))];
    }
    let product = a * b;
    let answer =
        if happens(rng, careless_percent * 7 / 10) { careless(product, c) } else { problem.answer.clone() };
    vec![
        asked,
        said(format!("{}<|end|>", call(a, b))),
        given(format!("<|tool|>{product}<|end|><|assistant|>")),
        said(format!("{answer}<|end|>")),
    ]
}

fn call(a: u32, b: u32) -> String {
    format!("<tool_call>{{\"name\": \"times\", \"arguments\": {{\"a\": {a}, \"b\": {b}}}}}</tool_call>")
}

/// Multiplies two numbers.
#[derive(Debug)]
struct Times {
    schema: Box<RawValue>,
}

const SCHEMA: &str = r#"{"type": "function", "function": {"name": "times", "description": "Multiplies two numbers.",
"parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}"#;

impl Times {
    fn new() -> Self {
        Self { schema: serde_json::from_str(SCHEMA).expect("it is JSON") }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Factors {
    a: i64,
    b: i64,
}

impl Tool for Times {
    fn name(&self) -> &'static str {
        "times"
    }

    fn schema(&self) -> &RawValue {
        &self.schema
    }

    fn call<'a>(
        &'a self,
        arguments: &'a RawValue,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        let factors: Result<Factors, _> = serde_json::from_str(arguments.get());
        let told = match factors {
            Ok(Factors { a, b }) => Ok(a.saturating_mul(b).to_string()),
            Err(error) => Err(ToolError::BadArguments(error.to_string())),
        };
        ready(told).boxed()
    }
}
