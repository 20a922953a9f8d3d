//! A server on a free port, and somebody who asks it.

use rollyard_tiny::engine::{EngineSettings, Stats, TinyEngine};
use rollyard_tiny::model::{Shape, Weights};
use rollyard_tiny::serve::{ServeSettings, serve};
use rollyard_tiny::tokenizer;
use rollyard_tiny::train::Checkpoint;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub(crate) struct Server {
    pub(crate) runtime: Runtime,
    pub(crate) engine: TinyEngine,
    pub(crate) url: String,
    /// Weights may be loaded from here.
    pub(crate) dir: TempDir,
    agent: ureq::Agent,
    stopping: CancellationToken,
    served: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
}

impl Server {
    pub(crate) fn start(weights: Arc<Weights>) -> Self {
        Self::with(weights, |_| {})
    }

    pub(crate) fn with(weights: Arc<Weights>, change: impl FnOnce(&mut ServeSettings)) -> Self {
        let words = Arc::new(tokenizer::tokenizer().unwrap());
        let settings = EngineSettings { seed: Some(1), ..EngineSettings::default() };
        let engine = TinyEngine::start(weights, 0, words, settings).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut settings = ServeSettings { roots: vec![dir.path().to_owned()], ..ServeSettings::default() };
        change(&mut settings);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stopping = CancellationToken::new();
        let served = Some(runtime.spawn(serve(listener, engine.clone(), settings, stopping.clone())));
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .proxy(None)
            .build();
        Self { runtime, engine, url, dir, agent: agent.into(), stopping, served }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        read(self.agent.get(format!("{}{path}", self.url)).call().unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(path, &body.to_string(), &[])
    }

    pub(crate) fn send(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(request.send(body).unwrap())
    }

    /// What is answered, which must be a yes.
    pub(crate) fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The events of a stream as they come, without the last, which says that it is.
    pub(crate) fn stream(&self, path: &str, body: &Value) -> impl Iterator<Item = Value> + use<> {
        let answer = self.agent.post(format!("{}{path}", self.url)).send(body.to_string()).unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut lines = BufReader::new(answer.into_body().into_reader()).lines();
        let mut done = false;
        std::iter::from_fn(move || {
            loop {
                let Some(line) = lines.next() else {
                    assert!(done, "the stream broke off");
                    return None;
                };
                let line = line.unwrap();
                let Some(data) = line.strip_prefix("data: ") else {
                    assert!(line.is_empty(), "{line:?}");
                    continue;
                };
                assert!(!done, "{data} came behind the end");
                if data == "[DONE]" {
                    done = true;
                    continue;
                }
                return Some(serde_json::from_str(data).unwrap());
            }
        })
    }

    /// A checkpoint with these weights, for `/update_weights_from_disk`.
    pub(crate) fn save(&self, name: &str, weights: &Weights) -> PathBuf {
        let path = self.dir.path().join(name);
        Checkpoint { weights: weights.clone(), adam: None, notes: Map::new() }.save(&path).unwrap();
        path
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn(Stats) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !holds(self.engine.stats()) {
            assert!(Instant::now() < deadline, "not {what} within 20 s: {:?}", self.engine.stats());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Tells it to stop and waits until it did.
    pub(crate) fn stop(mut self) {
        self.stopping.cancel();
        let served = self.served.take().unwrap();
        self.runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(20), served).await })
            .expect("it stops")
            .unwrap()
            .unwrap();
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let status = answer.status().as_u16();
    let text = answer.body_mut().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub(crate) fn weights(context: usize, seed: u64) -> Arc<Weights> {
    let shape = Shape { context, ..Shape::demo(tokenizer::vocabulary_len()) };
    Arc::new(Weights::random(shape, seed))
}

pub(crate) fn ids(text: &str) -> Vec<i32> {
    let ids = tokenizer::tokenizer().unwrap().encoder().encode(text).unwrap();
    ids.into_iter().map(u32::cast_signed).collect()
}

/// A model that answers a prompt of so many tokens with this, whatever was asked: what a place in the text says is
/// the token that follows it, and nothing else counts.
pub(crate) fn scripted(prompt_tokens: usize, answer: &str) -> Arc<Weights> {
    let vocabulary = tokenizer::vocabulary_len();
    let shape = Shape { vocabulary, width: vocabulary, layers: 1, heads: 1, context: 512 };
    let mut weights = Weights::zeros(shape);
    let names: std::collections::HashMap<_, _> = weights.names().into_iter().collect();
    let values = weights.values_mut();
    values[names["norm"].clone()].fill(2.0);
    for token in 0..vocabulary {
        values[names["head"].start + token * vocabulary + token] = 1.0;
    }
    let said = ids(&format!("{answer}{}", tokenizer::END));
    for (at, token) in said.into_iter().enumerate() {
        let place = (prompt_tokens - 1 + at) * vocabulary + usize::try_from(token).unwrap();
        values[names["positions"].start + place] = 1.0;
    }
    Arc::new(weights)
}
