//! The settings of the gateway, once they are picked.

use rollyard_engine::clients::Dialect;
use rollyard_engine::executor::Pace;
use std::num::NonZeroU32;

use super::SettingsError;
use super::resolve::Picked;

/// What `rollyard serve` is told about agents. The engine is asked and the tokenizer read when it starts.
#[derive(Clone, Debug)]
pub(crate) struct GatewayServing {
    pub(crate) urls: Vec<String>,
    /// Asked for where it is not given.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) key: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) context_tokens: Option<usize>,
    pub(crate) grammar: Option<String>,
    pub(crate) gateway: rollyard_gateway::settings::Settings,
}

impl Picked {
    pub(super) fn gateway(&self) -> Result<Option<GatewayServing>, SettingsError> {
        let urls = self.list("engine")?;
        if urls.is_empty() {
            return Ok(None);
        }
        if self.optional_text("tokenizer")?.is_none() {
            return Err(self
                .get("engine")
                .invalid("an engine together with `tokenizer`, its model's folder"));
        }
        let dialect = match self.text("engine_dialect")?.as_str() {
            "auto" => None,
            "sglang" => Some(Dialect::Sglang),
            "vllm" => Some(Dialect::Vllm),
            _ => return Err(self.get("engine_dialect").invalid("\"auto\", \"sglang\" or \"vllm\"")),
        };
        let grammar = self.text("grammar")?;
        if grammar != "auto" && rollyard_gateway::parse::Grammar::named(&grammar).is_err() {
            let names = rollyard_gateway::parse::Grammar::names().join(", ");
            return Err(self.get("grammar").invalid(&format!("auto or one of {names}")));
        }
        let sessions_max = self.count("max_sessions")?;
        let concurrent = NonZeroU32::new(sessions_max);
        let max_concurrent =
            concurrent.ok_or_else(|| self.get("max_sessions").invalid("a number above 0"))?;
        let ahead = self.count("session_ahead")?;
        let batch = self.optional_count("session_batch")?;
        let pace = match batch.map(NonZeroU32::new) {
            None => None,
            Some(None) => return Err(self.get("session_batch").invalid("a number above 0")),
            Some(Some(batch)) => Some(Pace { max_concurrent, batch, max_head_offpolicyness: Some(ahead) }),
        };
        let gateway = rollyard_gateway::settings::Settings {
            sessions_max: sessions_max as usize,
            pace,
            body_bytes_max: self.size("max_body_bytes")?,
            ..rollyard_gateway::settings::Settings::default()
        };
        Ok(Some(GatewayServing {
            urls,
            dialect,
            key: self.optional_text("engine_key")?,
            model: self.optional_text("model_name")?,
            aliases: self.list("model_alias")?,
            context_tokens: self.optional_count("context_tokens")?.map(|count| count as usize),
            grammar: Some(grammar).filter(|grammar| grammar != "auto"),
            gateway,
        }))
    }
}
