//! Engines that are asked over HTTP: SGLang, vLLM, and whatever speaks OpenAI's chat completions.
//!
//! [`HttpEngine`] is all of them; the dialect says how they are spoken to. A request goes through [`tokens`]
//! or [`chat`], which put an answer together, of whole answers or of a [`stream`] of [`events`]; [`ask`] gets each piece of it out of the [`fleet`] of servers,
//! in the words of [`sglang`], [`vllm`] or [`openai`]. [`pause`] interrupts what is under way, and [`check`]
//! finds out what a server can do.

mod config;
mod request;

mod chat;
mod draft;
mod tokens;

mod answer;
mod events;
mod ids;
mod openai;
mod seed;
mod sglang;
mod stream;
mod vllm;

mod affinity;
mod ask;
pub(crate) mod backoff;
mod cancel;
mod fleet;
mod gate;
mod http;
mod pause;
mod server;
mod version;

mod check;

pub use answer::{End, Flaw, Piece, Tokens};
pub use check::{Finding, Report, check, find_dialect};
pub use config::{Dialect, EngineConfig};
pub use server::ServerStatus;
pub use stream::read_stream;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OnceCell;

use crate::generate::{Capabilities, Engine, EngineError, Listener, ModelRequest, ModelResponse, Prompt};
use ask::{Call, Line, Names};

/// One engine: a server, or several with the same weights.
#[derive(Debug)]
pub struct HttpEngine {
    config: EngineConfig,
    line: Line,
    model: OnceCell<Arc<str>>,
    /// Tells requests of this engine from those of another one that uses the same servers.
    name: String,
    requests: AtomicU64,
}

impl HttpEngine {
    /// Nothing is sent yet.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        config.check()?;
        let line = Line::new(&config)?;
        let model = OnceCell::new_with(config.model.as_deref().map(Arc::from));
        Ok(Self { config, line, model, name: unique_name(), requests: AtomicU64::new(0) })
    }

    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// How each server fares.
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.line.fleet.status()
    }

    /// As configured, or the first that the servers list; asked once.
    pub async fn model(&self) -> Result<Arc<str>, EngineError> {
        self.model.get_or_try_init(|| self.ask_model()).await.cloned()
    }

    async fn ask_model(&self) -> Result<Arc<str>, EngineError> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
        }
        let mut names = Names::new(String::new());
        let reply = self.line.ask(Call::Models, &mut names, None, |_| Vec::new()).await?;
        let models: Models =
            serde_json::from_slice(&reply.bytes).map_err(|error| reply.origin.refuse(error.into()))?;
        let first = models.data.into_iter().next();
        let first = first.ok_or_else(|| reply.origin.refuse(Flaw::Bad("it lists no model".into())))?;
        Ok(first.id.into())
    }

    /// A chat has no tokens to tell of.
    async fn generate_for(
        &self,
        request: ModelRequest,
        listener: Option<Listener<'_>>,
    ) -> Result<ModelResponse, EngineError> {
        request::check(&request)?;
        let ModelRequest { rid, prompt, gconfig, session, metadata: _ } = request;
        let session = session.as_deref();
        let names = self.name_request(rid);
        match prompt {
            Prompt::Tokens(tokens) => self.generate_tokens(names, tokens, gconfig, session, listener).await,
            Prompt::Chat { messages, tools } => {
                self.generate_chat(names, &messages, tools.as_deref(), &gconfig, session).await
            }
        }
    }

    fn name_request(&self, rid: String) -> Names {
        if !rid.is_empty() {
            return Names::new(rid);
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        Names::new(format!("{}-{number:010}", self.name))
    }
}

impl Engine for HttpEngine {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>> {
        self.generate_for(request, None).boxed()
    }

    fn generate_told<'a>(
        &'a self,
        request: ModelRequest,
        listener: Listener<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, EngineError>> {
        self.generate_for(request, Some(listener)).boxed()
    }

    fn capabilities(&self) -> Capabilities {
        let token_ids = self.config.dialect.speaks_tokens();
        Capabilities { token_ids, logprobs: token_ids, versions: self.config.dialect == Dialect::Sglang }
    }

    fn version(&self) -> i32 {
        self.line.version.get()
    }

    fn set_version(&self, version: i32) {
        self.line.version.set(version);
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.pause_servers().map(Ok).boxed()
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.line.gate.open();
        std::future::ready(Ok(())).boxed()
    }
}

/// Reads an answer to a request in token ids, as the client does.
pub fn read_answer(dialect: Dialect, bytes: &[u8], exact: bool) -> Result<Piece, Flaw> {
    match dialect {
        Dialect::Sglang => sglang::answer(bytes, exact),
        Dialect::Vllm => vllm::answer(bytes, exact),
        Dialect::Openai => {
            let openai::Said { text, end, version, .. } = openai::answer(bytes)?;
            Ok(Piece { tokens: None, text, end, version })
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings, numbers and JSON that was read before can be written")
}

/// Unlike that of any other process, and of any other engine in this one.
pub(crate) fn unique_name() -> String {
    static ENGINES: AtomicU64 = AtomicU64::new(0);
    let engine = ENGINES.fetch_add(1, Ordering::Relaxed);
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("ry-{:x}-{:x}-{engine}", std::process::id(), since_epoch.as_nanos())
}
