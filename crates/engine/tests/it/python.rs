//! Rewards, tools and workflows in Python, called from Rust. They need an interpreter that has the package:
//! `make test-rust` installs one.

use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine};
use rollyard_engine::episode::{Context, Data, EpisodeError, Workflow};
use rollyard_engine::generate::SharedEngine;
use rollyard_engine::host::{Host, HostConfig, PythonReward, PythonTool, PythonWorkflow};
use rollyard_engine::reward::{Judged, Reward, RewardError};
use rollyard_engine::stats::Stats;
use rollyard_engine::tool::{Tool, ToolError};
use rollyard_test_engine::{Settings, TestEngine, interpreter};
use serde_json::value::RawValue;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const USER_CODE: &str = r#"
import asyncio, os, time
from typing import Literal
import rollyard

def judge(prompt, completion, prompt_ids, completion_ids, *, answer, **data):
    if answer == "late":
        time.sleep(60)
    if answer == "wrong":
        raise KeyError("no such answer")
    if isinstance(answer, str):
        return {"nan": float("nan"), "text": "a lot"}[answer]
    return completion.endswith(str(answer))

async def count(text: str, times: int = 1, how: Literal["up", "down"] = "up"):
    """Counts letters.

    Not told to the model.
    """
    await asyncio.sleep(0)
    return len(text) * times

class Asks(rollyard.RolloutWorkflow):
    def __init__(self, tokens=4):
        self.tokens = tokens

    async def arun_episode(self, engine, data):
        if data.get("die"):
            os._exit(9)
        config = rollyard.GenerationConfig(max_new_tokens=self.tokens)
        answer = await engine.agenerate(rollyard.ModelRequest(input_ids=data["tokens"], gconfig=config))
        rollyard.stats.get().scalar(tokens=answer.output_len)
        return {"a": rollyard.Interaction(answer, 0.5)}
"#;

/// Workers that can import the user's code.
async fn start(stats: &'static Stats, engine: Option<&EngineConfig>) -> (Host, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("user_code.py"), USER_CODE).unwrap();
    let config = HostConfig {
        python: Some(interpreter()),
        processes: NonZeroUsize::new(2).unwrap(),
        threads: NonZeroUsize::new(2).unwrap(),
        engine: engine.map(|engine| serde_json::value::to_raw_value(engine).unwrap()),
        sys_path: vec![folder.path().to_str().unwrap().to_owned()],
        ..HostConfig::default()
    };
    (Host::start(config, stats).await.unwrap(), folder)
}

fn context() -> Context {
    Context { run: "run".into(), task_id: 1, sample_idx: 0, attempt: 0, is_eval: false, seed: 7 }
}

