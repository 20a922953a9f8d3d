//! What `rollyard run` can be told.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rollyard_engine::clients::Dialect;
use rollyard_engine::generate::GenerationConfig;
use rollyard_engine::group::Incomplete;
use rollyard_engine::workflow::{Recipe, Turns};
use serde_json::{Map, Value};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run a workflow on every prompt of a file and keep what comes of it
#[derive(Debug, Args)]
#[command(after_help = "\
A line of the input is a prompt: an object with `messages` or `prompt`, and whatever the reward needs, such as
`answer`. Each is run --group-size times, with a seed of its own each time.
With --model the prompt is rendered and tokenised here and the engine is asked in token ids, so that what it sampled
is recorded to the token. Without it the engine must speak OpenAI's chat completions, and the text is all there is.
With --agent each episode is a program that asks as OPENAI_BASE_URL or ANTHROPIC_BASE_URL says. {field} in the command is
a field of the prompt, which it also gets as JSON on its standard input. All that it asked is recorded to the token; the
last line that it prints is its reward, unless --reward judges its last answer.
--out is a folder, which gets rollouts.jsonl, or a yard: `yard` for the one on this machine, or
http://HOST:PORT/runs/NAME. Run the same command again, and only what is missing is made.

Example:
    rollyard run --input prompts.jsonl --engine http://127.0.0.1:30000 --model Qwen2.5-7B-Instruct \\
        --reward math --group-size 8 --out rollouts
    rollyard run --agent 'my-cli --task {prompt}' --input tasks.jsonl --engine http://127.0.0.1:30000 \\
        --model Qwen2.5-7B-Instruct --concurrency 16 --episode-timeout 600 --out rollouts")]
pub(crate) struct Arguments {
    /// single-turn, multi-turn, or module.Class for a RolloutWorkflow or an agent of your own in Python
    #[arg(long, default_value = SINGLE_TURN)]
    pub(super) workflow: String,
    /// A program as the workflow: a command line that asks as OPENAI_BASE_URL says
    #[arg(long, value_name = "CMD", conflicts_with = "workflow")]
    pub(super) agent: Option<String>,
    /// Keyword arguments of a workflow in Python, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = object, default_value = "{}", hide_default_value = true)]
    pub(super) workflow_args: Arc<Map<String, Value>>,
    /// Prompts, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) input: PathBuf,
    /// Only so many prompts, from the first
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Where rollouts go: a folder, `yard`, or http://HOST:PORT/runs/NAME
    #[arg(long, value_name = "DIR|YARD")]
    pub(super) out: String,
    /// The yard's token, if it has one
    #[arg(long, env = "ROLLYARD_TOKEN", hide_env_values = true)]
    pub(super) token: Option<String>,
    /// What the run is called in what it writes
    #[arg(long, default_value = "run")]
    pub(super) name: String,
    /// Times each prompt is run
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) group_size: NonZeroU32,
    /// What an answer is worth: math, exact, none, cmd:COMMAND, a URL, or module.function in Python [default: none; of
    /// an agent, what it says itself]
    #[arg(long)]
    pub(super) reward: Option<String>,
    /// Which groups are kept as accepted: all, or those whose rewards differ
    #[arg(long, value_enum, default_value_t = AcceptRule::All)]
    pub(super) accept: AcceptRule,
    /// What becomes of a group whose member failed for good: wait, replace, drop, or accept:K for K members left
    #[arg(long, default_value = "accept")]
    pub(super) incomplete: Incomplete,
    /// Times an episode is tried
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) attempts: NonZeroU32,
    /// The longest an attempt may take, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(super) episode_timeout: Option<Duration>,
    /// Episodes at once, over all prompts
    #[arg(long, value_name = "N", default_value = "256")]
    pub(super) concurrency: NonZeroU32,
    /// Mark what is made as evaluation
    #[arg(long)]
    pub(super) eval: bool,
    /// Write a file for each prompt too, under DIR/dump
    #[arg(long)]
    pub(super) dump: bool,
    #[command(flatten)]
    pub(super) engine: EngineArguments,
    #[command(flatten)]
    pub(super) sampling: Sampling,
    #[command(flatten)]
    pub(super) turns: TurnArguments,
    #[command(flatten)]
    pub(super) python: PythonArguments,
}

