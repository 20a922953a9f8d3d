//! What a reward outside of this process is told, and how its answer is read.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Judged, RewardError, finite};
use crate::generate::Message;

/// The answer to judge, as JSON.
#[derive(Serialize)]
struct Question<'a> {
    prompt: &'a str,
    completion: &'a str,
    messages: &'a [Message],
    data: &'a RawValue,
    context: Episode<'a>,
}

#[derive(Serialize)]
struct Episode<'a> {
    run: &'a str,
    task_id: u64,
    sample_idx: u32,
    attempt: u32,
    is_eval: bool,
    seed: u64,
}

pub(super) fn question(judged: &Judged<'_>) -> Vec<u8> {
    let context = judged.context;
    let question = Question {
        prompt: judged.prompt,
        completion: judged.completion,
        messages: judged.messages,
        data: judged.data.json(),
        context: Episode {
            run: &context.run,
            task_id: context.task_id,
            sample_idx: context.sample_idx,
            attempt: context.attempt,
            is_eval: context.is_eval,
            seed: context.seed,
        },
    };
    serde_json::to_vec(&question).expect("texts and numbers are JSON")
}

/// A number, or an object with a `reward`.
pub(super) fn reward(by: &str, answer: &str) -> Result<f64, RewardError> {
    let answer = answer.trim();
    // Also reads nan and inf, which JSON has no words for, to say what is wrong with them.
    if let Ok(number) = answer.parse::<f64>() {
        return finite(by, number);
    }
    let value = match serde_json::from_str(answer) {
        Ok(Value::Object(fields)) => fields.get("reward").and_then(Value::as_f64),
        _ => None,
    };
    let found = || {
        let shown: String = answer.chars().take(80).collect();
        if shown.is_empty() { "nothing".to_owned() } else { shown }
    };
    let value = value.ok_or_else(|| RewardError::NotANumber { by: by.to_owned(), found: found() })?;
    finite(by, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_finite_number_or_says_what_it_is() {
        for (answer, expect) in [
            ("1", Ok(1.0)),
            (" -0.5\n", Ok(-0.5)),
            ("1e-3", Ok(0.001)),
            (r#"{"reward": 0.25, "why": "close"}"#, Ok(0.25)),
            ("nan", Err("the reward of r is NaN, but must be a finite number")),
            ("-inf", Err("the reward of r is -inf, but must be a finite number")),
            ("", Err("r returned nothing, but must return a number")),
            ("good", Err("r returned good, but must return a number")),
            (r#"{"score": 1}"#, Err(r#"r returned {"score": 1}, but must return a number"#)),
            (r#"{"reward": "1"}"#, Err(r#"r returned {"reward": "1"}, but must return a number"#)),
        ] {
            let read = reward("r", answer).map_err(|error| error.to_string());
            assert_eq!(read, expect.map_err(str::to_owned), "{answer}");
        }
    }
}
