//! Listens, and finds out what is asked.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::engine::{Counters, Engine, Plan};
use crate::http::{self, Answer};
use crate::settings::{Dialects, Settings};
use crate::stream::Held;
use crate::{chat, control, sglang, vllm};

/// A running engine; dropped, it stops listening and closes every connection.
#[derive(Debug)]
pub struct TestEngine {
    engine: Arc<Engine>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl TestEngine {
    /// On a free port of this machine.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        Self::listen(([127, 0, 0, 1], 0).into(), settings).await
    }

    pub async fn listen(address: SocketAddr, settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let engine = Arc::new(Engine::new(settings));
        let task = tokio::spawn(accept(listener, Arc::clone(&engine)));
        Ok(Self { engine, address, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// From now on.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.engine.settings());
    }

    /// The prompts of all generations in token ids since `records` was set, in the order in which they came.
    pub fn recorded(&self) -> Vec<Vec<i32>> {
        self.engine.recorded()
    }

    pub fn settings(&self) -> Settings {
        self.engine.settings().clone()
    }

    /// Ends when the engine does, which is never.
    pub async fn join(mut self) {
        let _ended = (&mut self.task).await;
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, engine: Arc<Engine>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(connection(stream, Arc::clone(&engine)));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, engine: Arc<Engine>) {
    let _slow_at_worst = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let engine = Arc::clone(&engine);
        // An error from here closes the connection without an answer.
        async move {
            respond(&engine, request).await.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))
        }
    });
    // Clients go away as they please.
    let _gone =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(engine: &Arc<Engine>, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    let path = parts.uri.path();
    match path {
        "/generate" | "/v1/completions" | "/v1/chat/completions" => generation(engine, path, &body).await,
        "/control" if parts.method == Method::POST => control::change(engine, &body),
        "/control" => control::show(engine),
        "/recorded" => http::json(&engine.recorded()),
        _ => {
            let latency = Duration::from_millis(engine.settings().health_latency_ms);
            if path == "/health" && !latency.is_zero() {
                tokio::time::sleep(latency).await;
            }
            other(engine, path, &body)
        }
    }
}

async fn generation(engine: &Arc<Engine>, path: &str, body: &Bytes) -> Answer {
    let dialects = engine.settings().dialects;
    if path == "/generate" && !dialects.speaks(Dialects::Sglang) {
        return http::not_found();
    }
    let under_way = engine.begin();
    engine.wait_while_paused().await;
    let place = Arc::clone(&engine.places).acquire_owned().await.ok()?;
    let mut held = Some(Held { under_way, place });
    let answer = match engine.plan(body) {
        Plan::Fail { status, retry_after } => http::status(status, retry_after.as_deref()),
        Plan::Disconnect => None,
        Plan::Raw(body) => http::raw(body),
        Plan::Generate(settings) => match path {
            "/generate" => sglang::answer(engine, *settings, body, &mut held).await,
            "/v1/completions" => vllm::answer(engine, *settings, body, &mut held).await,
            _ => chat::answer(engine, &settings, body).await,
        },
    };
    // A stream has taken it, and holds it until its end.
    if let Some(held) = held {
        held.answered();
    }
    answer
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Abort {
    rid: String,
    abort_all: bool,
}

fn other(engine: &Engine, path: &str, body: &Bytes) -> Answer {
    let Settings { dialects, can_abort, can_abort_without_pause, health_status, model, version, .. } =
        engine.settings().clone();
    match path {
        "/health" if dialects != Dialects::Openai => http::status(health_status, None),
        "/v1/models" => http::json(&json!({"object": "list", "data": [{"id": model, "object": "model"}]})),
        "/get_model_info" | "/model_info" if dialects.speaks(Dialects::Sglang) => http::json(
            &json!({"model_path": model, "is_generation": true, "weight_version": version.to_string()}),
        ),
        "/abort_request" if can_abort && dialects.speaks(Dialects::Sglang) => {
            let Abort { rid, abort_all } = serde_json::from_slice(body).unwrap_or_default();
            match (abort_all, rid.as_str()) {
                (true, _) => engine.abort_all(),
                (false, "") => {}
                (false, rid) => engine.abort(rid),
            }
            http::empty()
        }
        "/version" if dialects.speaks(Dialects::Vllm) => http::json(&json!({"version": "0.0.0+test"})),
        "/abort_requests" if can_abort && can_abort_without_pause && dialects.speaks(Dialects::Vllm) => {
            engine.abort_all();
            http::json(&json!({"status": "aborted"}))
        }
        "/pause" if can_abort && dialects.speaks(Dialects::Vllm) => {
            engine.set_paused(true);
            engine.abort_all();
            http::json(&json!({"status": "paused"}))
        }
        "/resume" if can_abort && dialects.speaks(Dialects::Vllm) => {
            engine.set_paused(false);
            http::json(&json!({"status": "resumed"}))
        }
        "/is_paused" if dialects.speaks(Dialects::Vllm) => {
            http::json(&json!({"is_paused": engine.is_paused()}))
        }
        _ => http::not_found(),
    }
}
