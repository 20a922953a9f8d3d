//! A link that can be cut, frozen or slowed: a TCP proxy on loopback.
//!
//! Each direction of a connection has two threads and a bounded queue between them, so that a slow link delays
//! bytes without holding up the ones behind: what was sent together arrives together, later.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 16 << 10;
/// With chunks of 16 kB a megabyte is on its way in each direction, as in the buffers of a network.
const CHUNKS_WAITING: usize = 64;

/// Ends with its value, and all connections with it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    link: Arc<Link>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Stands before a port of this machine.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(target_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let link = Arc::new(Link {
            target: SocketAddr::from(([127, 0, 0, 1], target_port)),
            now: Mutex::new(Now { state: State::Up, pace: None, cuts: 0, open: Vec::new() }),
            changed: Condvar::new(),
        });
        let accepting = link.clone();
        let acceptor = std::thread::spawn(move || accept(&listener, &accepting));
        Self { port, link, acceptor: Some(acceptor) }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes every connection and takes no new one.
    pub fn cut(&self) {
        self.link.set(State::Cut);
    }

    /// Lets nothing through, while connections stay open: what either side sees when the network is gone.
    pub fn freeze(&self) {
        self.link.set(State::Frozen);
    }

    /// Every byte takes this much longer, and no more go through in a second, in either direction.
    pub fn slow(&self, delay: Duration, bytes_per_sec: u64) {
        let mut now = self.link.lock();
        now.pace = Some(Pace { delay, bytes_per_sec: bytes_per_sec.max(1) });
        self.link.changed.notify_all();
    }

    /// As it was at first. What was frozen goes on its way; what was cut has to connect again.
    pub fn heal(&self) {
        self.link.lock().pace = None;
        self.link.set(State::Up);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.link.set(State::Over);
        // It waits for a connection, and this is the last.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

#[derive(Debug)]
struct Link {
    target: SocketAddr,
    now: Mutex<Now>,
    /// Wakes whoever waits to let bytes through.
    changed: Condvar,
}

#[derive(Debug)]
struct Now {
    state: State,
    pace: Option<Pace>,
    /// A connection that was made before the last cut has to end.
    cuts: u64,
    /// Both ends of every connection since the last cut.
    open: Vec<TcpStream>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Frozen,
    Cut,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    delay: Duration,
    bytes_per_sec: u64,
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        let mut now = self.lock();
        now.state = state;
        if matches!(state, State::Cut | State::Over) {
            now.cuts += 1;
            for stream in now.open.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until the link is not frozen. False if the connection was cut.
    fn await_passage(&self, cuts: u64) -> bool {
        let now = self.lock();
        let now = self.changed.wait_while(now, |now| now.state == State::Frozen && now.cuts == cuts);
        now.unwrap_or_else(PoisonError::into_inner).cuts == cuts
    }

    /// Waits until bytes that came at a time may go. False if the connection was cut.
    fn await_turn(&self, cuts: u64, read_at: Instant, free_at: &mut Instant, bytes: usize) -> bool {
        loop {
            if !self.await_passage(cuts) {
                return false;
            }
            let now = self.lock();
            let Some(pace) = now.pace else { return true };
            let due = (read_at + pace.delay).max(*free_at);
            let wait = due.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                *free_at = due + Duration::from_secs_f64(bytes as f64 / pace.bytes_per_sec as f64);
                return true;
            }
            drop(self.changed.wait_timeout(now, wait));
        }
    }
}

fn accept(listener: &TcpListener, link: &Arc<Link>) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((client, _)) = listener.accept() {
        let (state, cuts) = {
            let now = link.lock();
            (now.state, now.cuts)
        };
        match state {
            State::Over => break,
            State::Cut => continue,
            State::Up | State::Frozen => {}
        }
        connections.retain(|connection| !connection.is_finished());
        let link = link.clone();
        connections.push(std::thread::spawn(move || connect(&client, &link, cuts)));
    }
    for connection in connections {
        let _ = connection.join();
    }
}

/// Carries one connection to its end.
fn connect(client: &TcpStream, link: &Link, cuts: u64) {
    if !link.await_passage(cuts) {
        return;
    }
    let Ok(server) = TcpStream::connect_timeout(&link.target, Duration::from_secs(1)) else { return };
    let register = || {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ends = [client.try_clone()?, server.try_clone()?];
        let mut now = link.lock();
        if now.cuts == cuts {
            now.open.extend(ends);
            return Ok(true);
        }
        std::io::Result::Ok(false)
    };
    if !register().unwrap_or(false) {
        return;
    }
    std::thread::scope(|scope| {
        for (from, to) in [(client, &server), (&server, client)] {
            let (sender, receiver) = sync_channel(CHUNKS_WAITING);
            scope.spawn(move || take(from, &sender));
            scope.spawn(move || give(to, &receiver, link, cuts));
        }
    });
}

struct Chunk {
    read_at: Instant,
    bytes: Vec<u8>,
}

fn take(mut from: &TcpStream, queue: &SyncSender<Chunk>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = buffer.get(..count).unwrap_or_default().to_vec();
        if queue.send(Chunk { read_at: Instant::now(), bytes }).is_err() {
            return;
        }
    }
}

fn give(mut to: &TcpStream, queue: &Receiver<Chunk>, link: &Link, cuts: u64) {
    let mut free_at = Instant::now();
    while let Ok(Chunk { read_at, bytes }) = queue.recv() {
        if !link.await_turn(cuts, read_at, &mut free_at, bytes.len()) || to.write_all(&bytes).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    // The end of a connection goes through a frozen link as little as its bytes do.
    link.await_passage(cuts);
    let _ = to.shutdown(Shutdown::Write);
}
