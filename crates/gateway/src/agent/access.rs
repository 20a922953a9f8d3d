//! What an agent is told: where to ask, and with which key.

use rollyard_engine::episode::Context;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// For clients of OpenAI's: with `/v1`.
    pub base_url: String,
    /// For clients of Anthropic's: without.
    pub anthropic_base_url: String,
    /// It opens one session and nothing else.
    pub api_key: String,
    pub model: String,
    pub session: String,
}

impl Access {
    pub(super) fn new(address: SocketAddr, api_key: String, model: String, session: String) -> Self {
        let root = format!("http://{address}");
        Self { base_url: format!("{root}/v1"), anthropic_base_url: root, api_key, model, session }
    }

    /// The same as variables of a process.
    pub fn variables(&self, context: &Context) -> Vec<(String, String)> {
        let named = [
            ("OPENAI_BASE_URL", &self.base_url),
            ("OPENAI_API_KEY", &self.api_key),
            ("OPENAI_MODEL", &self.model),
            ("ANTHROPIC_BASE_URL", &self.anthropic_base_url),
            ("ANTHROPIC_API_KEY", &self.api_key),
            ("ROLLYARD_MODEL", &self.model),
            ("ROLLYARD_SESSION", &self.session),
            ("ROLLYARD_TASK_ID", &context.task_id.to_string()),
        ];
        let mut variables: Vec<(String, String)> =
            named.map(|(name, value)| (name.to_owned(), value.clone())).into();
        // We are on this machine: a proxy of the user's would not find us.
        for name in ["NO_PROXY", "no_proxy"] {
            let before = std::env::var(name).unwrap_or_default();
            let direct = if before.is_empty() { HERE.to_owned() } else { format!("{before},{HERE}") };
            variables.push((name.to_owned(), direct));
        }
        variables
    }
}

/// What a function in Python is told of its episode, beside the data.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    access: &'a Access,
    context: Episode<'a>,
    /// For functions that ask as the environment says.
    variables: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct Episode<'a> {
    run: &'a str,
    task_id: u64,
    sample_idx: u32,
    attempt: u32,
    is_eval: bool,
    seed: u64,
}

impl<'a> Told<'a> {
    pub fn new(access: &'a Access, context: &'a Context) -> Self {
        let Context { run, task_id, sample_idx, attempt, is_eval, seed } = context;
        let variables = access.variables(context).into_iter().collect();
        let context = Episode {
            run,
            task_id: *task_id,
            sample_idx: *sample_idx,
            attempt: *attempt,
            is_eval: *is_eval,
            seed: *seed,
        };
        Self { access, context, variables }
    }
}

const HERE: &str = "127.0.0.1";
