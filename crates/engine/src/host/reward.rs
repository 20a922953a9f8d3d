//! A reward that a function in Python gives: `fn(prompt, completion, prompt_ids, completion_ids, **data)`.

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;

use super::frame::Load;
use super::{Host, HostError};
use crate::reward::{Judged, Reward, RewardError, finite};

/// What the function is given anyway: a field of the data by the same name would be given twice.
const GIVEN: [&str; 5] = ["prompt", "completion", "completions", "prompt_ids", "completion_ids"];

/// `module.function`, imported by each worker; `async` or not.
#[derive(Debug)]
pub struct PythonReward {
    host: Host,
    handle: u64,
    path: String,
    timeout: Duration,
}

#[derive(Serialize)]
struct Arguments<'a> {
    args: (&'a str, &'a str, &'a [i32], &'a [i32]),
    kwargs: Map<String, Value>,
}

impl PythonReward {
    pub async fn load(host: Host, path: &str, timeout: Duration) -> Result<Self, HostError> {
        let handle = host.load(Load::Function { path: path.to_owned() }).await?;
        Ok(Self { host, handle, path: path.to_owned(), timeout })
    }

    async fn ask(&self, judged: Judged<'_>) -> Result<f64, RewardError> {
        let by = || self.path.clone();
        let failed = |message: String| RewardError::Failed { by: by(), message };
        let mut kwargs = judged.data.fields().clone();
        kwargs.retain(|name, _| !GIVEN.contains(&name.as_str()));
        let args = (judged.prompt, judged.completion, judged.prompt_ids, judged.completion_ids);
        let arguments = serde_json::value::to_raw_value(&Arguments { args, kwargs });
        let arguments = arguments.map_err(|error| failed(error.to_string()))?;
        let secs = self.timeout.as_secs_f64();
        let asked = timeout(self.timeout, self.host.call(self.handle, &arguments)).await;
        let value = asked.map_err(|_| RewardError::Timeout { by: by(), secs })?;
        let value = value.map_err(|error| match error {
            HostError::Raised { told, may_pass: false, .. } | HostError::Load(told) => {
                RewardError::BadData { by: by(), message: told }
            }
            error => failed(error.to_string()),
        })?;
        match serde_json::from_str(value.get()) {
            Ok(Value::Bool(truth)) => Ok(f64::from(u8::from(truth))),
            Ok(Value::Number(number)) => finite(&self.path, number.as_f64().unwrap_or(f64::NAN)),
            // JSON has no word for these.
            Ok(Value::String(text)) if text == "NaN" => finite(&self.path, f64::NAN),
            _ => Err(RewardError::NotANumber { by: by(), found: value.get().chars().take(60).collect() }),
        }
    }
}

impl Reward for PythonReward {
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        Box::pin(self.ask(judged))
    }
}
