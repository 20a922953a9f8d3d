//! The loop that accepts connections, and the way out of it.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, header};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;
use tower::{Layer, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::decompression::RequestDecompressionLayer;

use crate::App;
use crate::cluster::{FORWARDED, Settler};
use crate::connection::{Watch, WatchedStream};
use crate::deliver::{FollowedBody, Receipt};
use crate::guard::Guard;
use crate::metrics::Call;
use crate::settings::CompressAnswers;

/// A connection that has not sent its headers by then is closed.
const HEADERS_WITHIN: Duration = Duration::from_secs(30);

/// How long answers that are under way may take once the server is told to stop.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

/// Serves until `app.stopping` is cancelled, then lets what is under way finish.
pub async fn serve(listener: TcpListener, app: App) -> io::Result<()> {
    let stopping = app.stopping.clone();
    let tasks = TaskTracker::new();
    let graceful = GracefulShutdown::new();
    let local = listener.local_addr()?;
    let generators = Arc::clone(&app.generators);
    generators.begin(local, &app.runs);
    tasks.spawn(Arc::clone(&app.views).begin());
    let views = Arc::clone(&app.views);
    if let Some(cluster) = &app.cluster {
        tasks.spawn(Arc::clone(cluster).keep(app.clone()));
    }
    tasks.spawn(Arc::clone(&app.live).watch(Arc::clone(&app.runs), stopping.clone()));
    if let Some(gateway) = &app.gateway {
        tasks.spawn(Arc::clone(gateway).keep_order(stopping.clone()));
    }
    let guard = Arc::new(Guard::new(&app.settings, local));
    let settler = app.cluster.clone().map(|cluster| Settler { cluster, runs: Arc::clone(&app.runs) });
    let leaving = app.clone();
    let handler = Handler { router: app.clone().router(&guard), guard, app, settler, tasks: tasks.clone() };
    let handler = Arc::new(handler);
    loop {
        let socket = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of descriptors, most likely: those connected go on, newcomers wait.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = stopping.cancelled() => break,
        };
        tasks.spawn(connection(socket, Arc::clone(&handler), &graceful));
    }
    drop(listener);
    if tokio::time::timeout(FINISH_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("some answers were still under way after {FINISH_WITHIN:?}; their leases go back");
    }
    tasks.close();
    if tokio::time::timeout(FINISH_WITHIN, tasks.wait()).await.is_err() {
        tracing::warn!("some leases could not be settled in time; they go back when they expire");
    }
    if tokio::time::timeout(FINISH_WITHIN, views.end()).await.is_err() {
        tracing::warn!("some files were still being read after {FINISH_WITHIN:?}");
    }
    if tokio::time::timeout(FINISH_WITHIN, generators.end()).await.is_err() {
        tracing::warn!("some generators did not end in time, and are killed");
    }
    if let Some(cluster) = &leaving.cluster {
        cluster.leave(&leaving).await;
    }
    Ok(())
}

fn connection(
    socket: TcpStream,
    handler: Arc<Handler>,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + use<> {
    // Answers are small and each is one write: waiting to fill a packet would only delay them.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!("nodelay: {error}");
    }
    let (stream, watch) = WatchedStream::new(socket);
    let service = service_fn(move |request| {
        let (handler, watch) = (Arc::clone(&handler), Arc::clone(&watch));
        async move { Ok::<_, Infallible>(handler.handle(request, watch).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended: {error}");
        }
    }
}

#[derive(Debug)]
struct Handler {
    app: App,
    guard: Arc<Guard>,
    router: Router,
    /// Brings acks to other nodes, if there are any.
    settler: Option<Settler>,
    tasks: TaskTracker,
}

impl Handler {
    async fn handle(&self, request: Request<Incoming>, watch: Arc<Watch>) -> Response<Body> {
        let started = Instant::now();
        let request_no = watch.begin_request();
        let call = Call::of(request.method(), request.uri().path());
        let is_forwarded = self.is_forwarded(request.headers(), &watch);
        let mut response = match self.guard.check(request.method(), request.uri(), request.headers()) {
            Ok(()) => self.answer(request.map(Body::new), &watch, is_forwarded).await,
            Err(refused) => refused.into_response(),
        };
        self.app.metrics.count(call, response.status(), started.elapsed());
        if let Some(mut receipt) = response.extensions_mut().remove::<Receipt>() {
            if is_forwarded {
                receipt.hand_on(response.headers_mut());
            }
            let (tasks, settler) = (self.tasks.clone(), self.settler.clone());
            return response.map(|body| {
                Body::new(FollowedBody::new(body, receipt, (watch, request_no), tasks, settler))
            });
        }
        response
    }

    /// Whether another node of the cluster sent the request on. Where there is a token it has to bring it; where there
    /// is none, it stands on this machine.
    fn is_forwarded(&self, headers: &HeaderMap, watch: &Watch) -> bool {
        self.app.cluster.is_some()
            && headers.contains_key(FORWARDED)
            && if self.guard.needs_token() { self.guard.brings_token(headers) } else { watch.is_loopback() }
    }

    /// Here, or at the node that owns the run.
    async fn answer(&self, request: Request<Body>, watch: &Watch, is_forwarded: bool) -> Response<Body> {
        match &self.app.cluster {
            Some(cluster) if !is_forwarded => {
                let here = |request| self.route(request, watch).boxed();
                cluster.dispatch(&self.app, request, &here).await
            }
            _ => self.route(request, watch).await,
        }
    }

    async fn route(&self, request: Request<Body>, watch: &Watch) -> Response<Body> {
        let compress = match self.app.settings.compress_answers {
            CompressAnswers::Never => false,
            CompressAnswers::Always => true,
            CompressAnswers::Remote => !watch.is_loopback(),
        };
        let (packed, compress) = {
            let has = |name| request.headers().contains_key(name);
            (has(header::CONTENT_ENCODING), compress && has(header::ACCEPT_ENCODING))
        };
        // A layer costs time on every request, so each is put on only where it has something to do.
        let router = self.router.clone();
        let answered = match (packed, compress) {
            (false, false) => router.oneshot(request).await,
            (true, false) => unpack(router, request).await,
            (false, true) => CompressionLayer::new()
                .quality(CompressionLevel::Fastest)
                .layer(router)
                .oneshot(request)
                .await
                .map(IntoResponse::into_response),
            (true, true) => {
                let unpacking = tower::service_fn(move |request| unpack(router.clone(), request));
                CompressionLayer::new()
                    .quality(CompressionLevel::Fastest)
                    .layer(unpacking)
                    .oneshot(request)
                    .await
                    .map(IntoResponse::into_response)
            }
        };
        answered.unwrap_or_else(|never| match never {})
    }
}

async fn unpack(router: Router, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let answered = RequestDecompressionLayer::new().layer(router).oneshot(request).await;
    Ok(answered.map(|response| response.map(Body::new)).unwrap_or_else(IntoResponse::into_response))
}
