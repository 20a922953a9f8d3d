//! `rollyard engine check`: one short generation, and what it shows.

use anyhow::{Result, bail};
use clap::Args;
use rollyard_engine::clients::{Dialect, EngineConfig, Report, check};
use std::io::{self, Write};

/// Generate a few tokens on an engine, and show what it gives and what is missing
#[derive(Debug, Args)]
#[command(after_help = "\
It ends with code 1 if the engine cannot be reached or does not answer, and with --exact also if it does not
give the sampled tokens with their log-probs.

Example:
    rollyard engine check http://10.0.0.7:30000 --exact")]
pub(crate) struct Arguments {
    /// Where the engine listens, with or without /v1
    #[arg(value_name = "URL")]
    url: String,
    /// How to speak with it: sglang, vllm or openai [default: found out]
    #[arg(long, value_name = "NAME")]
    dialect: Option<Dialect>,
    /// The model to ask for [default: the first that it lists]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Sent as a bearer token
    #[arg(long, value_name = "KEY", env = "ROLLYARD_ENGINE_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// How long an answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    timeout_secs: f64,
    /// Fail unless the engine gives token ids and log-probs
    #[arg(long)]
    exact: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let config = EngineConfig {
        urls: vec![arguments.url.clone()],
        api_key: arguments.api_key.clone(),
        model: arguments.model.clone(),
        request_timeout_secs: arguments.timeout_secs,
        ..EngineConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(check(config, arguments.dialect))?;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        write_table(&mut out, &report)?;
    }
    if arguments.exact && !report.exact {
        bail!("this engine is not exact, but --exact was asked for: {}", report.url);
    }
    Ok(())
}

fn write_table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let yes_or_no = |found| if found { "yes" } else { "no" };
    let mut row = |what, found, detail: &str| writeln!(out, "{what:<16} {:<4} {detail}", yes_or_no(found));
    row("reachable", true, &report.url)?;
    row("dialect", true, report.dialect.name())?;
    row("model", true, &report.model)?;
    for finding in &report.findings {
        row(finding.what, finding.found, &finding.detail)?;
    }
    let verdict = if report.exact {
        "what is trained on is what was sampled"
    } else {
        "its answers are text; they can be kept and scored, not trained on to the token"
    };
    row("exact", report.exact, verdict)
}
