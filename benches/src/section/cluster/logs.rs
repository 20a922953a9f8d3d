//! The two logs without anything around them: batches a second, one after the other.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use rollyard_core::ids::RunName;
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::log::{self, Commit as _, Durability, Log, Parts, Stage as _};
use rollyard_test_nats::{Cluster, Sync};

use super::yard::start_nats;
use crate::items::{DEFAULT_RUN, ITEM_BYTES, Request};
use crate::setup::Setup;
use crate::table::{Bar, Row, median};

const BODY_BYTES: usize = 150;
const WINDOW_MAX: Duration = Duration::from_secs(1);

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let lazy = start_nats(setup, Sync::Default)?;
    let eager = start_nats(setup, Sync::Always)?;
    let mut rows = of_batches::<1>(setup, &lazy, &eager)?;
    rows.extend(of_batches::<16>(setup, &lazy, &eager)?);
    rows.extend(of_batches::<256>(setup, &lazy, &eager)?);
    Ok(rows)
}

fn of_batches<const N: usize>(setup: &Setup, lazy: &Cluster, eager: &Cluster) -> Result<Vec<Row>> {
    let streams =
        [("R1", lazy, 1), ("R3", lazy, 3), ("R1, sync always", eager, 1), ("R3, sync always", eager, 3)];
    let (mut synced, mut unsynced) = (Vec::new(), Vec::new());
    let mut rates = streams.map(|_| Vec::new());
    for round in 0..setup.rounds {
        for (durability, rates) in [(Durability::Fsync, &mut synced), (Durability::Os, &mut unsynced)] {
            let folder = tempfile::Builder::new().prefix("log-").tempdir_in(&setup.dir)?;
            let options = log::Options { durability, ..log::Options::default() };
            rates.push(commits_per_sec::<N>(setup, log::open(folder.path(), options)?)?);
            rustix::fs::sync();
        }
        for ((_, nats, replicas), rates) in streams.iter().zip(&mut rates) {
            let settings = Settings { replicas: *replicas, ..Settings::new(nats.urls()) };
            let connection = Connection::open(settings)?;
            let run = RunName::try_from(format!("log-{N}-{replicas}-{round}").as_str())?;
            let opened = connection.opener(&run, "bench", "http://127.0.0.1:1").open()?;
            rates.push(commits_per_sec::<N>(setup, opened)?);
            rustix::fs::sync();
        }
    }
    let row = |what: &str, rates: &[f64]| {
        let what = format!("batches of {N}: {what}, against embedded");
        Row::ratio(&what, median(rates), median(&synced), told::<N>, Bar::None)
    };
    let mut rows = vec![row("embedded, durability os", &unsynced)];
    rows.extend(streams.iter().zip(&rates).map(|((what, ..), rates)| row(what, rates)));
    Ok(rows)
}

fn told<const N: usize>(commits: f64) -> String {
    let megabytes = commits * (N * ITEM_BYTES) as f64 / 1e6;
    format!("{commits:.0} commits/s, {megabytes:.0} MB/s")
}

fn commits_per_sec<const N: usize>(setup: &Setup, log: impl Log) -> Result<f64> {
    let Parts { mut stager, mut writer, .. } = log.into_parts();
    let nowhere = ([127, 0, 0, 1], 0).into();
    let payloads: Vec<Bytes> = (0..16)
        .map(|seed| Bytes::copy_from_slice(Request::single(nowhere, DEFAULT_RUN, seed + 1).body()))
        .collect();
    let body = [7; BODY_BYTES];
    let window = setup.round().min(WINDOW_MAX);
    let begin = Instant::now();
    let mut commits = 0;
    while begin.elapsed() < window {
        for payload in payloads.iter().cycle().take(N) {
            stager.stage(&body, payload.clone()).map_err(|error| anyhow!(error))?;
        }
        writer.commit(stager.take_batch().context("something was staged")?)?;
        commits += 1;
    }
    let rate = f64::from(commits) / begin.elapsed().as_secs_f64();
    writer.close()?;
    eprintln!("  batches of {N}: {}", told::<N>(rate));
    Ok(rate)
}
