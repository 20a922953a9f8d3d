//! Brings a request to the owner of its run, and the answer back.
//!
//! While a run has no owner its requests wait. A request is sent again if it cannot have been done (nobody took the
//! connection, or whoever did says that the run is not its own), or if doing it twice is doing it once: questions, and
//! rollouts, which their uid tells apart. A node that gets a forwarded request never forwards it again, so that two
//! nodes that believe in each other do not play ball with it.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::future::BoxFuture;
use rollyard_store::yard::YardError;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

use super::body::{Kept, Passing};
use super::route::{Route, Writes};
use super::{Cluster, Owner};
use crate::App;
use crate::admit::OTHER_CLAIM;
use crate::deliver::Receipt;
use crate::error::{ApiError, MOVED};
use crate::runs::{DEFAULT_RUN, RunError};

/// Says which node sent a request on.
pub(crate) const FORWARDED: &str = "x-rollyard-forwarded";

/// How long a node that does not know a run believes that there is none.
const UNKNOWN_FOR: Duration = Duration::from_millis(250);

/// Between two tries, if nothing is heard.
const PAUSE: Duration = Duration::from_millis(50);

/// Whoever was with an owner for so long has not waited for one.
const WAS_ANSWERED: Duration = Duration::from_secs(1);

/// What is about one connection only, and not to be sent on.
const OF_THE_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What was said to this node, and is nothing to the owner.
const OF_THIS_NODE: [HeaderName; 6] = [
    header::HOST,
    header::AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
    header::EXPECT,
    HeaderName::from_static(FORWARDED),
];

/// Answers a request on this node.
pub(crate) type Here<'a> = &'a (dyn Fn(Request<Body>) -> BoxFuture<'a, Response<Body>> + Send + Sync);

/// What became of forwarded requests.
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    answered: AtomicU64,
    moved: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
}

impl Forwards {
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("answered", count(&self.answered)),
            ("moved", count(&self.moved)),
            ("refused", count(&self.refused)),
            ("lost", count(&self.lost)),
        ]
    }
}

/// What came of one try.
enum Tried {
    Answered(Response<Body>),
    /// It was certainly not done; if nothing better comes, this is the answer.
    Again(Response<Body>),
}

