//! The built-in task against an engine that speaks as the real ones do, and a shelf that keeps books.

mod input;
mod outage;
mod payload;
mod resume;
mod rollouts;
mod shelf;
mod writing;

use rollyard_engine::task::{MathTask, Progress, Shelf, StartPayload, Summary, TaskError};
use rollyard_test_engine::{Settings, TestEngine};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engines::until;
use shelf::MemoryShelf;

/// A folder with `problems.jsonl`: problem `p_N` asks for N, whose label is N.
struct Problems {
    dir: TempDir,
}

impl Problems {
    fn new(count: usize) -> Self {
        let line =
            |n| json!({"instance_id": format!("p_{n}"), "prompt": format!("What is {n}?"), "label": n});
        Self::of(&(0..count).map(|n| line(n).to_string()).collect::<Vec<_>>().join("\n"))
    }

    fn of(text: &str) -> Self {
        let problems = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::write(problems.path(), text).unwrap();
        problems
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("problems.jsonl")
    }
}

/// The fields of a start, with `over` put over them.
fn payload(engine: &str, file: &Path, over: Value) -> Map<String, Value> {
    let mut fields = json!({
        "task_type": "math", "input_file": file, "remote_engine_url": engine, "num_process": "4",
        "sampling_params": {"max_tokens": 16, "temperature": 0.5},
    });
    let fields = fields.as_object_mut().unwrap();
    fields.extend(over.as_object().unwrap().clone());
    fields.clone()
}

/// A task that is under way.
struct Running {
    shelf: Arc<MemoryShelf>,
    progress: Arc<Progress>,
    stop: CancellationToken,
    task: JoinHandle<Result<Summary, TaskError>>,
}

fn begin(fields: &Map<String, Value>, shelf: &Arc<MemoryShelf>) -> Running {
    let task = MathTask::prepare(StartPayload::parse(fields).unwrap()).unwrap();
    let (progress, stop) = (Arc::new(Progress::default()), CancellationToken::new());
    let given = Arc::clone(shelf) as Arc<dyn Shelf>;
    let task = tokio::spawn(task.run(given, Arc::clone(&progress), stop.clone()));
    Running { shelf: Arc::clone(shelf), progress, stop, task }
}

impl Running {
    async fn end(self) -> Result<Summary, TaskError> {
        tokio::time::timeout(Duration::from_secs(60), self.task).await.expect("a task that ends").unwrap()
    }

    async fn written(&self, count: usize) {
        until(&format!("{count} rollouts written"), || self.shelf.len() >= count).await;
    }
}

async fn run(fields: &Map<String, Value>, shelf: &Arc<MemoryShelf>) -> Summary {
    begin(fields, shelf).end().await.unwrap()
}

async fn engine(settings: Settings) -> TestEngine {
    TestEngine::start(settings).await.unwrap()
}

/// Whatever is asked, it is four.
fn four() -> Settings {
    Settings { answers: vec![r"It is \boxed{4}.".into()], ..Settings::default() }
}

fn uids(instances: impl IntoIterator<Item = usize>, epochs: u32, repeats: u32) -> BTreeSet<String> {
    let of = |n| {
        (0..epochs).flat_map(move |epoch| (0..repeats).map(move |repeat| format!("p_{n}:{epoch}:{repeat}")))
    };
    instances.into_iter().flat_map(of).collect()
}
