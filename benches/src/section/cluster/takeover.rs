//! Kills the owner of a run under load, and waits for the first write that is acknowledged after that.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rollyard_test_nats::Sync;

use super::yard::{GROUP, Keeping, NODES, Yard};
use crate::http::Client;
use crate::items::{Request, Sequence};
use crate::setup::Setup;
use crate::table::{Bar, Row, median, seconds};

const WRITERS: usize = 6;
/// Load before the kill.
const CALM: Duration = Duration::from_secs(1);
const OVER_WITHIN: Duration = Duration::from_secs(30);
/// A writer that was refused asks again.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) fn run(setup: &Setup, kills: u32) -> Result<Vec<Row>> {
    let bar = Bar::Below { limit: 3.0, unit: "s" };
    let mut rows = Vec::new();
    for replicas in [1, 3] {
        let mut load = Load::new(Yard::clustered(setup, Keeping { replicas, sync: Sync::Default })?)?;
        let times: Vec<f64> = (0..kills).map(|_| load.kill_owner()).collect::<Result<_>>()?;
        let worst = times.iter().copied().fold(0.0, f64::max);
        let what = format!("kill -9 of the owner to the next acknowledged write, R{replicas}");
        rows.push(Row::value(&format!("{what}, median of {kills}"), median(&times), seconds, bar));
        rows.push(Row::value(&format!("{what}, worst"), worst, seconds, bar));
    }
    Ok(rows)
}

struct Load {
    yard: Yard,
    run: String,
    /// Every writer its own series, whatever it has to do again.
    sequences: Vec<Mutex<Sequence>>,
    acked: AtomicU64,
}

/// A write that was acknowledged.
struct Acked {
    asked: Instant,
    answered: Instant,
}

impl Load {
    fn new(yard: Yard) -> Result<Self> {
        let run = yard.make_runs("kill", 1)?.pop().context("one run was asked for")?.run;
        let series = ('a'..='z').take(WRITERS);
        let sequences = series.map(|series| Mutex::new(Sequence::new(series, GROUP))).collect();
        Ok(Self { yard, run, sequences, acked: AtomicU64::new(0) })
    }

    /// Seconds until writes flow again through the other nodes; then starts the killed one again.
    fn kill_owner(&mut self) -> Result<f64> {
        let owner = self.yard.owner(0, &self.run)?;
        let others: Vec<SocketAddr> =
            (0..NODES).filter(|no| *no != owner).map(|no| self.yard.address(no)).collect::<Result<_>>()?;
        let Self { yard, run, sequences, acked } = self;
        let stop = AtomicBool::new(false);
        let (tell, heard) = channel();
        let (killed, first) = std::thread::scope(|scope| {
            for (sequence, address) in sequences.iter().zip(others.into_iter().cycle()) {
                let (tell, run, stop, acked) = (tell.clone(), &*run, &stop, &*acked);
                scope.spawn(move || keep_writing(address, run, sequence, &tell, stop, acked));
            }
            std::thread::sleep(CALM);
            let calm = heard.try_iter().count();
            let killed = Instant::now();
            if let Some(server) = yard.servers.get_mut(owner) {
                server.kill();
            }
            let first = first_after(&heard, killed);
            stop.store(true, Ordering::Relaxed);
            ensure!(calm > 0, "no write was acknowledged before the kill");
            anyhow::Ok((killed, first?))
        })?;
        let took = first - killed;
        let asked = (owner + 1) % NODES;
        let counted = yard.server(asked)?.stat_of(run, "total_written")?;
        let acked = acked.load(Ordering::Relaxed);
        // Writes whose answer was lost may be there, too.
        ensure!(counted >= acked, "{acked} writes were acknowledged, and {counted} are on the books");
        eprintln!("  take-over: {took:.2?}, {acked} acknowledged so far, {counted} on the books");
        yard.servers.get_mut(owner).context("no such node")?.restart()?;
        yard.settle()?;
        Ok(took.as_secs_f64())
    }
}

fn first_after(heard: &Receiver<Acked>, killed: Instant) -> Result<Instant> {
    let deadline = killed + OVER_WITHIN;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let acked = heard.recv_timeout(left).context("no write was acknowledged after the kill")?;
        // What was asked before may have been answered by the dead.
        if acked.asked >= killed {
            return Ok(acked.answered);
        }
    }
}

fn keep_writing(
    address: SocketAddr,
    run: &str,
    sequence: &Mutex<Sequence>,
    tell: &Sender<Acked>,
    stop: &AtomicBool,
    count: &AtomicU64,
) {
    let mut request = Request::single(address, run, 1);
    let path = format!("/runs/{run}/buffer/write");
    let mut client = None;
    while !stop.load(Ordering::Relaxed) {
        if let Ok(mut sequence) = sequence.lock() {
            request.stamp(&mut sequence);
        }
        let asked = Instant::now();
        let body = String::from_utf8_lossy(request.body());
        let mut write = || {
            let client = match &mut client {
                Some(client) => client,
                none => none.insert(Client::connect(address)?),
            };
            anyhow::Ok(client.call("POST", &path, &body)?.status)
        };
        match write() {
            Ok(200) => {
                count.fetch_add(1, Ordering::Relaxed);
                // Nobody listens any more once it is over.
                let _ = tell.send(Acked { asked, answered: Instant::now() });
            }
            Ok(_) => std::thread::sleep(PAUSE),
            Err(_) => {
                client = None;
                std::thread::sleep(PAUSE);
            }
        }
    }
}
