//! Every setting of `rollyard serve`: those about listening, listed here, and the knobs of the default run,
//! taken from [`KNOBS`].

use rollyard_core::run_config::{KNOBS, RunConfig};
use serde_json::{Value, json};
use std::fmt;

/// The part of the settings file that a setting stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Server,
    Run,
}

impl Section {
    pub(crate) const ALL: [Self; 2] = [Self::Server, Self::Run];

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.to_string() == name)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Run => "run",
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) section: Section,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// `null` where there is none, a list where the setting may be given several times.
    pub(crate) default: Value,
    /// How its value is called in the help.
    pub(crate) value_name: &'static str,
}

impl Setting {
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    pub(crate) fn variable(&self) -> String {
        format!("ROLLYARD_{}", self.name.to_uppercase())
    }

    pub(crate) fn is_list(&self) -> bool {
        self.default.is_array()
    }

    /// A token in a listing is a token in somebody's scrollback.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.name, "token" | "grader_key" | "engine_key")
    }
}

/// All settings, in the order in which they are shown.
pub(crate) fn settings() -> Vec<Setting> {
    let server = |name, value_name, default, help| Setting {
        section: Section::Server,
        name,
        help,
        default,
        value_name,
    };
    let mut all = vec![
        server(
            "listen",
            "ADDR:PORT",
            json!("127.0.0.1:8889"),
            "Address to listen on; any but loopback needs a token",
        ),
        server("data", "DIR", json!("./yard-data"), "Folder that holds the runs; made if it is not there"),
        server(
            "token",
            "TOKEN",
            Value::Null,
            "Secret that every request must carry; other users can see flags, so prefer token_file",
        ),
        server("token_file", "FILE", Value::Null, "File that holds the token"),
        server(
            "allow_host",
            "NAME",
            json!([]),
            "A name, besides loopback, by which requests may call this server",
        ),
        server(
            "root",
            "DIR",
            json!(["."]),
            "Folder, or s3://bucket/prefix, that a path in a request may point into",
        ),
        server(
            "allow_task_type",
            "NAME",
            json!([]),
            "A task type whose rollouts come from outside, besides `default` and task_type; with `math`, the built-in task is off",
        ),
        server(
            "generators",
            "DIR",
            Value::Null,
            "Folder of generator files, *_generator.py: each makes the rollouts of its TASK_TYPE",
        ),
        server(
            "python",
            "PATH",
            Value::Null,
            "Interpreter that runs them, with the package rollyard installed; `python3` if not set",
        ),
        server(
            "generator_restarts",
            "N",
            json!(5),
            "How often a generator that crashes is started again before it has written anything",
        ),
        server(
            "max_body_bytes",
            "BYTES",
            json!(64 << 20),
            "Longest body of a request, and longest line of a bulk write",
        ),
        server(
            "compress_answers",
            "WHEN",
            json!("remote"),
            "Compress answers for clients that accept it: `remote`, `always` or `never`",
        ),
        server(
            "archive",
            "PLACE",
            Value::Null,
            "Folder, or s3://bucket/prefix, that every rollout and what became of it is kept in; nothing is kept if not set",
        ),
        server(
            "archive_format",
            "FORMAT",
            json!("jsonl"),
            "What it is kept as: `jsonl` (for the viewer), `parquet` (for DuckDB, Spark and Trino) or `both`",
        ),
        server(
            "archive_tokens",
            "BOOL",
            json!(false),
            "Whether token ids, log-probabilities and loss masks are archived too",
        ),
        server(
            "archive_roll_mb",
            "MB",
            Value::Null,
            "Size at which a file of the archive is finished; 256 for JSONL on a disk, else 64, if not set",
        ),
        server(
            "archive_roll_seconds",
            "SECONDS",
            Value::Null,
            "Age at which a file of the archive is finished; 3600 for JSONL on a disk, else 300, if not set",
        ),
        server(
            "archive_worker",
            "NAME",
            Value::Null,
            "Name that this server's files in the archive begin with; the machine's if not set",
        ),
        server(
            "log",
            "URL",
            json!([]),
            "NATS servers with JetStream, like nats://host:4222, that keep the runs of many nodes; the data folder keeps them if not set",
        ),
        server(
            "log_replicas",
            "N",
            json!(1),
            "Copies of each run that the NATS servers keep, 1 to 5, with log",
        ),
        server(
            "log_yard",
            "NAME",
            json!("rollyard"),
            "Name of the yard, the same for all its nodes: several yards can share NATS servers",
        ),
        server(
            "log_credentials",
            "FILE",
            Value::Null,
            "File of NATS credentials, as `nsc` makes it; a user or token can also stand in the URL",
        ),
        server(
            "log_max_bytes",
            "BYTES",
            Value::Null,
            "Size at which a run that is made on NATS refuses more, instead of dropping what it has; no limit if not set",
        ),
        server(
            "blobs",
            "PLACE",
            json!("jetstream"),
            "Who keeps rollouts above 64 kB, with log: `jetstream`, or s3://bucket/prefix",
        ),
        server(
            "node",
            "NAME",
            Value::Null,
            "Name of this node among those of the yard; made of the host's name and kept in the data folder if not set",
        ),
        server(
            "advertise",
            "URL",
            Value::Null,
            "Where the other nodes reach this one; http:// and the address of `listen` if not set",
        ),
        server(
            "cache",
            "DIR",
            Value::Null,
            "Folder for the index of files that are viewed; rollyard in the user's cache folder if not set",
        ),
        server(
            "tokenizer",
            "DIR",
            Value::Null,
            "Folder of a model whose tokenizer says what text the tokens of viewed rollouts are",
        ),
        server(
            "engine",
            "URL",
            json!([]),
            "Inference engine that agents ask through this server (SGLang or vLLM); needs tokenizer",
        ),
        server(
            "engine_dialect",
            "NAME",
            json!("auto"),
            "What the engine speaks: `sglang`, `vllm`, or `auto` to ask it",
        ),
        server(
            "engine_key",
            "KEY",
            Value::Null,
            "Secret for the engine; other users can see flags, so prefer ROLLYARD_ENGINE_KEY",
        ),
        server("model_name", "NAME", Value::Null, "Name of the model for agents; its folder's if not set"),
        server(
            "model_alias",
            "NAME",
            json!([]),
            "Another name that agents may call the model by; `*` is any",
        ),
        server(
            "context_tokens",
            "N",
            Value::Null,
            "Tokens that a prompt and its answer may have together; as the model's files say if not set",
        ),
        server(
            "grammar",
            "NAME",
            json!("auto"),
            "How the model writes thoughts and tool calls, for instance `qwen` or `llama3`; `auto` asks its template",
        ),
        server("max_sessions", "N", json!(10_000), "Sessions of agents that may be open at once"),
        server(
            "session_batch",
            "N",
            Value::Null,
            "Rollouts of one training step: with it, sessions are opened at the trainer's pace",
        ),
        server(
            "session_ahead",
            "N",
            json!(1),
            "Steps that sessions may be opened ahead of the trainer, with session_batch",
        ),
        server(
            "grader_url",
            "URL",
            json!([]),
            "OpenAI-compatible endpoint that may be asked to grade rollouts; the first is the usual one",
        ),
        server(
            "grader_key",
            "KEY",
            Value::Null,
            "Secret for these endpoints; other users can see flags, so prefer ROLLYARD_GRADER_KEY",
        ),
        server("grader_model", "NAME", Value::Null, "Model that grades; the endpoint's first if not set"),
        server(
            "log_level",
            "LEVEL",
            json!("info"),
            "What is logged on stderr: `off`, `error`, `warn`, `info`, `debug` or `trace`",
        ),
    ];
    let defaults = RunConfig::default().to_map();
    all.extend(KNOBS.iter().map(|knob| {
        let default = defaults.get(knob.name).cloned().unwrap_or_default();
        let value_name = match &default {
            Value::Bool(_) => "BOOL",
            Value::Number(number) if number.is_f64() => "NUMBER",
            Value::Number(_) => "N",
            _ => "NAME",
        };
        Setting { section: Section::Run, name: knob.name, help: knob.help, default, value_name }
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_settings_share_a_name() {
        let mut names: Vec<&str> = settings().iter().map(|setting| setting.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
