//! Rollouts a second over three runs, each of which another node owns, against the same runs on one server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rollyard_test_nats::Sync;

use super::yard::{GROUP, Keeping, NODES, Placed, Yard};
use crate::http::{Client, excerpt};
use crate::items::Sequence;
use crate::load::{self, Lane, Plan, Shape, Until};
use crate::section::writes::BULK;
use crate::setup::{CONNECTIONS, Setup};
use crate::table::{Bar, Row, median, per_sec};

/// Rollouts of one read, which are whole groups.
const READ_ROWS: u64 = 128;
/// Rollouts that go through a run for each second of a round.
const TRIP_READS_PER_SEC: u64 = 8;
const ACKED_WITHIN: Duration = Duration::from_secs(60);

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Write(Shape),
    /// Writes, and reads that are acknowledged once their bytes have arrived.
    Trip,
}

/// Whom clients ask about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Owner,
    /// All nodes in turns: two of three requests are sent on to the owner.
    Anybody,
}

const SINGLE: Work = Work::Write(Shape::Single);
const IN_BULK: Work = Work::Write(Shape::Bulk(BULK));

pub(super) fn run(setup: &Setup) -> Result<Vec<Row>> {
    let half = Bar::AtLeast(0.5);
    let mut rows = Vec::new();
    let keeping = |replicas, sync| Keeping { replicas, sync };
    {
        let embedded = Yard::embedded(setup, "fsync")?;
        let unsynced = Yard::embedded(setup, "os")?;
        let nodes = Yard::clustered(setup, keeping(1, Sync::Default))?;
        let mut contest = Contest::new(&embedded);
        contest.add("one server, one run", &embedded, 1, (SINGLE, Reach::Owner), Bar::None)?;
        contest.add("one server, durability os", &unsynced, NODES, (SINGLE, Reach::Owner), Bar::None)?;
        contest.add("R1", &nodes, NODES, (SINGLE, Reach::Owner), half)?;
        contest.add("R1", &nodes, NODES, (SINGLE, Reach::Anybody), Bar::None)?;
        contest.add("R1", &nodes, NODES, (IN_BULK, Reach::Owner), Bar::None)?;
        contest.add("R1", &nodes, NODES, (Work::Trip, Reach::Owner), half)?;
        contest.add("R1", &nodes, NODES, (Work::Trip, Reach::Anybody), Bar::None)?;
        rows.extend(contest.play(setup)?);
    }
    for (name, keeping, works) in [
        ("R3", keeping(3, Sync::Default), &[SINGLE, IN_BULK, Work::Trip][..]),
        ("R1, sync always", keeping(1, Sync::Always), &[SINGLE, IN_BULK][..]),
        ("R3, sync always", keeping(3, Sync::Always), &[SINGLE, IN_BULK][..]),
    ] {
        let (embedded, nodes) = (Yard::embedded(setup, "fsync")?, Yard::clustered(setup, keeping)?);
        let mut contest = Contest::new(&embedded);
        for work in works {
            contest.add(name, &nodes, NODES, (*work, Reach::Owner), Bar::None)?;
        }
        rows.extend(contest.play(setup)?);
    }
    Ok(rows)
}

/// Contestants that take turns with the embedded server doing the same work.
struct Contest<'a> {
    embedded: &'a Yard,
    baselines: Vec<Contestant<'a>>,
    others: Vec<(Contestant<'a>, Bar)>,
}

impl<'a> Contest<'a> {
    fn new(embedded: &'a Yard) -> Self {
        Self { embedded, baselines: Vec::new(), others: Vec::new() }
    }

    fn add(
        &mut self,
        name: &str,
        yard: &'a Yard,
        runs: usize,
        (work, reach): (Work, Reach),
        bar: Bar,
    ) -> Result<()> {
        if self.baselines.iter().all(|known| known.work != work) {
            let prefix = format!("baseline-{}", self.baselines.len());
            let runs = self.embedded.make_runs(&prefix, NODES)?;
            self.baselines.push(Contestant::new("one server", self.embedded, runs, work, Reach::Owner)?);
        }
        let runs = yard.make_runs(&format!("contest-{}", self.others.len()), runs)?;
        self.others.push((Contestant::new(name, yard, runs, work, reach)?, bar));
        Ok(())
    }

    fn play(mut self, setup: &Setup) -> Result<Vec<Row>> {
        for _ in 0..setup.rounds {
            for contestant in self.baselines.iter_mut().chain(self.others.iter_mut().map(|(other, _)| other))
            {
                contestant.play(setup)?;
                // Whoever leaves the disk its writes for later must not leave them to the next one.
                rustix::fs::sync();
            }
        }
        let mut rows = Vec::new();
        for (other, bar) in &self.others {
            let baseline = self.baselines.iter().find(|baseline| baseline.work == other.work);
            let baseline = median(&baseline.context("every work has a baseline")?.rates);
            rows.push(Row::ratio(&other.told(), median(&other.rates), baseline, per_sec, *bar));
        }
        Ok(rows)
    }
}

struct Contestant<'a> {
    name: String,
    yard: &'a Yard,
    work: Work,
    reach: Reach,
    entries: Vec<Entry>,
    rates: Vec<f64>,
}

