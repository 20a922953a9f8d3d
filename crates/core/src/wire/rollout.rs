//! Reads the tokens a rollout carries.
//!
//! Writers say them in one of three ways, and all three become one [`Rollout`]:
//!
//! - `tokens` with `response_length` or `loss_mask`, as slime's samples do;
//! - `prompt_tokens` and `response_tokens`, as marin's rollouts do;
//! - `turns`, each with the whole `prompt_ids` it was asked with and the `output_ids` it answered, as a
//!   gateway sees them. A turn's prompt must begin with all that came before it, or history was rewritten.
//!
//! Beside them `logprobs` (or `rollout_log_probs`, `response_logprobs`), `versions` (or `weight_versions`)
//! and `token_rewards`, one for each token of the response or of the whole. Text is not looked at: a rollout
//! without tokens is [`TokensError::Absent`], and it is for the caller to say that it may be tokenised.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rollout::{Draft, Metadata, NO_VERSION, Rollout, RolloutError};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TokensError {
    #[error(
        "the rollout carries no tokens (`tokens`, `prompt_tokens` and `response_tokens`, or `turns`); \
         give a tokenizer to make them from its messages"
    )]
    Absent,
    #[error("not a rollout: {0}")]
    NotARollout(String),
    #[error("field {field:?} is missing: {reason}")]
    Missing { field: &'static str, reason: &'static str },
    #[error("{field} has {len} values, but there are {response} tokens in the response and {all} in all")]
    Length { field: &'static str, len: usize, response: usize, all: usize },
    #[error("response_length is {response_length}, but there are only {len} tokens")]
    ResponseLength { response_length: usize, len: usize },
    #[error(
        "turns[{turn}].prompt_ids parts from the turns before it at token {at} of {before}: history was rewritten"
    )]
    Rewritten { turn: usize, at: usize, before: usize },
    #[error("turns[{turn}].logprobs has {len} values, but output_ids has {expected}")]
    TurnLength { turn: usize, len: usize, expected: usize },
    #[error("{field}[{index}] is infinite, which JSON cannot say")]
    NotJson { field: &'static str, index: usize },
    #[error(transparent)]
    Rollout(#[from] RolloutError),
}

/// Reads a rollout's tokens from the JSON of one item.
pub fn decode(json: &[u8]) -> Result<Rollout, TokensError> {
    draft(json).and_then(|draft| Ok(Rollout::try_from(draft)?))
}

/// What is said of a rollout beside its tokens, which it need not have.
pub fn facts(json: &[u8]) -> Result<Draft, TokensError> {
    let wire = parse(json)?;
    let mut draft = Draft::default();
    Facts::of(&wire).put_in(&mut draft);
    Ok(draft)
}

/// Like [`decode`], without the check of the parts against each other.
pub fn draft(json: &[u8]) -> Result<Draft, TokensError> {
    let mut wire = parse(json)?;
    let facts = Facts::of(&wire);
    let arrays = Arrays {
        logprobs: wire.logprobs.take(),
        versions: wire.versions.take(),
        token_rewards: wire.token_rewards.take(),
    };
    let mut draft = match wire {
        WireRollout { turns: Some(turns), .. } => from_turns(turns)?,
        WireRollout { tokens: Some(tokens), response_length, loss_mask, .. } => {
            from_tokens(tokens, response_length, loss_mask, arrays)?
        }
        WireRollout {
            prompt_tokens: Some(mut tokens), response_tokens: Some(response), loss_mask, ..
        } => {
            let prompt_len = tokens.len();
            tokens.extend(response);
            with_arrays(tokens, prompt_len, loss_mask, arrays)?
        }
        WireRollout { prompt_tokens: Some(_), .. } => {
            let reason = "`prompt_tokens` is there and needs it";
            return Err(TokensError::Missing { field: "response_tokens", reason });
        }
        WireRollout { response_tokens: Some(_), .. } => {
            let reason = "`response_tokens` is there and needs it";
            return Err(TokensError::Missing { field: "prompt_tokens", reason });
        }
        _ => return Err(TokensError::Absent),
    };
    facts.put_in(&mut draft);
    Ok(draft)
}

/// The rollout as an item that [`decode`] reads back: under this uid, in a group of this size if it is said.
///
/// It has no messages: what was sampled is in its tokens.
pub fn encode(rollout: &Rollout, uid: &str, group_size: Option<usize>) -> Result<Vec<u8>, TokensError> {
    let metadata = &rollout.metadata;
    let item = OwnItem {
        uid,
        instance_id: &rollout.env_example_id,
        env_name: &rollout.env_name,
        messages: [],
        reward: rollout.episode_reward,
        weight_version: (metadata.weight_step >= 0).then_some(metadata.weight_step),
        timestamp: metadata.timestamp,
        worker_id: &metadata.worker_id,
        group_size,
        tokens: TokenFields::of(rollout)?,
    };
    serde_json::to_vec(&item).map_err(|error| TokensError::NotARollout(error.to_string()))
}

/// The fields of [`WireRollout`] as this module writes them.
#[derive(Serialize)]
struct OwnItem<'a> {
    uid: &'a str,
    instance_id: &'a str,
    env_name: &'a str,
    messages: [(); 0],
    reward: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_version: Option<i64>,
    timestamp: f64,
    worker_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_size: Option<usize>,
    #[serde(flatten)]
    tokens: TokenFields<'a>,
}