impl Cluster {
    /// Answers a request of a client, here or at the owner of its run.
    pub(crate) async fn dispatch(&self, app: &App, request: Request<Body>, here: Here<'_>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let (parts, body) = match Route::of(request.method(), &path) {
            Route::Local => return here(request).await,
            Route::Gather => return self.gather(request, here).await,
            _ => request.into_parts(),
        };
        let route = Route::of(&parts.method, &path);
        let bytes_max = app.settings.body_bytes_max;
        let writes = Writes::of(&parts.method, &path);
        let is_looked_into = matches!(route, Route::MakeIn(_)) || writes == Some(Writes::One);
        let kept = match Kept::of(body, is_looked_into, bytes_max).await {
            Ok(kept) => kept,
            Err(error) => {
                let message = format!("the body cannot be read: {error}");
                return ApiError::bad("unreadable_body", message).into_response();
            }
        };
        let (run, makes) = match route {
            Route::Run(run) => (run.to_owned(), false),
            Route::Make(run) => (run.to_owned(), true),
            Route::MakeIn(field) => match run_in(&parts.headers, &kept, field) {
                Ok(run) => (run, true),
                Err(refused) => return refused.into_response(),
            },
            Route::Local | Route::Gather => (DEFAULT_RUN.to_owned(), false),
        };
        let is_plain = !parts.headers.contains_key(header::CONTENT_ENCODING) && parts.uri.query().is_none();
        let light = AtomicBool::new(is_plain);
        self.ask_owner(app, Asked { parts, kept, run, makes, writes, light }, here).await
    }

    async fn ask_owner(&self, app: &App, asked: Asked, here: Here<'_>) -> Response<Body> {
        let mut changed = self.changed.subscribe();
        let mut without_owner: Option<Instant> = None;
        loop {
            changed.mark_unchanged();
            let begun = Instant::now();
            let tried = match self.whom_to_ask(&asked).await {
                Owner::Here => judge(here(asked.request()).await),
                Owner::There { node, url, claim } => {
                    let outgoing = self.body(app, &asked, claim).await;
                    self.send(&asked, outgoing, &node, &url, &mut changed).await
                }
                Owner::Nobody => {
                    let error = ApiError::from(RunError::NoOwner { run: asked.run.clone() });
                    Tried::Again(error.into_response())
                }
            };
            let response = match tried {
                Tried::Answered(response) => return response,
                Tried::Again(response) => response,
            };
            if begun.elapsed() > WAS_ANSWERED {
                without_owner = None;
            }
            let since = *without_owner.get_or_insert(begun);
            let is_over = since.elapsed() >= self.timing.owner_within || app.stopping.is_cancelled();
            if is_over || !asked.kept.is_there() {
                return response;
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep(PAUSE) => {}
                () = app.stopping.cancelled() => {}
            }
        }
    }

    async fn whom_to_ask(&self, asked: &Asked) -> Owner {
        if let Some(owner) = self.owner(&asked.run) {
            return owner;
        }
        // It may have been made a moment ago.
        self.discover(UNKNOWN_FOR).await;
        match self.owner(&asked.run) {
            Some(owner) => owner,
            None if asked.makes => self.register().preferred(&asked.run, Instant::now()),
            // Whoever answers says that there is no such run.
            None => Owner::Here,
        }
    }

    /// What is sent to the owner: large rollouts stay behind where blobs are kept. `None` if it went already.
    async fn body(&self, app: &App, asked: &Asked, claim: Option<u64>) -> Option<reqwest::Body> {
        let (Some(claim), Some(writes), true) = (claim, asked.writes, asked.light.load(Ordering::Relaxed))
        else {
            return asked.kept.outgoing();
        };
        if let Some(bytes) = asked.kept.bytes() {
            return Some(self.lighten(&asked.run, claim, writes, bytes.clone()).await.into());
        }
        if writes == Writes::One {
            // Too large for anybody: its owner says so.
            return asked.kept.outgoing();
        }
        let body = asked.kept.body()?;
        let line_bytes_max = app.settings.body_bytes_max;
        let body = self.lighten_passing(&asked.run, claim, body, line_bytes_max).await;
        Some(reqwest::Body::wrap(Passing::of(body)))
    }

    async fn send(
        &self,
        asked: &Asked,
        outgoing: Option<reqwest::Body>,
        node: &str,
        url: &str,
        changed: &mut watch::Receiver<()>,
    ) -> Tried {
        let Some(body) = outgoing else {
            return Tried::Answered(lost(node).into_response());
        };
        let path = asked.parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = self.http.request(asked.parts.method.clone(), format!("{url}{path}"));
        let mut headers = self.outgoing(&asked.parts.headers);
        if asked.writes.is_some() {
            // It may have become shorter.
            headers.remove(header::CONTENT_LENGTH);
        }
        let request = request.headers(headers).body(body);
        let answer = tokio::select! {
            answer = request.send() => answer,
            // Whoever is paused for good keeps its connections open.
            () = self.owned_by_another(&asked.run, node, changed) => {
                self.forwards.lost.fetch_add(1, Ordering::Relaxed);
                return asked.again_if_harmless(lost(node));
            }
        };
        match answer {
            Ok(answer) => {
                let response: Response<reqwest::Body> = answer.into();
                let mut response = response.map(Body::new);
                strip(response.headers_mut());
                if response.status() == StatusCode::UNAUTHORIZED {
                    return Tried::Answered(wrong_token(node).into_response());
                }
                if let Some(receipt) = Receipt::take_from(response.headers_mut(), &asked.run) {
                    response.extensions_mut().insert(receipt);
                }
                if response.headers().get(MOVED).is_some_and(|why| why == OTHER_CLAIM) {
                    // What is known here of the owner is old.
                    asked.light.store(false, Ordering::Relaxed);
                }
                let tried = judge(response);
                let counter = match &tried {
                    Tried::Answered(_) => &self.forwards.answered,
                    Tried::Again(_) => &self.forwards.moved,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                tried
            }
            Err(error) if error.is_connect() => {
                self.forwards.refused.fetch_add(1, Ordering::Relaxed);
                let message = format!("node {node}, which owns the run, cannot be reached: {url}");
                let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "owner_unreachable", message);
                Tried::Again(error.into_response())
            }
            Err(error) => {
                self.forwards.lost.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(node, "a forwarded request was lost: {error}");
                asked.again_if_harmless(lost(node))
            }
        }
    }

    /// Until somebody else than `node` is known to own the run.
    async fn owned_by_another(&self, run: &str, node: &str, changed: &mut watch::Receiver<()>) {
        loop {
            // The sender is as old as this node.
            let _heard = changed.changed().await;
            match self.owner(run) {
                Some(Owner::Here) => return,
                Some(Owner::There { node: now, .. }) if now != node => return,
                _ => {}
            }
        }
    }

    pub(super) fn outgoing(&self, headers: &HeaderMap) -> HeaderMap {
        let mut headers = headers.clone();
        strip(&mut headers);
        for name in &OF_THIS_NODE {
            headers.remove(name);
        }
        let node = HeaderValue::from_str(&self.register().me.node);
        headers.extend(node.ok().map(|node| (HeaderName::from_static(FORWARDED), node)));
        headers
    }

    /// Asks the owner of a run, which is another node, something of this node's own. Tries once.
    pub(crate) async fn call(
        &self,
        run: &str,
        method: Method,
        path: &str,
        body: bytes::Bytes,
    ) -> Result<(StatusCode, bytes::Bytes), String> {
        let Some(Owner::There { node, url, .. }) = self.owner(run) else {
            return Err(RunError::NoOwner { run: run.to_owned() }.to_string());
        };
        let request = self.http.request(method, format!("{url}{path}"));
        let request = request.headers(self.outgoing(&HeaderMap::new())).body(body).timeout(CALLED_WITHIN);
        let unreachable = |error: reqwest::Error| format!("node {node} does not answer: {error}: {url}");
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        Ok((status, answer.bytes().await.map_err(unreachable)?))
    }
}