pub(super) const SINGLE_TURN: &str = "single-turn";
pub(super) const MULTI_TURN: &str = "multi-turn";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AcceptRule {
    All,
    Varied,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(super) struct EngineArguments {
    /// Where the engine listens; can be given again for servers with the same weights
    #[arg(long = "engine", value_name = "URL", required = true)]
    pub(super) urls: Vec<String>,
    /// sglang, vllm or openai [default: found out by asking]
    #[arg(long)]
    pub(super) dialect: Option<Dialect>,
    /// The model's folder, with tokenizer.json and the chat template
    #[arg(long, value_name = "MODEL_DIR")]
    pub(super) model: Option<PathBuf>,
    /// What the engine calls the model [default: the first that it lists]
    #[arg(long, value_name = "NAME")]
    pub(super) model_name: Option<String>,
    /// Sent to the engine as a bearer token
    #[arg(long, env = "ROLLYARD_ENGINE_KEY", hide_env_values = true, value_name = "KEY")]
    pub(super) engine_key: Option<String>,
    /// The longest one answer may take, in seconds
    #[arg(long, value_name = "SECS", default_value = "3600", value_parser = seconds)]
    pub(super) request_timeout: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(super) struct Sampling {
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(super) max_new_tokens: u32,
    #[arg(long, default_value = "1.0")]
    pub(super) temperature: f32,
    #[arg(long, default_value = "1.0")]
    pub(super) top_p: f32,
    #[arg(long, value_name = "N")]
    pub(super) top_k: Option<u32>,
    /// Always the most likely token
    #[arg(long)]
    pub(super) greedy: bool,
    /// An agent's own temperature, top_p and top_k do not count
    #[arg(long)]
    pub(super) fixed_sampling: bool,
    /// A text that ends an answer; can be given again
    #[arg(long, value_name = "TEXT")]
    pub(super) stop: Vec<String>,
    /// Every episode gets a seed of its own from this one
    #[arg(long, default_value = "0")]
    pub(super) seed: u64,
    /// Said before every prompt that has no system message
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Several turns (--workflow multi-turn)")]
pub(super) struct TurnArguments {
    /// What the model may call: module.function in Python, or a JSON file with `function` and `command`; can be
    /// given again
    #[arg(long = "tool", value_name = "TOOL")]
    pub(super) tools: Vec<String>,
    /// Answers in all
    #[arg(long, value_name = "N", default_value = "8")]
    pub(super) max_turns: NonZeroU32,
    /// Tokens in all, the prompt included
    #[arg(long, value_name = "N")]
    pub(super) max_tokens: Option<usize>,
    /// Told to the model after an answer that is worth less than 1, so that it tries again
    #[arg(long, value_name = "TEXT")]
    pub(super) feedback: Option<String>,
    /// What is left of the reward each time that feedback was needed
    #[arg(long, value_name = "SHARE", default_value = "1.0")]
    pub(super) turn_discount: f64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Python workflows and rewards")]
pub(super) struct PythonArguments {
    /// The interpreter, in which the package rollyard is installed [default: python3]
    #[arg(long, env = "ROLLYARD_PYTHON", value_name = "PATH")]
    pub(super) python: Option<PathBuf>,
    /// Worker processes
    #[arg(long, value_name = "N", default_value = "2")]
    pub(super) processes: NonZeroUsize,
}

impl Arguments {
    pub(super) fn is_built_in(&self) -> bool {
        self.agent.is_none() && matches!(self.workflow.as_str(), SINGLE_TURN | MULTI_TURN)
    }

    fn reward_or_none(&self) -> String {
        self.reward.clone().unwrap_or_else(|| "none".to_owned())
    }

    pub(super) fn gconfig(&self) -> GenerationConfig {
        let sampling = &self.sampling;
        GenerationConfig {
            max_new_tokens: sampling.max_new_tokens,
            greedy: sampling.greedy,
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            stop: sampling.stop.clone(),
            ..GenerationConfig::default()
        }
    }

    /// The workflow that is meant, if it needs no code.
    pub(super) fn recipe(&self) -> Result<Option<Recipe>> {
        if self.agent.is_some() {
            return Ok(None);
        }
        let turns = match self.workflow.as_str() {
            SINGLE_TURN => None,
            MULTI_TURN => Some(Turns {
                tools: self.turns.tools.clone(),
                max_turns: self.turns.max_turns.get(),
                max_tokens: self.turns.max_tokens,
                feedback: self.turns.feedback.clone(),
                turn_discount: self.turns.turn_discount,
                ..Turns::default()
            }),
            path if path.contains('.') => return Ok(None),
            other => bail!(
                "there is no workflow {other:?}; there are {SINGLE_TURN}, {MULTI_TURN}, and module.Class for one in Python"
            ),
        };
        Ok(Some(Recipe {
            gconfig: self.gconfig(),
            reward: self.reward_or_none(),
            system: self.sampling.system.clone(),
            turns,
            ..Recipe::default()
        }))
    }

    /// All that makes another run of it: what was made under other settings is something else.
    pub(super) fn identity(&self) -> Value {
        let sampling = &self.sampling;
        serde_json::json!({
            "name": self.name,
            "workflow": self.workflow,
            "workflow_args": *self.workflow_args,
            "group_size": self.group_size,
            "agent": self.agent,
            "reward": if self.agent.is_none() { Some(self.reward_or_none()) } else { self.reward.clone() },
            "accept": format!("{:?}", self.accept).to_lowercase(),
            "model": self.engine.model,
            "model_name": self.engine.model_name,
            "sampling": self.gconfig(),
            // Nothing where it is not given, as in folders from before there were agents.
            "fixed_sampling": sampling.fixed_sampling.then_some(true),
            "seed": sampling.seed,
            "system": sampling.system,
            "tools": self.turns.tools,
            "max_turns": self.turns.max_turns,
            "max_tokens": self.turns.max_tokens,
            "feedback": self.turns.feedback,
            "turn_discount": self.turns.turn_discount,
            "eval": self.eval,
        })
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let secs: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let span = Duration::try_from_secs_f64(secs).ok().filter(|span| !span.is_zero());
    span.ok_or_else(|| "must be more than 0 seconds".to_owned())
}

fn object(text: &str) -> Result<Arc<Map<String, Value>>, String> {
    serde_json::from_str(text).map(Arc::new).map_err(|error| format!("not a JSON object: {error}"))
}