/// A run with its writers and its reader.
struct Entry {
    placed: Placed,
    writers_to: Vec<SocketAddr>,
    reader_at: SocketAddr,
    sequence: Sequence,
}

impl<'a> Contestant<'a> {
    fn new(name: &str, yard: &'a Yard, runs: Vec<Placed>, work: Work, reach: Reach) -> Result<Self> {
        let entry = |placed: Placed| {
            let owner = yard.address(placed.owner)?;
            let (writers_to, reader_at) = match reach {
                Reach::Owner => (vec![owner], owner),
                Reach::Anybody => (yard.addresses(), yard.address((placed.owner + 1) % yard.servers.len())?),
            };
            Ok(Entry { placed, writers_to, reader_at, sequence: Sequence::new('w', GROUP) })
        };
        let entries = runs.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
        Ok(Self { name: name.to_owned(), yard, work, reach, entries, rates: Vec::new() })
    }

    fn told(&self) -> String {
        let work = match self.work {
            Work::Write(Shape::Single) => "writes",
            Work::Write(Shape::Bulk(_)) => "bulk writes (16 per request)",
            Work::Trip => "writes, reads and acks",
        };
        let reach = if self.reach == Reach::Owner { "" } else { ", any node asked" };
        format!("{work}: {}{reach}", self.name)
    }

    fn play(&mut self, setup: &Setup) -> Result<()> {
        let before = self.yard.cpu()?;
        let begin = Instant::now();
        let rate = match self.work {
            Work::Write(shape) => self.write(setup, shape)?,
            Work::Trip => self.trip(setup)?,
        };
        let share = |cpu: Duration| 100.0 * cpu.as_secs_f64() / begin.elapsed().as_secs_f64();
        let now = self.yard.cpu()?;
        eprintln!(
            "  {}: {rate:.0} items/s, cpu rollyard {:.0}% NATS {:.0}%",
            self.told(),
            share(now.0.saturating_sub(before.0)),
            share(now.1.saturating_sub(before.1)),
        );
        self.rates.push(rate);
        self.check_books()
    }

    fn write(&mut self, setup: &Setup, shape: Shape) -> Result<f64> {
        let plan = Plan { connections: CONNECTIONS, shape, until: Until::Elapsed(setup.round()) };
        let outcome = load::run_lanes(&mut lanes(&mut self.entries), plan, |_| ())?;
        Ok(outcome.items_per_sec())
    }

    /// From the first write until everything that was written is read and acknowledged.
    fn trip(&mut self, setup: &Setup) -> Result<f64> {
        let reads = setup.round().as_secs() * TRIP_READS_PER_SEC;
        let plan =
            Plan { connections: CONNECTIONS, shape: Shape::Single, until: Until::Items(reads * READ_ROWS) };
        let readers: Vec<_> =
            self.entries.iter().map(|entry| (entry.reader_at, entry.placed.run.clone())).collect();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let read = |(address, run): (SocketAddr, String)| {
                scope.spawn(move || (0..reads).try_for_each(|_| read_once(address, &run)))
            };
            let reading: Vec<_> = readers.into_iter().map(read).collect();
            load::run_lanes(&mut lanes(&mut self.entries), plan, |_| ())?;
            for reader in reading {
                reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
            }
            anyhow::Ok(())
        })?;
        for entry in &self.entries {
            let server = self.yard.server(entry.placed.owner)?;
            while server.stat_of(&entry.placed.run, "books/trained")? < entry.sequence.used() {
                ensure!(begin.elapsed() < ACKED_WITHIN, "what was read is not acked: {}", entry.placed.run);
            }
        }
        let items = reads * READ_ROWS * self.entries.len() as u64;
        Ok(items as f64 / begin.elapsed().as_secs_f64())
    }

    /// What was answered must be on the books.
    fn check_books(&self) -> Result<()> {
        for Entry { placed: Placed { run, owner }, sequence, .. } in &self.entries {
            let (held, sent) = (self.yard.server(*owner)?.stat_of(run, "total_written")?, sequence.used());
            ensure!(
                held == sent,
                "{}: {sent} writes were answered in {run}, and {held} counted",
                self.told()
            );
        }
        Ok(())
    }
}

fn lanes(entries: &mut [Entry]) -> Vec<Lane<'_>> {
    entries
        .iter_mut()
        .map(|Entry { placed, writers_to, sequence, .. }| Lane {
            run: &placed.run,
            addresses: writers_to,
            sequence,
        })
        .collect()
}

fn read_once(address: SocketAddr, run: &str) -> Result<()> {
    let mut client = Client::connect(address)?;
    let asked = format!("{{\"batch_size\":{READ_ROWS},\"timeout\":60}}");
    let answer = client.call("POST", &format!("/runs/{run}/buffer/read"), &asked)?;
    let body = client.body(&answer)?;
    let meant = format!("{{\"success\":true,\"message\":\"Read {READ_ROWS} items\"");
    ensure!(body.starts_with(meant.as_bytes()), "a read was answered {}: {}", answer.status, excerpt(&body));
    Ok(())
}