#[tokio::test]
async fn a_function_judges_by_position_and_by_the_fields_of_the_data() {
    static STATS: Stats = Stats::new();
    let (host, _folder) = start(&STATS, None).await;
    let reward = PythonReward::load(host.clone(), "user_code.judge", Duration::from_secs(5)).await.unwrap();
    let context = context();
    let by = || "user_code.judge".to_owned();
    // A field named like what is given anyway is not given twice.
    for (data, expected) in [
        (r#"{"answer": 4, "prompt": "2+2?", "level": 1}"#, Ok(1.0)),
        (r#"{"answer": 5}"#, Ok(0.0)),
        (r#"{"answer": "late"}"#, Err(RewardError::Timeout { by: by(), secs: 5.0 })),
        (r#"{"answer": "text"}"#, Err(RewardError::NotANumber { by: by(), found: "\"a lot\"".to_owned() })),
    ] {
        let data = Data::parse(data).unwrap();
        let judged = Judged { completion: "It is 4", ..judged(&data, &context) };
        assert_eq!(reward.score(judged).await, expected, "{data:?}");
    }
    for (answer, told) in
        [("nan", "is NaN, but must be a finite number"), ("wrong", "KeyError: 'no such answer' (")]
    {
        let data = Data::parse(&format!(r#"{{"answer": "{answer}"}}"#)).unwrap();
        let error = reward.score(judged(&data, &context)).await.unwrap_err().to_string();
        assert!(error.contains(told), "{error} does not say {told}");
    }
    host.close().await;
}

#[tokio::test]
async fn a_worker_whose_threads_all_hang_is_replaced() {
    static STATS: Stats = Stats::new();
    let (host, _folder) = start(&STATS, None).await;
    let judge =
        PythonReward::load(host.clone(), "user_code.judge", Duration::from_millis(200)).await.unwrap();
    let before = until(|| Some(host.pids()).filter(|pids| pids.len() == 2)).await;
    let (late, right) =
        (Data::parse(r#"{"answer": "late"}"#).unwrap(), Data::parse(r#"{"answer": 4}"#).unwrap());
    let context = context();
    let score = |data| judge.score(Judged { completion: "It is 4", ..judged(data, &context) });
    // Two threads each in two workers; whoever asks a worker that is about to end is told that it did.
    while host.pids().iter().any(|pid| before.contains(pid)) {
        let score = score(&late).await;
        assert!(matches!(score, Err(RewardError::Timeout { .. } | RewardError::Failed { .. })), "{score:?}");
    }
    until(|| (host.pids().len() == 2).then_some(())).await;
    assert_eq!(score(&right).await, Ok(1.0));
    host.close().await;
}

/// Looks until there is something, and gives it.
async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.unwrap()
}

fn judged<'a>(data: &'a Data, context: &'a Context) -> Judged<'a> {
    let (prompt, completion) = ("", "");
    Judged { data, context, prompt, completion, prompt_ids: &[], completion_ids: &[], messages: &[] }
}

#[tokio::test]
async fn a_function_is_a_tool_with_the_schema_of_its_signature() {
    static STATS: Stats = Stats::new();
    let (host, _folder) = start(&STATS, None).await;
    let tool = PythonTool::load(host.clone(), "user_code.count", Duration::from_secs(5)).await.unwrap();
    let schema: serde_json::Value = serde_json::from_str(tool.schema().get()).unwrap();
    let expected = serde_json::json!({"type": "function", "function": {
        "name": "count",
        "description": "Counts letters.",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string"}, "times": {"type": "integer"}, "how": {"enum": ["up", "down"]},
            },
            "required": ["text"],
        },
    }});
    assert_eq!((tool.name(), &schema), ("count", &expected));
    let call = async |arguments: &str| {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        tool.call(&arguments, &context()).await
    };
    assert_eq!(call(r#"{"text": "abc", "times": 2}"#).await, Ok("6".to_owned()));
    assert!(matches!(call(r#"["abc"]"#).await, Err(ToolError::BadArguments(_))));
    let failed = call(r#"{"words": 1}"#).await.unwrap_err().to_string();
    assert!(failed.contains("TypeError"), "{failed}");
    host.close().await;
}

#[tokio::test]
async fn a_workflow_samples_with_an_engine_of_its_own_and_outlives_its_worker() {
    static STATS: Stats = Stats::new();
    let server = TestEngine::start(Settings::default()).await.unwrap();
    let config = EngineConfig::of(Dialect::Sglang, server.url());
    let (host, _folder) = start(&STATS, Some(&config)).await;
    let engine: SharedEngine = Arc::new(HttpEngine::new(config).unwrap());
    let kwargs = serde_json::json!({"tokens": 6}).as_object().unwrap().clone();
    let workflow = PythonWorkflow::load(host.clone(), "user_code.Asks", kwargs).await.unwrap();
    let run = async |data: &str| workflow.run_episode(&engine, &Data::parse(data).unwrap(), &context()).await;
    let error = run(r#"{"die": true}"#).await.unwrap_err();
    assert!(matches!(&error, EpisodeError::WorkerLost(why) if why.contains("exit status: 9")), "{error}");
    for _ in 0..4 {
        let trajectory = run(r#"{"tokens": [1, 2, 3]}"#).await.unwrap().unwrap();
        let [sample] = trajectory.samples.as_slice() else { panic!("{trajectory:?}") };
        let rollout = sample.rollout.as_ref().unwrap();
        assert_eq!(
            (rollout.prompt_tokens(), rollout.response_len(), sample.reward),
            (&[1, 2, 3][..], 6, 0.5)
        );
    }
    assert_eq!(workflow.arrays(), Some("numpy"));
    assert_eq!(STATS.get()["rollout"]["tokens"].count, 4);
    host.close().await;
}
