//! The gateway: what it adds to an engine's answers, and what it takes.
//!
//! The engine is a stand-in that answers by the clock, in this process; the gateway is the release binary with its
//! journal on disk. What it adds is the difference to the same streams asked of the engine directly.

mod many;
mod session;
mod stage;
mod streams;
mod wire;

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::setup::Setup;
use crate::table::Row;
use stage::Stage;

pub(crate) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let stage = Stage::set(setup, &runtime)?;
    let mut rows = Vec::new();
    eprintln!("  streams");
    rows.extend(runtime.block_on(streams::run(&stage, setup.rounds))?);
    eprintln!("  requests");
    rows.extend(runtime.block_on(many::requests(&stage, setup))?);
    eprintln!("  a long session");
    rows.extend(runtime.block_on(session::run(&stage))?);
    eprintln!("  five thousand sessions");
    rows.extend(runtime.block_on(many::sessions(&stage))?);
    Ok(rows)
}
