//! A workflow without code, as a few settings: what to sample, what it is worth, what the model may call.

use rollyard_core::tokens::Tokenizer;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use super::{MultiTurn, SingleTurn};
use crate::command::Program;
use crate::episode::SharedWorkflow;
use crate::generate::GenerationConfig;
use crate::host::{Host, HostError, PythonReward, PythonTool};
use crate::reward::{RewardSpec, RewardSpecError, SharedReward};
use crate::tool::{CommandTool, SharedTool, ToolBox, ToolBoxError, ToolSyntax};

/// A function in Python that takes longer hangs.
const FUNCTION_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    pub gconfig: GenerationConfig,
    /// As [`RewardSpec`] reads it.
    pub reward: String,
    /// Said first, unless the data has a system message of its own.
    pub system: Option<String>,
    /// Further variables of the template, such as `enable_thinking`.
    pub template_kwargs: Map<String, Value>,
    /// Several turns, if it is there.
    pub turns: Option<Turns>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turns {
    /// Each `module.function` in Python, or a JSON file that says a command and its schema.
    pub tools: Vec<String>,
    pub syntax: ToolSyntax,
    pub max_turns: u32,
    pub max_tokens: Option<usize>,
    pub feedback: Option<String>,
    pub good_enough: f64,
    pub turn_discount: f64,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            gconfig: GenerationConfig::default(),
            reward: "none".to_owned(),
            system: None,
            template_kwargs: Map::new(),
            turns: None,
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            tools: Vec::new(),
            syntax: ToolSyntax::default(),
            max_turns: 8,
            max_tokens: None,
            feedback: None,
            good_enough: 1.0,
            turn_discount: 1.0,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error(transparent)]
    Reward(#[from] RewardSpecError),
    #[error(transparent)]
    Python(#[from] HostError),
    #[error(transparent)]
    Tools(#[from] ToolBoxError),
    #[error("the tool cannot be read ({source}): {}", .path.display())]
    ToolFile { source: io::Error, path: PathBuf },
    #[error("the tool is not understood ({reason}); it is {{\"function\": {{\"name\": …, \"parameters\": …}}, \"command\": …}}: {}", .path.display())]
    BadTool { reason: String, path: PathBuf },
    #[error("{0:?} is a Python function, which needs a host for Python")]
    NoHost(String),
}

impl Recipe {
    /// Whether worker processes are needed.
    pub fn needs_python(&self) -> Result<bool, RecipeError> {
        let tools = self.turns.iter().flat_map(|turns| &turns.tools);
        let of_reward = matches!(RewardSpec::parse(&self.reward)?, RewardSpec::Python(_));
        Ok(of_reward || tools.into_iter().any(|tool| !is_file(tool)))
    }

    pub async fn build(
        self,
        tokenizer: Option<Arc<Tokenizer>>,
        host: Option<&Host>,
    ) -> Result<SharedWorkflow, RecipeError> {
        let reward = reward_of(&self.reward, host).await?;
        let Self { gconfig, system, template_kwargs, turns, .. } = self;
        let Some(turns) = turns else {
            return Ok(Arc::new(SingleTurn { tokenizer, gconfig, reward, system, template_kwargs }));
        };
        let mut tools: Vec<SharedTool> = Vec::with_capacity(turns.tools.len());
        for tool in &turns.tools {
            tools.push(match (is_file(tool), host) {
                (true, _) => Arc::new(read_tool(Path::new(tool))?),
                (false, Some(host)) => {
                    Arc::new(PythonTool::load(host.clone(), tool, FUNCTION_TIMEOUT).await?)
                }
                (false, None) => return Err(RecipeError::NoHost(tool.clone())),
            });
        }
        Ok(Arc::new(MultiTurn {
            tokenizer,
            gconfig,
            reward,
            system,
            template_kwargs,
            tools: ToolBox::new(tools)?,
            syntax: turns.syntax,
            max_turns: turns.max_turns,
            max_tokens: turns.max_tokens,
            feedback: turns.feedback,
            good_enough: turns.good_enough,
            turn_discount: turns.turn_discount,
        }))
    }
}

/// The reward that a text names, as [`RewardSpec`] reads it.
pub async fn reward_of(spec: &str, host: Option<&Host>) -> Result<SharedReward, RecipeError> {
    match (RewardSpec::parse(spec)?, host) {
        (RewardSpec::Python(path), Some(host)) => {
            Ok(Arc::new(PythonReward::load(host.clone(), &path, FUNCTION_TIMEOUT).await?))
        }
        (spec, _) => Ok(spec.build()?),
    }
}

fn is_file(tool: &str) -> bool {
    tool.contains('/') || Path::new(tool).extension().is_some_and(|ending| ending == "json")
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow)]
    function: &'a RawValue,
    command: String,
    timeout_secs: Option<f64>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn read_tool(path: &Path) -> Result<CommandTool, RecipeError> {
    let io = |source| RecipeError::ToolFile { source, path: path.to_owned() };
    let bad = |reason: String| RecipeError::BadTool { reason, path: path.to_owned() };
    let text = fs::read_to_string(path).map_err(io)?;
    let tool: WireTool<'_> = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let Named { name } = serde_json::from_str(tool.function.get()).map_err(|error| bad(error.to_string()))?;
    let schema = format!(r#"{{"type": "function", "function": {}}}"#, tool.function.get());
    let schema = serde_json::from_str::<Box<RawValue>>(&schema).map_err(|error| bad(error.to_string()))?;
    let mut program = Program::shell(&tool.command);
    if let Some(secs) = tool.timeout_secs {
        let timeout = Duration::try_from_secs_f64(secs);
        program =
            program.with_timeout(timeout.map_err(|error| bad(format!("timeout_secs is {secs}: {error}")))?);
    }
    Ok(CommandTool::new(&name, schema, program))
}
