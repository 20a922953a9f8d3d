//! The model over HTTP, in the words of SGLang and of OpenAI, so that it stands in for any engine.
//!
//! A request has to pass the [`guard`]. [`sglang`] or [`openai`] reads its [`body`] and makes [`asks`] of it; [`round`] has the engine answer them all, at once or as a stream, for which [`speech`] says what of a text
//! can be told already. What cannot be done is a [`refusal`], which every dialect words in its own form.
//!
//! Whoever asks over HTTP is answered with what there is when the weights change ([`WhenCut::Answer`]): an answer has
//! one version, and clients that know engines ask for the rest.
//!
//! [`WhenCut::Answer`]: crate::engine::WhenCut::Answer

mod guard;

mod openai;
mod sglang;

mod asks;
mod body;
mod prompts;
mod round;
mod speech;
mod words;

mod refusal;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::engine::TinyEngine;
use guard::Guard;
use refusal::Refusal;

/// How long answers that are under way may take once the server is told to stop; then they end with what they have.
const FINISH_WITHIN: Duration = Duration::from_secs(10);
/// How long those may take to be sent.
const SENT_WITHIN: Duration = Duration::from_secs(2);

/// As a model is called where nobody gave it a name.
pub const MODEL_NAME: &str = "rollyard-tiny";

#[derive(Clone)]
pub struct ServeSettings {
    /// What a request has to call the model, if it calls it anything.
    pub model_name: String,
    /// Needed in every request when set; has to be set when others can reach the listener.
    pub api_key: Option<String>,
    /// Folders that weights may be loaded from by `/update_weights_from_disk`.
    pub roots: Vec<PathBuf>,
    pub body_bytes_max: usize,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self { model_name: MODEL_NAME.to_owned(), api_key: None, roots: Vec::new(), body_bytes_max: 8 << 20 }
    }
}

impl std::fmt::Debug for ServeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys end up in logs through Debug.
        let key = self.api_key.as_ref().map(|_| "hidden");
        f.debug_struct("ServeSettings")
            .field("model_name", &self.model_name)
            .field("api_key", &key)
            .field("roots", &self.roots)
            .field("body_bytes_max", &self.body_bytes_max)
            .finish()
    }
}

/// What all requests share.
#[derive(Debug)]
struct App {
    engine: TinyEngine,
    settings: ServeSettings,
    guard: Guard,
    /// Weights are loaded one after another, so that each has a version of its own.
    updates: Semaphore,
    /// Of requests, for their names.
    count: AtomicU64,
    began: SystemTime,
}

impl App {
    /// Unlike that of any other request.
    fn name_request(&self) -> String {
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        format!("{began:x}-{}", self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// Serves until `stopping` is cancelled, then lets what is under way finish.
pub async fn serve(
    listener: TcpListener,
    engine: TinyEngine,
    settings: ServeSettings,
    stopping: CancellationToken,
) -> io::Result<()> {
    let router = router(engine.clone(), settings, listener.local_addr()?);
    // Tokens are small and each is a write of its own: waiting to fill a packet would only delay them.
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!("nodelay: {error}");
        }
    });
    let stopped = stopping.clone().cancelled_owned();
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopped);
    let patience = async {
        stopping.cancelled().await;
        // While the engine is paused nothing ends by itself.
        if !engine.stats().paused {
            tokio::time::sleep(FINISH_WITHIN).await;
        }
        let cut = engine.abort(None).await.unwrap_or_default();
        tracing::warn!("{cut} answers were cut short, because the server stops");
        tokio::time::sleep(SENT_WITHIN).await;
    };
    tokio::select! {
        served = serving => served,
        () = patience => Ok(()),
    }
}

/// All calls, for a listener at this address.
fn router(engine: TinyEngine, settings: ServeSettings, local: SocketAddr) -> Router {
    let limit = DefaultBodyLimit::max(settings.body_bytes_max);
    let guard = Guard::new(settings.api_key.as_deref(), local);
    let (updates, count) = (Semaphore::new(1), AtomicU64::new(0));
    let app = Arc::new(App { engine, settings, guard, updates, count, began: SystemTime::now() });
    Router::new()
        .merge(openai::routes())
        .merge(sglang::routes())
        .fallback(async |uri: Uri| {
            let message = format!("there is no call {}", uri.path());
            answer(&uri, Refusal::new(StatusCode::NOT_FOUND, "not_found", message))
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let message = format!("{} does not take {method}", uri.path());
            answer(&uri, Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message))
        })
        .layer(limit)
        .layer(from_fn_with_state(Arc::clone(&app), admit))
        .with_state(app)
}

async fn admit(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match app.guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => answer(request.uri(), refusal),
    }
}

/// A refusal in the form that the path's clients know.
fn answer(uri: &Uri, refusal: Refusal) -> Response {
    if openai::has(uri.path()) {
        openai::Failure::from(refusal).into_response()
    } else {
        sglang::Failure::from(refusal).into_response()
    }
}

/// One more field of an answer.
fn add(answer: &mut Value, field: &str, value: Value) {
    if let Some(fields) = answer.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
