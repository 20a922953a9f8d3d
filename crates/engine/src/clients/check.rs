//! Finds out what a server can do, by asking it.
//!
//! A run that trains on wrong tokens looks like one that trains on right ones. So before the first, one short
//! generation shows what comes back, and each thing that is missing is named with what to do about it.

use reqwest::Method;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

use super::answer::Flaw;
use super::ask::Call;
use super::config::{Dialect, EngineConfig};
use super::http::{Failure, Wire};
use super::server::Server;
use super::{HttpEngine, openai, read_answer, sglang, vllm};
use crate::generate::{EngineError, GenerationConfig};

/// Small enough for any vocabulary.
const PROMPT: [i32; 3] = [1, 2, 3];
const TOKENS: u32 = 4;
const TEXT_ONLY: &str = "serve the model with SGLang or vLLM to train on exact tokens";

/// What was found out about a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub url: String,
    pub dialect: Dialect,
    pub model: String,
    /// What is trained on is what was sampled: token ids both ways, with their log-probs.
    pub exact: bool,
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub found: bool,
    /// What was seen, or what to do to see it.
    pub detail: String,
}

/// What came back of one generation.
#[derive(Debug, Default)]
struct Seen {
    token_ids: Option<usize>,
    logprobs: bool,
    version: Option<i32>,
}

/// Asks the one server in `config`. Its dialect is found out unless `dialect` says it.
pub async fn check(config: EngineConfig, dialect: Option<Dialect>) -> Result<Report, EngineError> {
    let dialect = match dialect {
        Some(dialect) => dialect,
        None => find_dialect(&config).await?,
    };
    let asks = HttpEngine::new(EngineConfig { attempts: 1, dialect, ..config })?;
    let server = asks.line.fleet.servers().first().ok_or(EngineError::Closed)?;
    let model = asks.model().await?.to_string();
    let seen =
        if dialect.speaks_tokens() { asks.try_tokens(&model).await? } else { asks.try_chat(&model).await? };
    let findings = vec![
        token_ids_in(dialect),
        token_ids_out(dialect, &seen),
        logprobs(dialect, &seen),
        versions(dialect, &seen),
        asks.find_abort(server).await,
    ];
    let exact = seen.token_ids.is_some() && seen.logprobs;
    Ok(Report { url: server.status().url, dialect, model, exact, findings })
}

/// How the first server in `config` is spoken to.
pub async fn find_dialect(config: &EngineConfig) -> Result<Dialect, EngineError> {
    let asks = HttpEngine::new(EngineConfig { attempts: 1, ..config.clone() })?;
    asks.find_dialect(asks.line.fleet.servers().first().ok_or(EngineError::Closed)?).await
}

