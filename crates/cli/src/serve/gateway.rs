//! Makes of the settings what the gateway takes: asks the engine what it speaks.

use anyhow::{Context, Result, bail};
use rollyard_core::run_config::RunConfig;
use rollyard_engine::clients::{Dialect, EngineConfig, HttpEngine, find_dialect};
use rollyard_server::GateSettings;
use std::sync::Arc;

use crate::settings::{GatewayServing, Serving};

pub(super) async fn settings(serving: &Serving) -> Result<Option<GateSettings>> {
    let Some(gateway) = &serving.gateway else { return Ok(None) };
    let (Some(dir), Some(tokenizer)) = (&serving.tokenizer, &serving.server.tokenizer) else {
        return Ok(None);
    };
    let GatewayServing { urls, dialect, key, model, aliases, context_tokens, grammar, gateway } =
        gateway.clone();
    let mut config = EngineConfig { urls, api_key: key, ..EngineConfig::default() };
    config.dialect = match dialect {
        Some(dialect) => dialect,
        None => find_dialect(&config)
            .await
            .context("cannot find out what the engine speaks; give --engine-dialect")?,
    };
    if config.dialect == Dialect::Openai {
        bail!(
            "the engine speaks only OpenAI's dialect, which has no token ids; the gateway records to the token and \
             needs SGLang or vLLM: {}",
            config.urls.join(", ")
        );
    }
    let folder = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let folder =
        folder.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned());
    let knobs = RunConfig::default().patched(&serving.knobs)?;
    Ok(Some(GateSettings {
        engine: Arc::new(HttpEngine::new(config)?),
        tokenizer: Arc::clone(tokenizer),
        model: model.unwrap_or(folder),
        aliases,
        context_tokens,
        grammar,
        // As the default run is kept.
        durability: knobs.durability,
        gateway,
    }))
}
