//! Keeps a fixed number of connections busy, for as little CPU as possible.
//!
//! Client and server share two cores, so every microsecond here is taken from the server under test.
//! One thread drives all connections through one edge-triggered epoll: a request costs one `write`, one
//! `read` and a share of an `epoll_wait`. No request is formatted, no answer but the first is parsed beyond
//! its head. `docs/benchmarks.md` has the measured cost beside a thread per connection and tokio.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::time::{ClockId, clock_gettime};

use crate::http::{Answer, excerpt};
use crate::items::{DEFAULT_RUN, Request, Sequence};

/// Buffers per connection with one item each, so that consecutive writes are not the same text.
const TEXTS_PER_CONNECTION: u64 = 4;
const WARM_UP: Duration = Duration::from_millis(500);
/// An answer that takes longer than this ends the bench: the server hangs.
const ANSWER_SECS_MAX: u64 = 60;

/// What one round of load looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) connections: usize,
    pub(crate) shape: Shape,
    pub(crate) until: Until,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One item per `POST /buffer/write`.
    Single,
    /// This many items per NDJSON request.
    Bulk(usize),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// Warm up briefly, then measure for this long.
    Elapsed(Duration),
    /// Write exactly this many items to every lane and measure all of it.
    Items(u64),
}

/// A run that is written to, and who takes its writes: the connections of a lane spread over its addresses.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    pub(crate) run: &'a str,
    pub(crate) addresses: &'a [SocketAddr],
    pub(crate) sequence: &'a mut Sequence,
}

/// What was seen in the measured time.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) items: u64,
    pub(crate) elapsed: Duration,
    /// CPU time of the client thread.
    pub(crate) client_cpu: Duration,
    /// Sorted; one entry per request.
    latencies: Vec<Duration>,
}

