//! Five thousand connections that a server must carry without slowing down for the rest.
//!
//! Most only stay open. Some dribble a rollout in, one byte at a time, and never finish. Some ask for a
//! batch through a tiny receive window and read nothing of it, so that the server's send blocks half-way.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::http::{Answer, request};
use crate::items::{DEFAULT_RUN, Request, Sequence};

/// How often each slow writer sends its next byte.
const BYTE_EVERY: Duration = Duration::from_millis(250);
/// Dribblers are served in this many slices, so that their bytes arrive spread out.
const SLICES: usize = 50;
/// A crowd never outlives this, even if nobody stops it.
const LIFE_SECS_MAX: u64 = 600;
const RECEIVE_WINDOW_BYTES: usize = 4096;

/// Who is in the crowd.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members {
    pub(crate) open: usize,
    pub(crate) slow_writers: usize,
    pub(crate) slow_readers: usize,
    /// How much each slow reader asks for.
    pub(crate) items_per_reader: usize,
}

/// An open crowd; it starts paused.
#[derive(Debug)]
pub(crate) struct Crowd {
    idle: Vec<TcpStream>,
    slow_readers: Vec<TcpStream>,
    slow_writers: Vec<TcpStream>,
    switch: Arc<Switch>,
    dribble: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Switch {
    moving: AtomicBool,
    stopped: AtomicBool,
}

impl Crowd {
    pub(crate) fn gather(address: SocketAddr, members: Members) -> Result<Self> {
        raise_open_files(members.open as u64 + 100)?;
        let slow_readers = (0..members.slow_readers)
            .map(|_| slow_reader(address, members.items_per_reader))
            .collect::<Result<Vec<_>>>()?;
        let mut sequence = Sequence::new('d', 1);
        let mut rollout = Request::single(address, DEFAULT_RUN, 1);
        let mut writers = Vec::with_capacity(members.slow_writers);
        let mut slow_writers = Vec::with_capacity(members.slow_writers);
        for _ in 0..members.slow_writers {
            rollout.stamp(&mut sequence);
            let writer = SlowWriter::connect(address, &rollout)?;
            slow_writers.push(writer.stream.try_clone()?);
            writers.push(writer);
        }
        // The clones of the slow writers share their sockets: they are not further connections.
        let others = members.open.saturating_sub(members.slow_readers + members.slow_writers);
        let idle = (0..others).map(|index| open(address, index)).collect::<Result<Vec<_>>>()?;
        let switch = Arc::new(Switch::default());
        let dribble = std::thread::spawn({
            let switch = Arc::clone(&switch);
            move || dribble(&mut writers, &switch)
        });
        Ok(Self { idle, slow_readers, slow_writers, switch, dribble: Some(dribble) })
    }

    pub(crate) fn resume(&self) {
        self.switch.moving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn pause(&self) {
        self.switch.moving.store(false, Ordering::Relaxed);
    }

    /// Connections that the server has not closed; slow readers are left out, for looking is reading.
    pub(crate) fn still_open(&self) -> usize {
        // They are owed nothing: an early answer is as much of a goodbye as a close.
        let open = |stream: &&TcpStream| {
            stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        };
        self.idle.iter().chain(&self.slow_writers).filter(open).count() + self.slow_readers.len()
    }

    /// One slow reader reads after all: its whole batch must still come.
    pub(crate) fn finish_one_reader(&mut self) -> Result<usize> {
        let mut stream = self.slow_readers.pop().context("a crowd without slow readers")?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut received = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            let count = stream.read(&mut part)?;
            ensure!(count > 0, "the server hung up on a slow reader after {} bytes", received.len());
            received.extend_from_slice(part.get(..count).unwrap_or_default());
            if let Some(answer) = Answer::parse(&received)? {
                let body = answer.body(&received)?;
                ensure!(answer.status == 200, "a slow reader was answered {}", answer.status);
                let batch: serde_json::Value = serde_json::from_slice(&body)?;
                return Ok(batch.pointer("/data/data").and_then(|data| data.as_array()).map_or(0, Vec::len));
            }
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.switch.stopped.store(true, Ordering::Relaxed);
        if let Some(dribble) = self.dribble.take() {
            let _ = dribble.join();
        }
    }
}

fn dribble(writers: &mut [SlowWriter], switch: &Switch) {
    let begin = Instant::now();
    let per_slice = writers.len().div_ceil(SLICES).max(1);
    while begin.elapsed().as_secs() < LIFE_SECS_MAX {
        for slice in writers.chunks_mut(per_slice) {
            if switch.stopped.load(Ordering::Relaxed) {
                return;
            }
            if switch.moving.load(Ordering::Relaxed) {
                slice.iter_mut().for_each(SlowWriter::send_byte);
            }
            std::thread::sleep(BYTE_EVERY / SLICES as u32);
        }
    }
}

#[derive(Debug)]
struct SlowWriter {
    stream: TcpStream,
    rest: VecDeque<u8>,
}

impl SlowWriter {
    /// Sends the head and the first bytes of the item at once: the server is now inside a body.
    fn connect(address: SocketAddr, rollout: &Request) -> Result<Self> {
        let mut stream = open(address, 0)?;
        let head_bytes = rollout.bytes().len() - rollout.body().len();
        let (first, rest) = rollout.bytes().split_at(head_bytes + 10);
        stream.write_all(first)?;
        Ok(Self { stream, rest: VecDeque::from(rest.to_vec()) })
    }

    fn send_byte(&mut self) {
        // The last byte is kept back: a slow writer that finishes is no longer one.
        if self.rest.len() > 1
            && let Some(byte) = self.rest.pop_front()
            && let Err(error) = self.stream.write(&[byte])
            && error.kind() != ErrorKind::WouldBlock
        {
            // Closed by the server; `still_open` counts it.
            self.rest.clear();
        }
    }
}

fn open(address: SocketAddr, index: usize) -> Result<TcpStream> {
    let stream = TcpStream::connect(address)
        .with_context(|| format!("cannot open connection {index} of the crowd"))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn slow_reader(address: SocketAddr, items: usize) -> Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    // Must be set before the connection exists: the window is agreed on in the handshake.
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_WINDOW_BYTES)?;
    connect(&socket, &address).context("cannot open a slow reader")?;
    let mut stream = TcpStream::from(socket);
    let body = format!("{{\"batch_size\":{items}}}");
    stream.write_all(request(address, "POST", "/get_rollout_data", &body).as_bytes())?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// The limit of this process only: a server has to raise its own.
fn raise_open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let enough = |value: Option<u64>| value.is_none_or(|value| value >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    ensure!(
        enough(limit.maximum),
        "{needed} open files needed, the hard limit is {:?} (ulimit -Hn)",
        limit.maximum
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })?;
    Ok(())
}
