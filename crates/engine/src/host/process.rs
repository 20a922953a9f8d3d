//! One worker process: its pipe, who waits for its replies, and what it said before it died.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::frame::{self, Answer, Order};
use super::{HostConfig, HostError};
use crate::lines::{LastLines, Printed, follow};
use crate::stats::Stats;

/// Orders that may wait for a worker to read them.
const ORDERS_MAX: usize = 1024;

/// It is asked to end by closing its pipe, and gets so long to do it.
const GRACE: Duration = Duration::from_secs(2);

/// A worker process that can be talked to.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) pid: u32,
    orders: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<Waiting>,
    next_id: AtomicU64,
    in_flight: AtomicUsize,
    answered: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    by_id: HashMap<u64, oneshot::Sender<Answer>>,
    /// Why nobody will be answered any more.
    ended: Option<String>,
}

/// The process itself, for whoever looks after it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    orders: mpsc::Receiver<Vec<u8>>,
    last_lines: LastLines,
    reader: JoinHandle<()>,
}

impl Worker {
    /// Starts a process. It is not ready before its first reply.
    pub(super) fn start(config: &HostConfig) -> Result<(Arc<Self>, Running), HostError> {
        let python = config.interpreter();
        let mut command = Command::new(&python);
        command.args(["-u", "-m", "rollyard.host"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C is for us; workers end when we do. The group also lets us end what they started.
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| HostError::NoPython {
            reason: error.to_string(),
            python: python.display().to_string(),
        })?;
        let gone = || HostError::Lost("its pipe could not be opened".to_owned());
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        let errors = child.stderr.take().ok_or_else(gone)?;
        let pid = child.id().unwrap_or_default();
        let last_lines = LastLines::default();
        let printed = config.printed.clone().unwrap_or_else(Printed::to_stderr);
        let reader = tokio::spawn(follow(errors, printed, last_lines.clone()));
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let worker = Self {
            pid,
            orders: sender,
            waiting: Mutex::default(),
            // 0 is the reply to the start.
            next_id: AtomicU64::new(1),
            in_flight: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
        };
        Ok((Arc::new(worker), Running { child, input, output, orders, last_lines, reader }))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// It has done something, so it is not the worker itself that is broken.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed) > 0
    }

    pub(super) fn vouch(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// The reply to the start.
    pub(super) fn ready(&self) -> Pending<'_> {
        self.expect(0)
    }

    /// Sends an order, made with its id, and gives what to wait on for the answer. Dropping that cancels it.
    pub(super) async fn ask(&self, order: impl FnOnce(u64) -> Vec<u8>) -> Pending<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let pending = self.expect(id);
        // If nobody reads any more, the worker has ended, and whoever waits is told so.
        let _ = self.orders.send(order(id)).await;
        pending
    }

    /// Sends without waiting for anything: for a worker nobody else talks to yet.
    pub(super) fn tell(&self, order: impl FnOnce(u64) -> Vec<u8>) -> bool {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.orders.try_send(order(id)).is_ok()
    }

    fn expect(&self, id: u64) -> Pending<'_> {
        let (sender, receiver) = oneshot::channel();
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting();
        if waiting.ended.is_none() {
            waiting.by_id.insert(id, sender);
        }
        Pending { worker: self, id, receiver, answered: false }
    }

    fn answer(&self, id: u64, answer: Answer) {
        // Nobody waits for what was cancelled.
        if let Some(sender) = self.waiting().by_id.remove(&id) {
            // To be ready is nothing done yet.
            self.answered.fetch_add(u64::from(id > 0), Ordering::Relaxed);
            let _ = sender.send(answer);
        }
    }

    pub(super) fn end(&self, why: String) {
        let mut waiting = self.waiting();
        waiting.ended = Some(why);
        waiting.by_id.clear();
    }

    fn why_ended(&self) -> String {
        self.waiting().ended.clone().unwrap_or_else(|| "the host was closed".to_owned())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is to come.
#[derive(Debug)]
pub(super) struct Pending<'a> {
    worker: &'a Worker,
    id: u64,
    receiver: oneshot::Receiver<Answer>,
    answered: bool,
}

impl Pending<'_> {
    pub(super) async fn answer(mut self) -> Result<Answer, HostError> {
        let answer = (&mut self.receiver).await;
        self.answered = true;
        answer.map_err(|_| HostError::Lost(self.worker.why_ended()))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.worker.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            self.worker.waiting().by_id.remove(&self.id);
            // A pipe so full that this does not fit leads to a worker that will not get to the episode either.
            let _ = self.worker.orders.try_send(Order::Cancel { id: self.id }.frame());
        }
    }
}

impl Running {
    /// Carries orders and replies until the process ends or `stop` is heard. Gives why it ended.
    pub(super) async fn run(self, worker: &Worker, stats: &Stats, stop: impl Future<Output = ()>) -> String {
        let Self { mut child, mut input, output, mut orders, last_lines, reader } = self;
        let mut output = BufReader::with_capacity(1 << 16, output);
        let broken = tokio::select! {
            // Both go on at once: a worker that waits to write must not keep us from reading.
            broken = receive(&mut output, worker, stats) => broken,
            broken = send(&mut input, &mut orders) => broken,
            () = stop => None,
        };
        // It ends when its pipe does.
        drop(input);
        let ended = match timeout(GRACE, child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it did not end by itself and was killed".to_owned(),
        };
        end_group(worker.pid);
        // Somebody else may hold the other end of it.
        let _ = timeout(GRACE, reader).await;
        let lines = last_lines.all();
        let mut why = format!("process {}: {ended}", worker.pid);
        for part in broken.into_iter().chain((!lines.is_empty()).then(|| lines.join("\n"))) {
            why.push_str("; ");
            why.push_str(&part);
        }
        why
    }
}

/// Ends what the worker left behind, and the worker if it is still there.
pub(super) fn end_group(pid: u32) {
    let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // Mostly there is nobody left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// `None` at the end of the pipe.
async fn receive(output: &mut (impl AsyncRead + Unpin), worker: &Worker, stats: &Stats) -> Option<String> {
    loop {
        match frame::read(output).await {
            Ok(Some(reply)) => {
                stats.merge(&reply.stats);
                worker.answer(reply.id, reply.answer);
            }
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

async fn send(input: &mut ChildStdin, orders: &mut mpsc::Receiver<Vec<u8>>) -> Option<String> {
    while let Some(order) = orders.recv().await {
        if input.write_all(&order).await.is_err() {
            // It has ended; the other side knows why.
            std::future::pending::<()>().await;
        }
    }
    None
}