/// What was given and sampled, for an item that says more than this; [`decode`] reads it back.
#[derive(Debug, Serialize)]
pub struct TokenFields<'a> {
    prompt_tokens: &'a [i32],
    response_tokens: &'a [i32],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_logprobs: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_mask: Option<Vec<u8>>,
    versions: Vec<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_rewards: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<i32>,
    is_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    correctness_reward: Option<f64>,
}

impl<'a> TokenFields<'a> {
    /// An error if a log-probability is infinite, which JSON cannot say.
    pub fn of(rollout: &'a Rollout) -> Result<Self, TokensError> {
        let logprobs = rollout.response_logprobs();
        if let Some(index) = logprobs.unwrap_or_default().iter().position(|logprob| !logprob.is_finite()) {
            return Err(TokensError::NotJson { field: "response_logprobs", index });
        }
        let all_sampled = rollout.sampled().spans().all(|(_, sampled)| sampled);
        let rewarded = rollout.token_rewards().spans().any(|(_, reward)| reward != 0.0);
        Ok(Self {
            prompt_tokens: rollout.prompt_tokens(),
            response_tokens: rollout.response_tokens(),
            response_logprobs: logprobs,
            loss_mask: (!all_sampled).then(|| rollout.sampled().values().map(u8::from).collect()),
            versions: rollout.versions().values().collect(),
            token_rewards: rewarded.then(|| rollout.token_rewards().values().collect()),
            temperature: rollout.temperature,
            top_k: rollout.top_k,
            is_truncated: rollout.is_truncated,
            correctness_reward: rollout.correctness_reward,
        })
    }
}

fn parse(json: &[u8]) -> Result<WireRollout, TokensError> {
    // A list would be taken for the fields in their order.
    if json.trim_ascii_start().starts_with(b"[") {
        return Err(TokensError::NotARollout("it is a list, not an object".to_owned()));
    }
    serde_json::from_slice(json).map_err(|_| not_a_rollout(json))
}

#[derive(Deserialize)]
struct WireRollout {
    tokens: Option<Vec<i32>>,
    response_length: Option<usize>,
    loss_mask: Option<Vec<u8>>,
    prompt_tokens: Option<Vec<i32>>,
    response_tokens: Option<Vec<i32>>,
    turns: Option<Vec<WireTurn>>,
    #[serde(alias = "rollout_log_probs", alias = "response_logprobs")]
    logprobs: Option<Vec<f32>>,
    #[serde(alias = "weight_versions")]
    versions: Option<Vec<i32>>,
    token_rewards: Option<Vec<f32>>,
    instance_id: Option<Value>,
    env_name: Option<String>,
    reward: Option<Reward>,
    weight_version: Option<Version>,
    timestamp: Option<Value>,
    worker_id: Option<String>,
    temperature: Option<f32>,
    top_k: Option<i32>,
    is_truncated: Option<bool>,
    finish_reason: Option<Value>,
    correctness_reward: Option<f64>,
    extra_info: Option<Value>,
}