impl Cluster {
    /// Turns the knobs of a run that another node has.
    pub(crate) async fn configure(&self, run: &str, changes: &Map<String, Value>) -> Result<(), RunError> {
        let (path, body) = (format!("/api/runs/{run}"), Value::Object(changes.clone()).to_string());
        let failed = |why| RunError::Yard { run: run.to_owned(), cause: YardError::State(why) };
        let (status, said) = self.call(run, Method::PATCH, &path, body.into()).await.map_err(failed)?;
        let said = || format!("its owner answers {status}: {}", String::from_utf8_lossy(&said));
        if status.is_success() { Ok(()) } else { Err(failed(said())) }
    }
}

/// For calls between nodes, whose answers are short.
const CALLED_WITHIN: Duration = Duration::from_secs(10);

/// A request that can be sent again.
struct Asked {
    parts: Parts,
    kept: Kept,
    run: String,
    makes: bool,
    writes: Option<Writes>,
    /// Whether references may go in place of large rollouts.
    light: AtomicBool,
}

impl Asked {
    fn request(&self) -> Request<Body> {
        Request::from_parts(self.parts.clone(), self.kept.body().unwrap_or_default())
    }

    /// What was asked may have been done: it is asked again only if twice is once.
    fn again_if_harmless(&self, error: ApiError) -> Tried {
        let is_harmless = matches!(self.parts.method, Method::GET | Method::HEAD) || self.writes.is_some();
        let response = error.into_response();
        if is_harmless { Tried::Again(response) } else { Tried::Answered(response) }
    }
}

/// Whether an answer says that the run is somebody else's.
fn judge(response: Response<Body>) -> Tried {
    let is_moved =
        response.status() == StatusCode::SERVICE_UNAVAILABLE && response.headers().contains_key(MOVED);
    if is_moved { Tried::Again(response) } else { Tried::Answered(response) }
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_THE_CONNECTION) {
        headers.remove(name);
    }
}

/// The run that a body names.
fn run_in(headers: &HeaderMap, kept: &Kept, field: &'static str) -> Result<String, ApiError> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        let message = "the run is named in the body, which is packed; send it as plain JSON";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "packed_body", message));
    }
    let body = kept.bytes().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    // What is wrong with it is said by whoever answers, which may be any node.
    Ok(match body.as_ref().and_then(|body| body.get(field)) {
        Some(Value::String(run)) => run.clone(),
        _ => DEFAULT_RUN.to_owned(),
    })
}

fn lost(node: &str) -> ApiError {
    let message = format!(
        "node {node} went away before it answered: what was asked may have been done; ask again, writing twice is once"
    );
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "owner_lost", message)
}

fn wrong_token(node: &str) -> ApiError {
    let message =
        format!("node {node} refuses the token of this one; start all nodes with the same --token-file");
    ApiError::new(StatusCode::BAD_GATEWAY, "tokens_differ", message)
}
