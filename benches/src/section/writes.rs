//! Durable writes per second: ours, ours in bulk, a FastAPI buffer, and the disk alone.
//!
//! The contestants take turns, so that a noisy minute of the machine hits all of them.

use anyhow::{Result, ensure};

use crate::disk;
use crate::items::{ITEM_BYTES, Sequence};
use crate::load::Shape;
use crate::server::Server;
use crate::setup::{CONNECTIONS, Setup};
use crate::table::{Bar, Row, median, per_sec};

/// Items per bulk request.
pub(crate) const BULK: usize = 16;
const GROUP: u64 = 8;

pub(crate) fn run(setup: &Setup) -> Result<Vec<Row>> {
    // No contestant writes faster than the disk; what four of them leave behind is below this.
    let seconds = setup.round().as_secs() * u64::from(setup.rounds) * 4;
    disk::require_free_bytes(&setup.dir, seconds * 40_000 * ITEM_BYTES as u64)?;
    let mut ours = Contestant::new("rollyard", setup.start_rollyard()?, Shape::Single);
    let mut bulk = Contestant::new("rollyard, bulk", setup.start_rollyard()?, Shape::Bulk(BULK));
    let mut fastapi = Contestant::new("FastAPI", setup.start_fastapi(&[])?, Shape::Single);
    let mut unsynced =
        Contestant::new("FastAPI, no fsync", setup.start_fastapi(&["--no-fsync"])?, Shape::Single);
    let (mut bare, mut bare_small) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        for contestant in [&mut ours, &mut bulk, &mut fastapi, &mut unsynced] {
            contestant.play(setup)?;
        }
        bare.push(bare_round(setup, 128)?);
        bare_small.push(bare_round(setup, CONNECTIONS as u64)?);
    }
    for contestant in [&ours, &bulk, &fastapi, &unsynced] {
        contestant.check_books()?;
    }
    let bare = median(&bare);
    let row = |what: &str, contestant: &Contestant, baseline: f64, bar: Bar| {
        Row::ratio(what, median(&contestant.rates), baseline, per_sec, bar)
    };
    Ok(vec![
        row("writes, against FastAPI", &ours, median(&fastapi.rates), Bar::AtLeast(15.0)),
        row("writes, against FastAPI without fsync", &ours, median(&unsynced.rates), Bar::None),
        row("writes, against bare append + fdatasync per 128", &ours, bare, Bar::AtLeast(0.5)),
        // With one write in flight per connection, no server can put more than 16 into one sync.
        row("writes, against bare append + fdatasync per 16", &ours, median(&bare_small), Bar::None),
        row("bulk writes (16 per request), against FastAPI", &bulk, median(&fastapi.rates), Bar::None),
        row("bulk writes (16 per request), against bare append", &bulk, bare, Bar::None),
    ])
}

fn bare_round(setup: &Setup, items_per_sync: u64) -> Result<f64> {
    let rate = disk::bare_append(&setup.dir, items_per_sync, setup.round())?;
    eprintln!("  bare append, fdatasync per {items_per_sync}: {rate:.0} items/s");
    Ok(rate)
}

struct Contestant {
    name: &'static str,
    server: Server,
    sequence: Sequence,
    shape: Shape,
    rates: Vec<f64>,
}

impl Contestant {
    fn new(name: &'static str, server: Server, shape: Shape) -> Self {
        Self { name, server, sequence: Sequence::new('w', GROUP), shape, rates: Vec::new() }
    }

    fn play(&mut self, setup: &Setup) -> Result<()> {
        let outcome = setup.write_round(self.name, &self.server, &mut self.sequence, self.shape)?;
        self.rates.push(outcome.items_per_sec());
        Ok(())
    }

    /// A fast server that drops writes would win; so what was answered must be on the books.
    fn check_books(&self) -> Result<()> {
        let (held, sent) = (self.server.stat("total_written")?, self.sequence.used());
        ensure!(held == sent, "{} answered {sent} writes and counts {held}", self.name);
        Ok(())
    }
}