impl HttpEngine {
    /// By calls that only the one or the other has.
    async fn find_dialect(&self, server: &Arc<Server>) -> Result<Dialect, EngineError> {
        for (path, dialect) in [
            ("get_model_info", Dialect::Sglang),
            ("model_info", Dialect::Sglang),
            ("version", Dialect::Vllm),
            ("v1/models", Dialect::Openai),
        ] {
            match self.get(server, path).await {
                Ok(()) => return Ok(dialect),
                Err(error @ EngineError::Refused { status: 401 | 403, .. }) => return Err(error),
                Err(EngineError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(EngineError::BadAnswer {
            reason: "it knows none of /get_model_info (SGLang), /version (vLLM) and /v1/models".into(),
            url: server.base.to_string(),
        })
    }

    async fn try_tokens(&self, model: &str) -> Result<Seen, EngineError> {
        let gconfig = GenerationConfig { max_new_tokens: TOKENS, ..GenerationConfig::default() };
        let question = |rid: &str| match self.config.dialect {
            Dialect::Sglang => sglang::question(rid, &PROMPT, &gconfig, Wire::Whole),
            Dialect::Vllm | Dialect::Openai => vllm::question(rid, model, &PROMPT, 0, &gconfig, Wire::Whole),
        };
        let mut names = self.name_request(String::new());
        let reply = self.line.ask(Call::Tokens, &mut names, None, question).await?;
        let loose = read_answer(self.config.dialect, &reply.bytes, false)
            .map_err(|flaw| reply.origin.refuse(flaw))?;
        let mut seen = Seen { version: loose.version, ..Seen::default() };
        match read_answer(self.config.dialect, &reply.bytes, true) {
            Ok(piece) => {
                seen.token_ids = piece.tokens.map(|tokens| tokens.ids.len());
                seen.logprobs = true;
            }
            // Which of the two it lacks; the ids are looked for first.
            Err(Flaw::NotExact { what: "log-probs", .. }) => seen.token_ids = Some(TOKENS as usize),
            Err(_) => {}
        }
        Ok(seen)
    }

    async fn try_chat(&self, model: &str) -> Result<Seen, EngineError> {
        let gconfig = GenerationConfig { max_new_tokens: TOKENS, ..GenerationConfig::default() };
        let hello = serde_json::value::to_raw_value(&serde_json::json!({"role": "user", "content": "Hello"}));
        let messages = [hello.map_err(|error| EngineError::BadRequest(error.to_string()))?];
        let mut names = self.name_request(String::new());
        let question = |_: &str| openai::question(model, &messages, None, &gconfig);
        let reply = self.line.ask(Call::Chat, &mut names, None, question).await?;
        let said = openai::answer(&reply.bytes).map_err(|flaw| reply.origin.refuse(flaw))?;
        Ok(Seen { version: said.version, ..Seen::default() })
    }

    async fn find_abort(&self, server: &Arc<Server>) -> Finding {
        let (path, can) = match self.config.dialect {
            // The name of no request: nothing is aborted.
            Dialect::Sglang => {
                let body = r#"{"rid": "rollyard-engine-check"}"#;
                ("/abort_request", self.call(server, Method::POST, "abort_request", body).await.is_ok())
            }
            Dialect::Vllm => ("/pause", self.get(server, "is_paused").await.is_ok()),
            Dialect::Openai => ("", false),
        };
        let detail = match (self.config.dialect, can) {
            (_, true) => format!("by {path}"),
            (Dialect::Vllm, false) => {
                "start vLLM with VLLM_SERVER_DEV_MODE=1; else a pause waits for answers".into()
            }
            (_, false) => "a pause waits until answers that are under way are complete".into(),
        };
        Finding { what: "abort", found: can, detail }
    }

    async fn get(&self, server: &Arc<Server>, path: &str) -> Result<(), EngineError> {
        self.call(server, Method::GET, path, "").await
    }

    async fn call(
        &self,
        server: &Arc<Server>,
        method: Method,
        path: &str,
        body: &'static str,
    ) -> Result<(), EngineError> {
        let answer = self.line.http.ask(method, &server.path(path)?, body, Duration::from_secs(10)).await;
        answer.map(drop).map_err(|Failure { error, .. }| error)
    }
}

fn token_ids_in(dialect: Dialect) -> Finding {
    let found = dialect.speaks_tokens();
    let detail =
        if found { format!("a prompt of {} tokens was taken", PROMPT.len()) } else { TEXT_ONLY.into() };
    Finding { what: "token ids in", found, detail }
}

fn token_ids_out(dialect: Dialect, seen: &Seen) -> Finding {
    let detail = match (seen.token_ids, dialect) {
        (Some(count), _) => format!("{count} tokens came back"),
        (None, Dialect::Vllm) => "use vLLM 0.10.2 or later, which knows `return_token_ids`".into(),
        (None, Dialect::Sglang) => "is this SGLang? its answer has neither output_ids nor log-probs".into(),
        (None, Dialect::Openai) => TEXT_ONLY.into(),
    };
    Finding { what: "token ids out", found: seen.token_ids.is_some(), detail }
}

fn logprobs(dialect: Dialect, seen: &Seen) -> Finding {
    let detail = match (seen.logprobs, dialect) {
        (true, _) => "one for each token".into(),
        (false, Dialect::Vllm) => {
            "start vLLM without --max-logprobs 0, and without a proxy that drops them".into()
        }
        (false, Dialect::Sglang) => "is there a proxy in between that drops them?".into(),
        (false, Dialect::Openai) => TEXT_ONLY.into(),
    };
    Finding { what: "log-probs", found: seen.logprobs, detail }
}

fn versions(dialect: Dialect, seen: &Seen) -> Finding {
    let detail = match (seen.version, dialect) {
        (Some(version), _) => format!("it sampled with version {version}"),
        (None, Dialect::Sglang) => {
            "send a whole number as `weight_version` with each update of the weights".into()
        }
        (None, _) => "pause before each update and set the version; then the pinned one is right".into(),
    };
    Finding { what: "weight versions", found: seen.version.is_some(), detail }
}
