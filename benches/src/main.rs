//! `rollyard-bench`: the promises of Rollyard, measured.
//!
//! Every section starts its own servers on loopback, measures the contestants in turns, and prints a Markdown
//! table. A missed bar is printed as `missed`; only a bench that could not run exits with an error.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench talks: tables on stdout, progress on stderr"
)]

mod crowd;
mod disk;
mod http;
mod items;
mod load;
mod rollouts;
mod runs;
mod section;
mod server;
mod setup;
mod table;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};

use crate::section::{backlog, batch, build, cluster, connections, episodes, gateway, memory, tiny, writes};
use crate::setup::Setup;
use crate::table::Row;

// The allocator that the server and the Python package have.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A load average above this, before anything was started, comes from somebody else.
const LOAD_MAX: f64 = 0.5;

#[derive(Debug, Parser)]
#[command(name = "rollyard-bench", about = "Measures Rollyard against its baselines on this machine")]
struct Cli {
    #[command(subcommand)]
    section: Section,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Debug, Subcommand)]
enum Section {
    /// Durable writes per second, against a FastAPI buffer and a bare append.
    Writes,
    /// Writes, reads, memory and recovery with many rollouts held.
    Backlog(Backlog),
    /// Writes beside thousands of open, slow connections.
    Connections(Connections),
    /// Padded batches, against a plain copy and a numpy loop.
    Batch,
    /// What rollouts take in memory, against their tokens and log-probs.
    Memory,
    /// Tokens a second that the demo's model samples.
    Tiny,
    /// What the gateway adds to an engine's answers, against the engine alone and a pass-through in FastAPI.
    Gateway,
    /// Three nodes on three NATS servers: writes, take-over, recovery, and the log alone, against one server.
    Cluster(cluster::Cluster),
    /// Makes rollouts and says by how many bytes that made the process grow; `memory` runs it.
    #[command(hide = true)]
    HoldRollouts { origin: memory::Origin },
    /// Fills a run on JetStream; `cluster` runs it.
    #[command(hide = true)]
    Fill(cluster::Fill),
    /// Runs episodes on an engine; `make bench-workflows` runs it beside its baseline.
    #[command(hide = true)]
    Episodes(episodes::Episodes),
    /// Writes a run to look at; `make bench-catalog` reads it.
    #[command(hide = true)]
    Runs(runs::Runs),
    /// A clean release build.
    Build,
    /// All of the above.
    All {
        #[command(flatten)]
        backlog: Backlog,
        #[command(flatten)]
        connections: Connections,
        #[command(flatten)]
        cluster: cluster::Cluster,
        /// Also time a clean release build.
        #[arg(long)]
        build: bool,
    },
}

#[derive(Debug, Args)]
struct Backlog {
    /// Rollouts held.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    items: u64,
}

#[derive(Debug, Args)]
struct Connections {
    /// Connections in the crowd; a tenth are slow writers and a tenth slow readers.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    connections: usize,
}

fn main() -> Result<()> {
    let Cli { section, setup } = Cli::parse();
    if let Section::HoldRollouts { origin } = section {
        println!("{}", memory::hold(origin)?);
        return Ok(());
    }
    if let Section::Episodes(asked) = &section {
        return episodes::run(asked);
    }
    if let Section::Fill(asked) = &section {
        return asked.run();
    }
    if let Section::Runs(asked) = &section {
        return asked.write();
    }
    std::fs::create_dir_all(&setup.dir).with_context(|| format!("cannot make {}", setup.dir.display()))?;
    println!("{}\n", machine());
    match section {
        Section::Writes => show("writes", || writes::run(&setup)),
        Section::Backlog(Backlog { items }) => show("backlog", || backlog::run(&setup, items)),
        Section::Connections(Connections { connections: open }) => {
            show("connections", || connections::run(&setup, open))
        }
        Section::Batch => show("batch", || batch::run(&setup)),
        Section::Memory => show("memory", memory::run),
        Section::Tiny => show("tiny", tiny::run),
        Section::Gateway => show("gateway", || gateway::run(&setup)),
        Section::Cluster(cluster) => cluster.run(&setup),
        Section::HoldRollouts { .. } | Section::Fill(_) | Section::Episodes(_) | Section::Runs(_) => Ok(()),
        Section::Build => show("build", || build::run(&setup)),
        Section::All {
            backlog: Backlog { items },
            connections: Connections { connections: open },
            cluster,
            build,
        } => {
            show("writes", || writes::run(&setup))?;
            show("backlog", || backlog::run(&setup, items))?;
            show("connections", || connections::run(&setup, open))?;
            show("batch", || batch::run(&setup))?;
            show("memory", memory::run)?;
            show("tiny", tiny::run)?;
            show("gateway", || gateway::run(&setup))?;
            cluster.run(&setup)?;
            if build { show("build", || build::run(&setup)) } else { Ok(()) }
        }
    }
}

/// A number means little without its machine, and nothing if others were using that machine.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN);
    let warning = if load > LOAD_MAX { "; **busy machine: these numbers are provisional**" } else { "" };
    let (model, kernel) = (model.map_or("unknown CPU", |(_, name)| name), read("/proc/sys/kernel/osrelease"));
    format!("{cores} × {model}, Linux {}, load {load:.1} at the start{warning}", kernel.trim())
}

/// Each table is printed as soon as it is known, so that a later failure does not take it along.
fn show(name: &str, run: impl FnOnce() -> Result<Vec<Row>>) -> Result<()> {
    eprintln!("{name}");
    let rows = run().with_context(|| format!("section {name} could not run"))?;
    println!("{}", table::markdown(&rows));
    Ok(())
}
