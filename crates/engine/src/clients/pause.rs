//! Interrupts what is under way, so that the weights can change.
//!
//! When a pause is over with, nothing of this engine runs on any server, and nothing new is sent. So no
//! token is sampled with weights other than those its version says. A server that cannot interrupt finishes
//! what it has, and the pause lasts until it did.

use reqwest::Method;
use std::sync::Arc;
use std::time::Duration;

use super::HttpEngine;
use super::ask::Origin;
use super::config::Dialect;
use super::http::Failure;
use super::server::Server;
use crate::generate::EngineError;

/// A request can be on its way while its server is told to abort; so it is told again until all have ended.
const TELL_AGAIN: Duration = Duration::from_millis(250);
const WITHIN: Duration = Duration::from_secs(10);

impl HttpEngine {
    pub(super) async fn pause_servers(&self) {
        self.line.gate.close();
        loop {
            let idle = self.line.fleet.idle().notified();
            if self.line.fleet.in_flight() == 0 {
                return;
            }
            let busy = self.line.fleet.servers().iter().filter(|server| server.in_flight() > 0);
            futures_util::future::join_all(busy.map(|server| self.abort_all(server))).await;
            if self.line.gate.is_open() {
                return; // Resumed meanwhile: there is no pause to wait for.
            }
            let _told = tokio::time::timeout(TELL_AGAIN, idle).await;
        }
    }

    /// Waits after an interruption that brought nothing. While the engine is paused that is as it should be.
    pub(super) async fn wait_out(&self, stalls: &mut u32, origin: &Origin) -> Result<(), EngineError> {
        if !self.line.gate.is_open() {
            return Ok(());
        }
        *stalls += 1;
        if *stalls > self.config.stalls_max {
            return Err(EngineError::Interrupted { times: *stalls, url: origin.url().to_owned() });
        }
        tokio::time::sleep(self.config.backoff().after(*stalls)).await;
        Ok(())
    }

    async fn abort_all(&self, server: &Arc<Server>) {
        let outcome = match self.config.dialect {
            Dialect::Sglang => self.tell(server, "abort_request", r#"{"abort_all": true}"#).await,
            Dialect::Vllm => self.abort_all_of_vllm(server).await,
            Dialect::Openai => return,
        };
        match outcome {
            Ok(()) => {}
            Err(EngineError::Refused { status: 404 | 405, .. }) => {
                tracing::debug!(url = %server.base, "this server cannot interrupt; it finishes what it has");
            }
            Err(error) => tracing::warn!(%error, "a server was not told to interrupt"),
        }
    }

    /// Older servers have no call that only aborts, but one that aborts and pauses.
    async fn abort_all_of_vllm(&self, server: &Server) -> Result<(), EngineError> {
        match self.tell(server, "abort_requests", "{}").await {
            Err(EngineError::Refused { status: 404 | 405, .. }) => {
                self.tell(server, "pause?mode=abort&clear_cache=false", "").await?;
                self.tell(server, "resume", "").await
            }
            told => told,
        }
    }

    async fn tell(&self, server: &Server, path: &str, body: &'static str) -> Result<(), EngineError> {
        let url = server.path(path)?;
        let told = self.line.http.ask(Method::POST, &url, body, WITHIN).await;
        told.map(drop).map_err(|Failure { error, .. }| error)
    }
}
