//! What an agent ended with, and the rewards that are in it.

use rollyard_engine::episode::EpisodeError;
use rollyard_engine::reward::finite;
use serde_json::{Map, Value};

/// What a function may return, as errors say it.
const EXPECTED: &str = "a number, a dict of rewards by interaction id, or None";

/// The last word of an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    /// Of a function.
    Value(Value),
    /// All that a program printed. Its last line is the reward.
    Output(String),
}

/// What the answers of a session are worth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rewards {
    /// Of what the session ended with.
    pub last: Option<f64>,
    /// Of single answers, by the names that the agent was told.
    pub of_answers: Vec<(String, f64)>,
}

impl Returned {
    /// `None` rejects the episode.
    pub fn rewards(&self) -> Result<Option<Rewards>, EpisodeError> {
        match self {
            Self::Value(value) => {
                let read = read(value)?;
                let wrong =
                    || EpisodeError::WrongType { found: shown(&value.to_string()), expected: EXPECTED };
                read.ok_or_else(wrong)
            }
            Self::Output(text) => of_line(text.lines().rev().find(|line| !line.trim().is_empty())),
        }
    }
}

fn of_line(line: Option<&str>) -> Result<Option<Rewards>, EpisodeError> {
    let line = line.unwrap_or_default().trim();
    // Also reads nan and inf, which JSON has no words for, to say what is wrong with them.
    if let Ok(number) = line.parse::<f64>() {
        return Ok(Some(Rewards { last: Some(finite("the agent", number)?), ..Rewards::default() }));
    }
    let value: Option<Value> = serde_json::from_str(line).ok();
    if let Some(rewards) = value.as_ref().map(read).transpose()?.flatten() {
        return Ok(rewards);
    }
    let found = if line.is_empty() { "nothing".to_owned() } else { format!("{:?}", shown(line)) };
    // What a model made an agent print may be something else the next time.
    Err(EpisodeError::Workflow(format!(
        "the last line of the agent is {found}, but must be its reward: a number, {{\"reward\": 0.5}}, \
         {{\"rewards\": {{\"chatcmpl-…\": 0.5}}}}, or null to reject the episode; or give a reward function"
    )))
}

/// Nothing, if it is none of what it may be.
fn read(value: &Value) -> Result<Option<Option<Rewards>>, EpisodeError> {
    let Value::Object(fields) = value else {
        return match (value, number(value)?) {
            (Value::Null, _) => Ok(Some(None)),
            (_, Some(last)) => Ok(Some(Some(Rewards { last: Some(last), ..Rewards::default() }))),
            (_, None) => Ok(None),
        };
    };
    let is_named = fields.contains_key("reward") || fields.contains_key("rewards");
    if !is_named {
        let of_answers = by_name(fields)?;
        return Ok(of_answers.map(|of_answers| Some(Rewards { last: None, of_answers })));
    }
    let last = match fields.get("reward") {
        None => None,
        Some(value) => match number(value)? {
            Some(reward) => Some(reward),
            None => return Ok(None),
        },
    };
    let of_answers = match fields.get("rewards") {
        None => Some(Vec::new()),
        Some(Value::Object(rewards)) => by_name(rewards)?,
        Some(_) => None,
    };
    Ok(of_answers.map(|of_answers| Some(Rewards { last, of_answers })))
}

fn by_name(fields: &Map<String, Value>) -> Result<Option<Vec<(String, f64)>>, EpisodeError> {
    let mut rewards = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        let Some(reward) = number(value)? else { return Ok(None) };
        rewards.push((name.clone(), reward));
    }
    Ok((!rewards.is_empty()).then_some(rewards))
}

/// True is 1: whether a task was solved is a reward too.
fn number(value: &Value) -> Result<Option<f64>, EpisodeError> {
    match value {
        Value::Bool(is_good) => Ok(Some(f64::from(u8::from(*is_good)))),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            Ok(Some(finite("the agent", number)?))
        }
        // As Python's host writes what JSON has no words for.
        Value::String(text) if text == "NaN" => Ok(Some(finite("the agent", f64::NAN)?)),
        _ => Ok(None),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(returned: &Returned) -> String {
        match returned.rewards() {
            Ok(None) => "rejected".to_owned(),
            Ok(Some(rewards)) => format!("{:?} {:?}", rewards.last, rewards.of_answers),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_function_returns_its_reward_or_is_told_what_it_returned() {
        for (value, expect) in [
            (json!(0.5), "Some(0.5) []"),
            (json!(2), "Some(2.0) []"),
            (json!(true), "Some(1.0) []"),
            (json!(null), "rejected"),
            (
                json!({"chatcmpl-s1-0": 1, "chatcmpl-s1-1": false}),
                r#"None [("chatcmpl-s1-0", 1.0), ("chatcmpl-s1-1", 0.0)]"#,
            ),
            (json!({"reward": 1, "rewards": {"s1-0": 0.25}}), r#"Some(1.0) [("s1-0", 0.25)]"#),
            (json!("NaN"), "the reward of the agent is NaN, but must be a finite number"),
            (json!("<Answer>"), r#"the workflow returned "<Answer>", but must return a number"#),
            (json!([1]), "the workflow returned [1], but"),
            (json!({}), "the workflow returned {}, but"),
            (json!({"a": "b"}), r#"the workflow returned {"a":"b"}, but"#),
        ] {
            let told = told(&Returned::Value(value.clone()));
            assert!(told.starts_with(expect), "{value}: {told}");
        }
    }

    #[test]
    fn the_last_line_with_something_in_it_is_the_reward() {
        for (output, expect) in [
            ("thinking\n0.5\n\n  \n", "Some(0.5) []"),
            ("1e-3", "Some(0.001) []"),
            ("true\r\n", "Some(1.0) []"),
            ("null", "rejected"),
            (r#"{"reward": 1}"#, "Some(1.0) []"),
            (r#"{"rewards": {"s1-0": 1}}"#, r#"None [("s1-0", 1.0)]"#),
            (
                "",
                "the last line of the agent is nothing, but must be its reward: a number, {\"reward\": 0.5}",
            ),
            ("1\nbye", "the last line of the agent is \"bye\", but must be its reward"),
            (r#"{"reward": "1"}"#, "the last line of the agent is"),
            (r#"{"rewards": 1}"#, "the last line of the agent is"),
            ("inf", "the reward of the agent is inf"),
        ] {
            let told = told(&Returned::Output(output.to_owned()));
            assert!(told.starts_with(expect), "{output}: {told}");
        }
    }
}
