//! Three nodes on three NATS servers, against one server on its disk; all of them on this machine.
//!
//! Nodes, NATS servers and clients share the cores that the embedded server has for itself, and nothing is gained from
//! a second disk: what is seen here is what the way over NATS costs, not what more machines bring.

mod fill;
mod logs;
mod recovery;
mod takeover;
mod throughput;
mod yard;

use anyhow::{Result, anyhow};
use clap::Args;
use rollyard_test_nats::find_nats_server;

pub(crate) use fill::Fill;

use crate::disk;
use crate::setup::Setup;
use crate::show;

/// What the streams of a whole run take at most; three copies of everything, and twice while it is agreed upon.
const DISK_BYTES: u64 = 12_000_000_000;

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Rollouts held on JetStream when a node starts.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    held: u64,
    /// Owners that are killed.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    kills: u32,
    /// Only see that it works: one round of a second each, and a tenth of the rest.
    #[arg(long)]
    quick: bool,
    /// Only this part; may be repeated.
    #[arg(long, value_enum)]
    part: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Throughput,
    TakeOver,
    Recovery,
    Logs,
}

impl Cluster {
    /// Prints its tables.
    pub(crate) fn run(&self, setup: &Setup) -> Result<()> {
        find_nats_server().map_err(|missing| anyhow!(missing))?;
        let quick = setup.quick();
        let (setup, held, kills) =
            if self.quick { (&quick, self.held / 10, 2) } else { (setup, self.held, self.kills) };
        disk::require_free_bytes(&setup.dir, DISK_BYTES)?;
        let wanted = |part| self.part.is_empty() || self.part.contains(&part);
        if wanted(Part::Throughput) {
            show("cluster, throughput", || throughput::run(setup))?;
        }
        if wanted(Part::TakeOver) {
            show("cluster, take-over", || takeover::run(setup, kills))?;
        }
        if wanted(Part::Recovery) {
            show("cluster, recovery", || recovery::run(setup, held))?;
        }
        if wanted(Part::Logs) {
            show("cluster, logs alone", || logs::run(setup))?;
        }
        Ok(())
    }
}