/// One value for each token.
struct Arrays {
    logprobs: Option<Vec<f32>>,
    versions: Option<Vec<i32>>,
    token_rewards: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct WireTurn {
    prompt_ids: Vec<i32>,
    output_ids: Vec<i32>,
    logprobs: Option<Vec<f32>>,
    #[serde(alias = "weight_version")]
    version: Option<Version>,
}

/// A truth counts as 0 or 1, as it does when an item is written.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number")]
enum Reward {
    Number(f64),
    Truth(bool),
}

/// Engines say theirs as a number or as text; one that was never told says "default", which is none.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "a whole number")]
enum Version {
    Number(i64),
    Text(String),
}

impl Version {
    fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

/// What is said of the rollout beside its tokens.
struct Facts {
    env_name: String,
    env_example_id: String,
    reward: f64,
    metadata: Metadata,
    temperature: Option<f32>,
    top_k: Option<i32>,
    is_truncated: bool,
    correctness_reward: Option<f64>,
}

impl Facts {
    fn of(wire: &WireRollout) -> Self {
        let extra = |key: &str| wire.extra_info.as_ref().and_then(|extra| extra.get(key));
        // Some engines say more of it: `{"type": "length", "length": 512}`.
        let finish = wire.finish_reason.as_ref().or_else(|| extra("finish_reason"));
        let finish = finish.and_then(|reason| reason.get("type").unwrap_or(reason).as_str());
        let timestamp = match &wire.timestamp {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        Self {
            env_name: wire.env_name.clone().unwrap_or_default(),
            env_example_id: match &wire.instance_id {
                Some(Value::String(name)) => name.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            },
            reward: match wire.reward {
                Some(Reward::Number(reward)) => reward,
                Some(Reward::Truth(reward)) => f64::from(u8::from(reward)),
                None => 0.0,
            },
            metadata: Metadata {
                worker_id: wire.worker_id.clone().unwrap_or_default(),
                timestamp: timestamp.unwrap_or_default(),
                weight_step: wire.weight_version.as_ref().and_then(Version::number).unwrap_or(-1),
                ..Metadata::default()
            },
            temperature: wire.temperature,
            top_k: wire.top_k,
            is_truncated: wire.is_truncated.unwrap_or(finish == Some("length")),
            correctness_reward: wire.correctness_reward,
        }
    }

    fn put_in(self, draft: &mut Draft) {
        draft.env_name = self.env_name;
        draft.env_example_id = self.env_example_id;
        draft.episode_reward = self.reward;
        draft.metadata = self.metadata;
        draft.temperature = self.temperature;
        draft.top_k = self.top_k;
        draft.is_truncated = self.is_truncated;
        draft.correctness_reward = self.correctness_reward;
    }
}

fn from_tokens(
    tokens: Vec<i32>,
    response_length: Option<usize>,
    loss_mask: Option<Vec<u8>>,
    arrays: Arrays,
) -> Result<Draft, TokensError> {
    let len = tokens.len();
    let response = match (response_length, &loss_mask) {
        (Some(response), _) => response,
        // The response begins with the first token that was sampled.
        (None, Some(mask)) if mask.len() == len => {
            mask.iter().position(|on| *on != 0).map_or(0, |first| len - first)
        }
        (None, Some(mask)) => mask.len(),
        (None, None) => {
            let reason = "`tokens` alone does not say where the prompt ends; `loss_mask` would do as well";
            return Err(TokensError::Missing { field: "response_length", reason });
        }
    };
    let prompt_len =
        len.checked_sub(response).ok_or(TokensError::ResponseLength { response_length: response, len })?;
    with_arrays(tokens, prompt_len, loss_mask, arrays)
}

fn with_arrays(
    tokens: Vec<i32>,
    prompt_len: usize,
    loss_mask: Option<Vec<u8>>,
    arrays: Arrays,
) -> Result<Draft, TokensError> {
    let cut = Cut { prompt_len, all: tokens.len() };
    Ok(Draft {
        sampled: cut.response("loss_mask", loss_mask)?.map(|mask| mask.iter().map(|on| *on != 0).collect()),
        logprobs: cut.response("logprobs", arrays.logprobs)?,
        versions: cut.response("versions", arrays.versions)?,
        token_rewards: cut.response("token_rewards", arrays.token_rewards)?,
        tokens,
        prompt_len,
        ..Draft::default()
    })
}

struct Cut {
    prompt_len: usize,
    all: usize,
}

impl Cut {
    /// The part over the response of an array over the response or over everything.
    fn response<T>(
        &self,
        field: &'static str,
        values: Option<Vec<T>>,
    ) -> Result<Option<Vec<T>>, TokensError> {
        let Some(mut values) = values else { return Ok(None) };
        let response = self.all - self.prompt_len;
        match values.len() {
            len if len == response => Ok(Some(values)),
            len if len == self.all => Ok(Some(values.split_off(self.prompt_len))),
            len => Err(TokensError::Length { field, len, response, all: self.all }),
        }
    }
}

fn from_turns(turns: Vec<WireTurn>) -> Result<Draft, TokensError> {
    let mut draft = Draft::default();
    let mut sampled = Vec::new();
    let mut versions = Vec::new();
    let mut logprobs = Vec::new();
    let with_logprobs = turns.iter().all(|turn| turn.logprobs.is_some());
    let with_versions =
        turns.iter().any(|turn| turn.version.as_ref().is_some_and(|version| version.number().is_some()));
    for (nth, turn) in turns.into_iter().enumerate() {
        let before = draft.tokens.len();
        let shared = draft.tokens.iter().zip(&turn.prompt_ids).take_while(|(a, b)| a == b).count();
        if shared < before {
            return Err(TokensError::Rewritten { turn: nth, at: shared, before });
        }
        let tail = turn.prompt_ids.get(before..).unwrap_or_default();
        let expected = turn.output_ids.len();
        draft.tokens.extend(tail);
        draft.tokens.extend(&turn.output_ids);
        // The first prompt is the prompt; later ones are part of the response, unsampled.
        let given = if nth == 0 { 0 } else { tail.len() };
        if nth == 0 {
            draft.prompt_len = tail.len();
        }
        sampled.extend(std::iter::repeat_n(false, given).chain(std::iter::repeat_n(true, expected)));
        let version = turn.version.as_ref().and_then(Version::number);
        let version = version.and_then(|version| i32::try_from(version).ok()).unwrap_or(NO_VERSION);
        versions.extend(std::iter::repeat_n(version, given + expected));
        if let Some(values) = turn.logprobs {
            if values.len() != expected {
                return Err(TokensError::TurnLength { turn: nth, len: values.len(), expected });
            }
            logprobs.extend(std::iter::repeat_n(0.0, given).chain(values));
        }
    }
    draft.sampled = Some(sampled);
    draft.versions = with_versions.then_some(versions);
    draft.logprobs = with_logprobs.then_some(logprobs);
    Ok(draft)
}

/// Finds the field to blame, which costs a second pass.
fn not_a_rollout(json: &[u8]) -> TokensError {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    match serde_path_to_error::deserialize::<_, WireRollout>(&mut deserializer) {
        Err(error) if error.path().iter().next().is_some() => {
            TokensError::NotARollout(format!("field {:?}: {}", error.path().to_string(), error.inner()))
        }
        Err(error) => TokensError::NotARollout(error.inner().to_string()),
        Ok(_) => TokensError::NotARollout("there is something after the object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(item: Value) -> Result<Rollout, String> {
        decode(item.to_string().as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn three_ways_to_say_the_same_tokens() {
        let same = [
            json!({"tokens": [1, 2, 3, 4, 5], "response_length": 3, "loss_mask": [1, 0, 1],
                   "rollout_log_probs": [-0.5, 0, -0.25], "weight_versions": [3, 3, 4]}),
            json!({"tokens": [1, 2, 3, 4, 5], "loss_mask": [0, 0, 1, 0, 1],
                   "logprobs": [0, 0, -0.5, 0, -0.25], "versions": [-1, -1, 3, 3, 4]}),
            json!({"prompt_tokens": [1, 2], "response_tokens": [3, 4, 5], "loss_mask": [1, 0, 1],
                   "response_logprobs": [-0.5, 0, -0.25], "versions": [3, -1, 4]}),
            json!({"turns": [{"prompt_ids": [1, 2], "output_ids": [3], "logprobs": [-0.5], "version": 3},
                             {"prompt_ids": [1, 2, 3, 4], "output_ids": [5], "logprobs": [-0.25],
                              "version": 4}]}),
        ];
        for item in same {
            let rollout = read(item.clone()).unwrap();
            assert_eq!(rollout.tokens(), [1, 2, 3, 4, 5], "{item}");
            assert_eq!(rollout.prompt_len(), 2, "{item}");
            assert_eq!(rollout.response_logprobs().unwrap(), [-0.5, 0.0, -0.25], "{item}");
            assert_eq!(rollout.sampled().values().collect::<Vec<_>>(), [true, false, true], "{item}");
            assert_eq!(rollout.versions().values().collect::<Vec<_>>(), [3, -1, 4], "{item}");
            assert!(rollout.is_exact());
        }
    }

    #[test]
    fn facts_beside_the_tokens_are_kept() {
        let rollout = read(json!({"uid": "u", "instance_id": 7, "reward": 0.5, "weight_version": 12,
            "timestamp": "1700000000.5", "extra_info": {"finish_reason": "length"}, "messages": [],
            "tokens": [1, 2], "response_length": 1}))
        .unwrap();
        assert_eq!(&*rollout.env_example_id, "7");
        assert_eq!(rollout.episode_reward, 0.5);
        assert_eq!(rollout.metadata.weight_step, 12);
        assert_eq!(rollout.metadata.timestamp, 1_700_000_000.5);
        assert!(rollout.is_truncated);
        assert_eq!(rollout.versions().get(0), Some(12));
    }

    #[test]
    fn facts_are_read_as_the_yard_admits_them_and_engines_say_them() {
        let item = |facts: Value| {
            let mut item = json!({"tokens": [1, 2], "response_length": 1});
            let fields = item.as_object_mut().unwrap();
            fields.extend(facts.as_object().unwrap().clone());
            read(item).unwrap()
        };
        for (version, step) in [(json!(3), 3), (json!("12"), 12), (json!("default"), -1), (json!(null), -1)] {
            assert_eq!(item(json!({"weight_version": version})).metadata.weight_step, step);
        }
        assert_eq!(item(json!({"reward": true})).episode_reward, 1.0);
        assert!(item(json!({"finish_reason": {"type": "length", "length": 512}})).is_truncated);
        assert!(!item(json!({"finish_reason": {"type": "stop", "matched": 7}})).is_truncated);
        let turns = json!({"turns": [{"prompt_ids": [1], "output_ids": [2], "weight_version": "default"}]});
        assert_eq!(read(turns).unwrap().versions().values().collect::<Vec<_>>(), [-1]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let whole = read(json!({"uid": "u", "instance_id": "7", "env_name": "math", "reward": 0.1,
            "weight_version": 12, "timestamp": 1_700_000_000.25, "worker_id": "h_1", "temperature": 0.7,
            "top_k": 4, "is_truncated": true, "correctness_reward": 1.0, "prompt_tokens": [1, 2],
            "response_tokens": [3, 4, 5], "loss_mask": [1, 0, 1], "response_logprobs": [-0.1, 0, -3.25e-7],
            "versions": [11, -1, 12], "token_rewards": [0, 0, 0.5]}))
        .unwrap();
        let plain = read(json!({"prompt_tokens": [1], "response_tokens": [2], "instance_id": "x"})).unwrap();
        for rollout in [whole, plain] {
            let item = encode(&rollout, "u", Some(3)).unwrap();
            assert_eq!(decode(&item), Ok(rollout));
        }
        let endless = json!({"prompt_tokens": [1], "response_tokens": [2], "response_logprobs": [0]});
        let mut draft = draft(endless.to_string().as_bytes()).unwrap();
        draft.logprobs = Some(vec![f32::NEG_INFINITY]);
        let error = encode(&Rollout::try_from(draft).unwrap(), "u", None).unwrap_err().to_string();
        assert!(error.contains("response_logprobs[0] is infinite"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (json!({"messages": []}), "the rollout carries no tokens"),
            (json!({"tokens": [1, 2]}), "field \"response_length\" is missing"),
            (json!({"prompt_tokens": [1]}), "field \"response_tokens\" is missing"),
            (json!({"tokens": [1, 2], "response_length": 3}), "response_length is 3, but there are only 2"),
            (
                json!({"tokens": [1, 2, 3], "response_length": 1, "logprobs": [0, 0]}),
                "logprobs has 2 values, but there are 1 tokens in the response and 3 in all",
            ),
            (json!({"tokens": [1, "x"], "response_length": 1}), "field \"tokens[1]\": invalid type: string"),
            (json!({"tokens": [1, -2], "response_length": 1}), "tokens[1] is -2"),
            (
                json!({"turns": [{"prompt_ids": [1, 2], "output_ids": [3]},
                                 {"prompt_ids": [1, 9, 3], "output_ids": [5]}]}),
                "turns[1].prompt_ids parts from the turns before it at token 1 of 3",
            ),
            (
                json!({"turns": [{"prompt_ids": [1], "output_ids": [3], "logprobs": []}]}),
                "turns[0].logprobs has 0 values, but output_ids has 1",
            ),
            (json!([1]), "not a rollout"),
        ];
        for (item, expected) in cases {
            let error = read(item).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
