//! A server on a free port and a data folder of its own, and the calls that the tests make.

use rollyard_server::{App, GateSettings, Runs, Settings, serve};
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) dir: Option<TempDir>,
    stopping: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// A server whose default run has these knobs.
    pub(crate) fn start(knobs: Value) -> Self {
        Self::start_in(TempDir::new().unwrap(), knobs, Settings::default())
    }

    pub(crate) fn start_with(knobs: Value, settings: Settings) -> Self {
        Self::start_in(TempDir::new().unwrap(), knobs, settings)
    }

    /// The rollouts of the task `math` come from outside, as they do with slime's own generator.
    pub(crate) fn start_for_math_from_outside(knobs: Value) -> Self {
        let task_types = vec!["math".to_owned()];
        Self::start_with(knobs, Settings { task_types, ..Settings::default() })
    }

    pub(crate) fn start_in(dir: TempDir, knobs: Value, settings: Settings) -> Self {
        Self::start_gated(dir, knobs, settings, None)
    }

    /// The same, with a gateway.
    pub(crate) fn start_gated(
        dir: TempDir,
        knobs: Value,
        settings: Settings,
        gate: Option<GateSettings>,
    ) -> Self {
        let Value::Object(knobs) = knobs else { panic!("knobs are an object") };
        let stopping = CancellationToken::new();
        let (started, address) = std::sync::mpsc::channel();
        let (path, stop) = (dir.path().to_owned(), stopping.clone());
        let thread = std::thread::spawn(move || run(&path, &knobs, settings, gate, stop, &started));
        Self { addr: address.recv().unwrap(), dir: Some(dir), stopping, thread: Some(thread) }
    }

    /// Stops in good order and starts again on the same data.
    pub(crate) fn restart(self, knobs: Value) -> Self {
        self.restart_after(knobs, || {})
    }

    /// The same, with something done to the data in between.
    pub(crate) fn restart_after(mut self, knobs: Value, meanwhile: impl FnOnce()) -> Self {
        let dir = self.dir.take().unwrap();
        drop(self);
        meanwhile();
        Self::start_in(dir, knobs, Settings::default())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        answer(agent().get(self.url(path)).call().unwrap())
    }

    pub(crate) fn delete(&self, path: &str) -> (u16, Value) {
        answer(agent().delete(self.url(path)).call().unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(path, body.to_string().as_bytes(), &[])
    }

    pub(crate) fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        answer(agent().patch(self.url(path)).send(body.to_string()).unwrap())
    }

    pub(crate) fn send(&self, path: &str, body: &[u8], headers: &[(&str, &str)]) -> (u16, Value) {
        answer(self.post_bytes(path, body, headers))
    }

    /// The answer as it came.
    pub(crate) fn bytes(&self, path: &str, body: &[u8], headers: &[(&str, &str)]) -> (u16, Vec<u8>) {
        let mut response = self.post_bytes(path, body, headers);
        let bytes = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
        (response.status().as_u16(), bytes)
    }

    fn post_bytes(
        &self,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> ureq::http::Response<ureq::Body> {
        let request = agent().post(self.url(path)).content_type("application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send(body).unwrap()
    }

    /// A raw connection, for tests that misbehave on it.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Writes a full group with varied rewards.
    pub(crate) fn fill(&self, instance: &str, size: usize) {
        for n in 0..size {
            let (status, body) =
                self.post("/buffer/write", item(&format!("{instance}-{n}"), instance, (n % 2) as f64));
            assert_eq!(status, 200, "{body}");
        }
    }

    pub(crate) fn books(&self) -> Value {
        self.get("/api/runs/default/books").1
    }

    /// The rows of a read; empty if it says there are too few.
    pub(crate) fn read(&self, body: Value) -> Vec<Value> {
        let (status, answer) = self.post("/get_rollout_data", body);
        assert_eq!(status, 200, "{answer}");
        answer["data"]["data"].as_array().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.cancel();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn run(
    dir: &Path,
    knobs: &Map<String, Value>,
    settings: Settings,
    gate: Option<GateSettings>,
    stopping: CancellationToken,
    started: &std::sync::mpsc::Sender<SocketAddr>,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let runs = Arc::new(Runs::open(dir, knobs, |_, _, _| {}).unwrap());
    runtime.block_on(async {
        runs.configure_default(knobs).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        started.send(listener.local_addr().unwrap()).unwrap();
        let mut app = App::new(Arc::clone(&runs), settings, stopping);
        gate.into_iter().for_each(|gate| app.open_gateway(gate).unwrap());
        serve(listener, app).await.unwrap();
    });
    runs.close();
}

pub(crate) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into()
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let text = response.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (response.status().as_u16(), value)
}

pub(crate) fn item(uid: &str, instance: &str, reward: f64) -> Value {
    json!({
        "uid": uid, "instance_id": instance, "reward": reward, "extra_info": {"k": 1},
        "messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
    })
}

/// Waits until `holds`, and fails with `what` after ten seconds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come to be");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn post_raw(stream: &mut TcpStream, path: &str, body: &str) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
}

/// What the server sends until it closes or falls silent.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count) = stream.read(&mut piece) {
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
