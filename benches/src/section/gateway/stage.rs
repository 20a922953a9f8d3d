//! Who takes part: an engine in this process, and a gateway in one of its own.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use rollyard_test_engine::{Dialects, Settings, TestEngine};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::wire::Wire;
use crate::server::Server;
use crate::setup::Setup;

const FIXTURES: &str = "crates/core/tests/fixtures";

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) engine: TestEngine,
    pub(super) gateway: Server,
    _model: TempDir,
}

/// A session of the gateway.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) key: String,
}

impl Stage {
    pub(super) fn set(setup: &Setup, runtime: &Runtime) -> Result<Self> {
        // Ids that are one character each, and no end before the limit: every stream is as long as every other.
        let settings = Settings {
            dialects: Dialects::All,
            vocabulary: 90,
            streams_what_is_new: true,
            ..Settings::default()
        };
        let engine = runtime.block_on(TestEngine::listen("127.0.0.1:0".parse()?, settings))?;
        let model = tempfile::tempdir()?;
        for (from, to) in [
            ("tokens/chatml/tokenizer.json", "tokenizer.json"),
            ("templates/chatml.jinja", "chat_template.jinja"),
        ] {
            let from = PathBuf::from(FIXTURES).join(from);
            std::fs::copy(&from, model.path().join(to))
                .with_context(|| format!("run it at the root: {}", from.display()))?;
        }
        let path = model.path().display().to_string();
        let flags = [
            "--engine",
            &engine.url(),
            "--engine-dialect",
            "sglang",
            "--tokenizer",
            &path,
            "--model-alias",
            "*",
            "--context-tokens",
            "1000000",
            "--max-sessions",
            "20000",
            "--log-level",
            "warn",
        ];
        let gateway = setup.start_rollyard_with(&flags.map(str::to_owned))?;
        Ok(Self { engine, gateway, _model: model })
    }

    pub(super) fn engine_address(&self) -> SocketAddr {
        self.engine.address()
    }

    pub(super) async fn open(&self, wire: &mut Wire) -> Result<Session> {
        let body = json!({"budget": {"turns": 1_000_000, "tokens": 1_000_000_000, "secs": 3600}}).to_string();
        let answer = wire.call("POST", "/api/sessions", "", &body).await?;
        let opened: Value = serde_json::from_slice(&answer.body)?;
        let text = |name: &str| opened.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Session { id: text("session").context("no session")?, key: text("api_key").context("no key")? })
    }
}