impl Outcome {
    pub(crate) fn items_per_sec(&self) -> f64 {
        self.items as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `share` of the requests did not exceed.
    pub(crate) fn latency(&self, share: f64) -> Duration {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    pub(crate) fn latency_max(&self) -> Duration {
        self.latencies.last().copied().unwrap_or_default()
    }
}

/// Writes items of `sequence` to the server; `progress` hears of every finished request in the measured time.
pub(crate) fn run(
    address: SocketAddr,
    sequence: &mut Sequence,
    plan: Plan,
    progress: impl FnMut(u64),
) -> Result<Outcome> {
    run_lanes(&mut [Lane { run: DEFAULT_RUN, addresses: &[address], sequence }], plan, progress)
}

/// The same for several runs at once: the connections take the lanes in turns.
pub(crate) fn run_lanes(
    lanes: &mut [Lane<'_>],
    plan: Plan,
    mut progress: impl FnMut(u64),
) -> Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(plan.connections);
    let mut connections = connect(&poll, lanes, plan)?;
    let mut schedule = Schedule::new(plan.until, lanes);
    let mut outcome = Outcome {
        items: 0,
        elapsed: Duration::ZERO,
        client_cpu: Duration::ZERO,
        latencies: Vec::with_capacity(1 << 18),
    };
    let mut cpu_before = thread_cpu();

    let mut busy = 0;
    for connection in &mut connections {
        let now = Instant::now();
        if schedule.may_start(connection, lanes, now) {
            connection.start(lanes, now)?;
            busy += 1;
        }
    }
    let mut last_answer = Instant::now();
    while busy > 0 {
        if let Err(error) = poll.poll(&mut events, Some(Duration::from_secs(1))) {
            ensure!(error.kind() == ErrorKind::Interrupted, error);
        }
        ensure!(
            last_answer.elapsed().as_secs() < ANSWER_SECS_MAX,
            "no answer for {ANSWER_SECS_MAX} s from {lanes:?}"
        );
        for event in &events {
            let connection = connections.get_mut(event.token().0).context("an event for no connection")?;
            let Some(started) = connection.advance()? else { continue };
            let now = Instant::now();
            last_answer = now;
            if schedule.begin_window_at(now) {
                cpu_before = thread_cpu();
            } else if schedule.in_window(now) {
                outcome.items += connection.items_per_request();
                outcome.latencies.push(now - started);
                progress(outcome.items);
            }
            if schedule.may_start(connection, lanes, now) {
                connection.start(lanes, now)?;
            } else {
                busy -= 1;
            }
        }
    }
    outcome.elapsed = schedule.measured(last_answer);
    outcome.client_cpu = thread_cpu().saturating_sub(cpu_before);
    outcome.latencies.sort_unstable();
    Ok(outcome)
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

fn connect(poll: &Poll, lanes: &[Lane<'_>], plan: Plan) -> Result<Vec<Connection>> {
    let connect_one = |index: usize| -> Result<Connection> {
        let lane_no = index % lanes.len();
        let lane = lanes.get(lane_no).context("a load without a run")?;
        let turn = index / lanes.len() % lane.addresses.len().max(1);
        let address = *lane.addresses.get(turn).context("a run without a server")?;
        let stream = std::net::TcpStream::connect(address)
            .with_context(|| format!("cannot open connection {index} to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        let seed = index as u64 * TEXTS_PER_CONNECTION + 1;
        let requests = match plan.shape {
            Shape::Single => (0..TEXTS_PER_CONNECTION)
                .map(|text| Request::single(address, lane.run, seed + text))
                .collect(),
            Shape::Bulk(items) => vec![Request::bulk(address, lane.run, seed, items)],
        };
        Ok(Connection::new(stream, lane_no, requests))
    };
    (0..plan.connections).map(connect_one).collect()
}

/// Decides who may send again and what counts.
#[derive(Debug)]
struct Schedule {
    until: Until,
    /// Of every lane.
    first_items: Vec<u64>,
    window: Option<Instant>,
    created: Instant,
}

impl Schedule {
    fn new(until: Until, lanes: &[Lane<'_>]) -> Self {
        let first_items = lanes.iter().map(|lane| lane.sequence.used()).collect();
        let created = Instant::now();
        let window = matches!(until, Until::Items(_)).then_some(created);
        Self { until, first_items, window, created }
    }

    fn may_start(&self, connection: &Connection, lanes: &[Lane<'_>], now: Instant) -> bool {
        match self.until {
            Until::Elapsed(length) => self.window.is_none_or(|start| now < start + length),
            Until::Items(count) => {
                let lane = lanes.iter().zip(&self.first_items).nth(connection.lane);
                let used = lane.map_or(count, |(lane, first)| lane.sequence.used() - first);
                used + connection.items_per_request() <= count
            }
        }
    }

    /// True once: at the first answer after the warm-up. The window starts there and that answer is not in it.
    fn begin_window_at(&mut self, now: Instant) -> bool {
        let begins = self.window.is_none() && now >= self.created + WARM_UP;
        if begins {
            self.window = Some(now);
        }
        begins
    }

    fn in_window(&self, now: Instant) -> bool {
        match self.until {
            Until::Elapsed(length) => self.window.is_some_and(|start| now < start + length),
            Until::Items(_) => true,
        }
    }

    fn measured(&self, last_answer: Instant) -> Duration {
        match self.until {
            Until::Elapsed(length) => length,
            Until::Items(_) => last_answer - self.created,
        }
    }
}

/// One keep-alive connection with one request in flight.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    lane: usize,
    requests: Vec<Request>,
    turn: usize,
    sent: usize,
    started: Instant,
    received: Vec<u8>,
    filled: usize,
    answered: u64,
    idle: bool,
}

impl Connection {
    fn new(stream: TcpStream, lane: usize, requests: Vec<Request>) -> Self {
        Self {
            stream,
            lane,
            requests,
            turn: 0,
            sent: 0,
            started: Instant::now(),
            received: vec![0; 64 << 10],
            filled: 0,
            answered: 0,
            idle: true,
        }
    }

    fn items_per_request(&self) -> u64 {
        self.requests.first().map_or(0, |request| request.item_count() as u64)
    }

    fn start(&mut self, lanes: &mut [Lane<'_>], now: Instant) -> Result<()> {
        let sequence = &mut lanes.get_mut(self.lane).context("a connection without a lane")?.sequence;
        self.turn = (self.turn + 1) % self.requests.len();
        self.requests.get_mut(self.turn).expect("turn stays below the count").stamp(sequence);
        (self.sent, self.filled, self.started, self.idle) = (0, 0, now, false);
        self.send()
    }

    /// Called on every event; the start time of the request when its answer is complete.
    fn advance(&mut self) -> Result<Option<Instant>> {
        if self.idle {
            return Ok(None);
        }
        self.send()?;
        loop {
            let space = self.received.get_mut(self.filled..).unwrap_or_default();
            match self.stream.read(space) {
                Ok(0) => bail!("the server closed a connection after {} answers", self.answered),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).context("reading an answer"),
            }
            let received = self.received.get(..self.filled).unwrap_or_default();
            if let Some(answer) = Answer::parse(received)? {
                self.check(&answer)?;
                self.answered += 1;
                self.idle = true;
                return Ok(Some(self.started));
            }
            ensure!(self.filled < self.received.len(), "an answer to a write of over {} bytes", self.filled);
        }
    }

    fn send(&mut self) -> Result<()> {
        let bytes = self.requests.get(self.turn).map_or(&[][..], Request::bytes);
        while let Some(rest) = bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("sending a request"),
            }
        }
        Ok(())
    }

    /// Every status is looked at; the first body of a connection too, because a 200 can still be a refusal.
    fn check(&self, answer: &Answer) -> Result<()> {
        if answer.status == 200 && self.answered > 0 {
            return Ok(());
        }
        let body = answer.body(self.received.get(..self.filled).unwrap_or_default())?;
        ensure!(answer.status == 200, "a write was answered {}: {}", answer.status, excerpt(&body));
        let value: serde_json::Value =
            serde_json::from_slice(&body).with_context(|| format!("not JSON: {}", excerpt(&body)))?;
        let taken = value.get("success").and_then(serde_json::Value::as_bool).unwrap_or_default()
            || value.get("accepted").and_then(serde_json::Value::as_u64) == Some(self.items_per_request());
        ensure!(taken, "a write was not taken: {}", excerpt(&body));
        Ok(())
    }
}
