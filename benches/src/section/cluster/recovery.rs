//! How long a node that starts takes until it answers for a million rollouts that JetStream keeps.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rollyard_test_nats::{Cluster, Sync};

use super::yard::{start_nats, start_node};
use crate::http::Client;
use crate::server::Server;
use crate::setup::Setup;
use crate::table::{Bar, Row, gigabytes, seconds};

const RUN: &str = "held";
const ANSWERED_WITHIN: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn run(setup: &Setup, items: u64) -> Result<Vec<Row>> {
    let nats = start_nats(setup, Sync::Default)?;
    // What starting and listening for others takes, whatever is held.
    let (mut node, nothing) = start(setup, &nats, "default", 0)?;
    node.kill();
    let begin = Instant::now();
    let fill = Command::new(std::env::current_exe()?)
        .args(["fill", &nats.urls(), RUN, &items.to_string()])
        .status()?;
    ensure!(fill.success(), "filling the run failed");
    eprintln!("  {items} rollouts admitted in {:.1} s", begin.elapsed().as_secs_f64());
    let (mut node, replayed) = start(setup, &nats, RUN, items)?;
    // Its runs are closed with a snapshot.
    node.stop();
    let (mut node, restored) = start(setup, &nats, RUN, items)?;
    let rss = node.rss_bytes()? as f64 / 1e9;
    node.kill();
    let (_node, again) = start(setup, &nats, RUN, items)?;
    let held = format!("{items} held");
    let soon = Bar::Below { limit: 20.0, unit: "s" };
    Ok(vec![
        Row::value(&format!("start to first answer, {held}, from the snapshot"), restored, seconds, soon),
        Row::value(&format!("the same after kill -9, {held}"), again, seconds, soon),
        Row::value(&format!("the same without a snapshot, {held}"), replayed, seconds, Bar::None),
        Row::value("the same, nothing held", nothing, seconds, Bar::None),
        Row::value(&format!("memory (VmRSS) after recovery, {held}"), rss, gigabytes, Bar::None),
    ])
}

/// A node, and the seconds until it answered for all rollouts of the run.
fn start(setup: &Setup, nats: &Cluster, run: &str, items: u64) -> Result<(Server, f64)> {
    let begin = Instant::now();
    let node = start_node(setup, nats, 1, "recovering")?;
    let listening = begin.elapsed();
    loop {
        let answer =
            Client::connect(node.address())?.call("GET", &format!("/runs/{run}/buffer/stats"), "")?;
        if answer.status == 200 {
            let held = node.stat_of(run, "current_size")?;
            ensure!(held == items, "{items} rollouts were admitted, and {held} are held after a start");
            break;
        }
        ensure!(
            begin.elapsed() < ANSWERED_WITHIN,
            "answered {} after a start: {}",
            answer.status,
            node.log()
        );
        std::thread::sleep(PAUSE);
    }
    let took = begin.elapsed();
    eprintln!("  a node listens after {listening:.2?} and answers for {items} rollouts after {took:.2?}");
    Ok((node, took.as_secs_f64()))
}
