//! Tells a server that nobody waits for an answer any more.
//!
//! Dropping the future closes the connection, and vLLM notices that. SGLang looks at the connection only now
//! and then and computes on until it does, so it is told.

use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::http::Http;
use super::server::Server;

/// When a thousand episodes are cancelled at once, so many servers' calls are under way; the others rely on
/// the closed connection.
const AT_ONCE: usize = 64;
const WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) struct Canceller {
    http: Http,
    places: Arc<Semaphore>,
}

impl Canceller {
    pub(super) fn new(http: Http) -> Self {
        Self { http, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Aborts the request when dropped, unless it was answered.
    pub(super) fn guard(&self, server: Arc<Server>, rid: String) -> Guard {
        Guard { canceller: self.clone(), runtime: Handle::current(), request: Some((server, rid)) }
    }
}

#[derive(Debug)]
pub(super) struct Guard {
    canceller: Canceller,
    runtime: Handle,
    request: Option<(Arc<Server>, String)>,
}

impl Guard {
    pub(super) fn answered(&mut self) {
        self.request = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some((server, rid)) = self.request.take() else { return };
        let Ok(url) = server.path("abort_request") else { return };
        let Ok(place) = Arc::clone(&self.canceller.places).try_acquire_owned() else { return };
        let http = self.canceller.http.clone();
        self.runtime.spawn(async move {
            let body = super::json(&serde_json::json!({ "rid": rid }));
            if let Ok(Err(failure)) = tokio::time::timeout(WITHIN, http.post(&url, body)).await {
                tracing::debug!(error = %failure.error, "a cancelled request could not be aborted");
            }
            drop(place);
        });
    }
}
