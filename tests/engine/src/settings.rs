//! How the engine behaves. Every field can be changed at run time with `POST /control`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub dialects: Dialects,
    pub model: String,
    /// Token ids are below this.
    pub vocabulary: i32,
    /// One in so many tokens is the last; 0 runs to the limit every time.
    pub stop_one_in: u64,
    /// Of the weights.
    pub version: i32,
    /// New weights with every generation that is aborted.
    pub version_grows_with_aborts: bool,
    pub latency_ms: u64,
    pub latency_ms_per_token: f64,
    /// Further requests wait, as in an engine whose batch is full; 0 is no limit. Counts from the start only.
    pub at_once_max: usize,

    /// So many of the next generations fail with `fail_status`.
    pub fail_next: u32,
    pub fail_status: u16,
    pub fail_retry_after: Option<String>,
    /// Generations that are asked for with this text in the request fail with `fail_status`, every time.
    pub fail_where: Option<String>,
    /// So many of the next generations end with a closed connection.
    pub disconnect_next: u32,
    /// Generations never end, until they are aborted.
    pub hang: bool,
    /// `/health` answers with this.
    pub health_status: u16,
    pub health_latency_ms: u64,
    /// What the next generations are answered with, as it stands.
    pub raw_answers: Vec<String>,

    /// The next generations are aborted after so many tokens, one number for each.
    pub abort_next: Vec<u32>,
    /// All others are, if this is given.
    pub abort_after: Option<u32>,

    pub gives_token_ids: bool,
    /// SGLang's streams have only what is new in each event, as newer servers can.
    pub streams_what_is_new: bool,
    /// A stream has an event for so many tokens.
    pub stream_interval: usize,
    /// The next streams break off after so many tokens, one number for each.
    pub break_next: Vec<u32>,
    /// New weights in the middle of each stream, after so many tokens of it.
    pub version_grows_after: Option<u32>,

    /// As words in the place of tokens, as older servers did.
    pub gives_token_ids_as_words: bool,
    pub gives_logprobs: bool,
    pub gives_version: bool,
    /// There are calls to abort and to pause.
    pub can_abort: bool,
    /// vLLM's call that aborts without a pause, which older servers lack.
    pub can_abort_without_pause: bool,

    /// The assistant's first, second, … message: a text, or a message as an object.
    pub answers: Vec<Value>,
    /// What the next generations in token ids sample, one list for each, instead of what the model would. What an
    /// interruption leaves of a list is sampled next.
    pub token_answers: Vec<Vec<i32>>,
    /// `GET /recorded` has the prompts of all generations in token ids.
    pub records: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialects: Dialects::All,
            model: "test-model".into(),
            vocabulary: 32_000,
            stop_one_in: 0,
            version: 0,
            version_grows_with_aborts: false,
            latency_ms: 0,
            latency_ms_per_token: 0.0,
            at_once_max: 0,
            fail_next: 0,
            fail_status: 500,
            fail_retry_after: None,
            fail_where: None,
            disconnect_next: 0,
            hang: false,
            health_status: 200,
            health_latency_ms: 0,
            raw_answers: Vec::new(),
            abort_next: Vec::new(),
            abort_after: None,
            gives_token_ids: true,
            streams_what_is_new: false,
            stream_interval: 1,
            break_next: Vec::new(),
            version_grows_after: None,
            gives_token_ids_as_words: true,
            gives_logprobs: true,
            gives_version: true,
            can_abort: true,
            can_abort_without_pause: true,
            answers: Vec::new(),
            token_answers: Vec::new(),
            records: false,
        }
    }
}

/// Which calls there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialects {
    #[default]
    All,
    Sglang,
    Vllm,
    Openai,
}

impl Dialects {
    pub(crate) fn speaks(self, one: Self) -> bool {
        self == Self::All || self == one
    }
}

impl Settings {
    /// With the fields of a JSON object put over its own.
    pub fn changed(&self, change: &[u8]) -> Result<Self, String> {
        let change: serde_json::Map<String, Value> =
            serde_json::from_slice(change).map_err(|error| error.to_string())?;
        let mut fields = serde_json::to_value(self).map_err(|error| error.to_string())?;
        if let Some(fields) = fields.as_object_mut() {
            fields.extend(change);
        }
        serde_json::from_value(fields).map_err(|error| error.to_string())
    }
}
