//! `rollyard stats`: what a server's runs are doing, once or as a live view.

mod nodes;
mod plain;
mod run_stats;
mod view;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::client::Client;
use nodes::Nodes;
use run_stats::RunStats;
use view::View;

/// Show groups, rates, drops and books of a running server, and the nodes of a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal the view is live; Ctrl-C ends it. Elsewhere, or with --once, it is one plain table.

Example:
    rollyard stats --url http://127.0.0.1:8889 --run default")]
pub(crate) struct Arguments {
    /// Where the server listens
    #[arg(long, env = "ROLLYARD_URL", default_value = "http://127.0.0.1:8889")]
    url: String,
    /// The server's token, if it has one
    #[arg(long, env = "ROLLYARD_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Show this run only
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Ask once, print and exit
    #[arg(long)]
    once: bool,
    /// Print what the server says as JSON; with --every, a line each time
    #[arg(long)]
    json: bool,
    /// Seconds between two looks [default: 1]
    #[arg(long, value_name = "SECS", value_parser = parse_interval)]
    every: Option<Duration>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let secs: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.05..=3600.0).contains(&secs) {
        return Err("must be from 0.05 to 3600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(secs))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let client = Client::new(&arguments.url, arguments.token.clone());
    let every = arguments.every.unwrap_or(Duration::from_secs(1));
    let look = || look(&client, arguments.run.as_deref());
    let mut out = io::stdout();
    match (arguments.once, arguments.json) {
        (false, true) if arguments.every.is_some() => loop {
            writeln!(out, "{}", Value::Array(look()?)).and_then(|()| out.flush())?;
            std::thread::sleep(every);
        },
        (_, true) => Ok(writeln!(out, "{:#}", Value::Array(look()?))?),
        (false, false) if out.is_terminal() => live(&client, every, look),
        (_, false) => {
            let text = plain::table(&parse(&look()?)?, now_secs());
            let nodes = nodes(&client).map(|nodes| format!("\n{}", nodes.table()));
            Ok(out.write_all(format!("{text}{}", nodes.unwrap_or_default()).as_bytes())?)
        }
    }
}

fn look(client: &Client, run: Option<&str>) -> Result<Vec<Value>> {
    match run {
        // Names are checked by the server; a slash would ask for something else.
        Some(run) if run.contains('/') => bail!("{run:?} is not the name of a run"),
        Some(run) => Ok(vec![client.get(&format!("/api/runs/{run}"))?]),
        None => match client.get("/api/runs")? {
            Value::Array(runs) => Ok(runs),
            other => {
                bail!("this does not seem to be a rollyard server, it answers {other}: {}", client.url())
            }
        },
    }
}

/// The nodes, if there are more than the one that is asked. An older server does not know of any.
fn nodes(client: &Client) -> Option<Nodes> {
    Nodes::parse(&client.get("/api/nodes").ok()?)
}

fn parse(runs: &[Value]) -> Result<Vec<RunStats>> {
    let parsed: Option<Vec<RunStats>> = runs.iter().map(RunStats::parse).collect();
    parsed.ok_or_else(|| anyhow!("the server's answer lacks what is shown here; is it another version?"))
}

fn now_secs() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Until Ctrl-C: a server that goes away may come back.
fn live(client: &Client, every: Duration, look: impl Fn() -> Result<Vec<Value>>) -> Result<()> {
    let mut view = View::new(client.url());
    let mut out = io::stdout();
    let mut first = true;
    loop {
        let due = Instant::now() + every;
        match look().and_then(|runs| parse(&runs)) {
            Ok(runs) => view.note(Instant::now(), runs, nodes(client)),
            // The first look tells whether the address is right.
            Err(error) if first => return Err(error),
            Err(error) => view.note_trouble(error.to_string()),
        }
        first = false;
        out.write_all(view.draw(now_secs()).as_bytes()).and_then(|()| out.flush())?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}
