//! A server with a million rollouts waiting must be as quick as an empty one, small, and soon back after a kill.
//!
//! Instances get 5 of their 8 rollouts, so that the whole backlog is held and none of it is ready.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::disk;
use crate::http::Client;
use crate::items::{ITEM_BYTES, Sequence};
use crate::load::{self, Plan, Shape, Until};
use crate::section::writes::BULK;
use crate::server::Server;
use crate::setup::{CONNECTIONS, Setup};
use crate::table::{Bar, Row, gigabytes, median, millis, per_sec, seconds};

const HELD_PER_INSTANCE: u64 = 5;
const GROUP: u64 = 8;
const GROUPS_PER_READ: u64 = 64;
const READS: usize = 10;
/// The fill tells how far it is whenever it has come this much further.
const PROGRESS_ITEMS: u64 = 50_000;

pub(crate) fn run(setup: &Setup, items: u64) -> Result<Vec<Row>> {
    // Filled, plus what the rounds of writes add, plus what a log may waste.
    let round_items = setup.round().as_secs() * u64::from(setup.rounds) * 2 * 40_000;
    disk::require_free_bytes(&setup.dir, (items * 6 / 5 + round_items) * ITEM_BYTES as u64)?;
    let mut full = Yard::new(setup.start_rollyard()?);
    full.fill(items)?;
    let rss = full.server.rss_bytes()? as f64 / 1e9;

    let mut empty = Yard::new(setup.start_rollyard()?);
    let (reads_full, reads_empty) = compare_reads(&mut full, &mut empty)?;
    let recovered_warm = full.recover(Cache::Warm)?;
    let recovered_cold = full.recover(Cache::Cold)?;
    let rss_recovered = full.server.rss_bytes()? as f64 / 1e9;
    let (writes_full, writes_empty) = compare_writes(setup, &mut full)?;

    let held = format!("{items} held");
    let soon = Bar::Below { limit: 15.0, unit: "s" };
    let small = Bar::Below { limit: 1.0, unit: "GB" };
    Ok(vec![
        Row::ratio(
            &format!("writes, {held}, against empty"),
            writes_full,
            writes_empty,
            per_sec,
            Bar::AtLeast(0.8),
        ),
        Row::ratio(
            &format!("read of 64 groups of 8, {held}, against only them"),
            reads_full,
            reads_empty,
            millis,
            Bar::AtMost(2.0),
        ),
        Row::value(&format!("memory (VmRSS), {held}"), rss, gigabytes, small),
        Row::value(&format!("memory after recovery, {held}"), rss_recovered, gigabytes, small),
        Row::value(&format!("recovery after SIGKILL, {held}"), recovered_warm.as_secs_f64(), seconds, soon),
        Row::value(
            &format!("recovery after SIGKILL, {held}, files not cached"),
            recovered_cold.as_secs_f64(),
            seconds,
            soon,
        ),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Warm,
    Cold,
}

/// A server, what it holds, and what passes through it.
struct Yard {
    server: Server,
    held: Sequence,
    passing: Sequence,
}

impl Yard {
    fn new(server: Server) -> Self {
        Self { server, held: Sequence::new('h', HELD_PER_INSTANCE), passing: Sequence::new('p', GROUP) }
    }

    fn fill(&mut self, items: u64) -> Result<()> {
        let begin = Instant::now();
        let mut next = PROGRESS_ITEMS;
        let plan = Plan { connections: CONNECTIONS, shape: Shape::Bulk(BULK), until: Until::Items(items) };
        load::run(self.server.address(), &mut self.held, plan, |written| {
            if written >= next {
                next += PROGRESS_ITEMS;
                eprintln!("  filling: {written} of {items} items, {:.0} s", begin.elapsed().as_secs_f64());
            }
        })?;
        self.check_books()
    }

    /// Everything that was answered and not read is held.
    fn check_books(&self) -> Result<()> {
        let (held, answered) = (self.server.stat("current_size")?, self.held.used());
        ensure!(held == answered, "{answered} items were answered and are unread, the server holds {held}");
        Ok(())
    }

    /// Writes 64 complete groups, then times the one read that takes them all.
    fn read_batch(&mut self, client: &mut Client) -> Result<Duration> {
        let items = GROUPS_PER_READ * GROUP;
        let plan = Plan { connections: CONNECTIONS, shape: Shape::Single, until: Until::Items(items) };
        load::run(self.server.address(), &mut self.passing, plan, |_| ())?;
        let begin = Instant::now();
        let answer = client.call("POST", "/get_rollout_data", &format!("{{\"batch_size\":{items}}}"))?;
        let elapsed = begin.elapsed();
        let batch = client.json(&answer)?;
        let rows =
            batch.pointer("/data/data").and_then(|data| data.as_array()).context("no data in a read")?;
        let uids: HashSet<&str> = rows.iter().filter_map(|row| row.get("uid")?.as_str()).collect();
        ensure!(uids.len() as u64 == items, "a read of {items} items gave {} different ones", uids.len());
        Ok(elapsed)
    }

    fn recover(&mut self, cache: Cache) -> Result<Duration> {
        self.server.kill();
        if cache == Cache::Cold {
            disk::evict(&self.server.data())?;
        }
        let elapsed = self.server.restart()?;
        let log = self.server.log();
        let last_line = log.lines().last().unwrap_or("nothing: no progress line");
        eprintln!("  recovery, {cache:?} cache: {elapsed:.2?}; its stderr ends in: {last_line}");
        self.check_books()?;
        Ok(elapsed)
    }
}

fn compare_reads(full: &mut Yard, empty: &mut Yard) -> Result<(f64, f64)> {
    let (mut times_full, mut times_empty) = (Vec::new(), Vec::new());
    let mut client_full = Client::connect(full.server.address())?;
    let mut client_empty = Client::connect(empty.server.address())?;
    for _ in 0..READS {
        times_full.push(full.read_batch(&mut client_full)?.as_secs_f64());
        times_empty.push(empty.read_batch(&mut client_empty)?.as_secs_f64());
    }
    eprintln!(
        "  reads, full:  {}",
        times_full.iter().map(|&time| millis(time)).collect::<Vec<_>>().join(", ")
    );
    eprintln!(
        "  reads, empty: {}",
        times_empty.iter().map(|&time| millis(time)).collect::<Vec<_>>().join(", ")
    );
    Ok((median(&times_full), median(&times_empty)))
}

fn compare_writes(setup: &Setup, full: &mut Yard) -> Result<(f64, f64)> {
    let (mut rates_full, mut rates_empty) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        // A round leaves a backlog of its own, so "empty" needs a new server each time.
        let mut empty = Yard::new(setup.start_rollyard()?);
        let outcome = setup.write_round("writes, empty", &empty.server, &mut empty.held, Shape::Single)?;
        rates_empty.push(outcome.items_per_sec());
        let outcome = setup.write_round("writes, full", &full.server, &mut full.held, Shape::Single)?;
        rates_full.push(outcome.items_per_sec());
    }
    full.check_books()?;
    Ok((median(&rates_full), median(&rates_empty)))
}
