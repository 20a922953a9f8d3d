//! A connection that knows whether the other side got what was sent.
//!
//! A read is acked on behalf of clients that cannot ack, so "sent" has to mean something: every byte was
//! acknowledged by the reader's machine and the connection was not reset. The kernel can tell the first
//! (`SIOCOUTQ`, the bytes not yet acknowledged); the second shows when the reader closes with data unread.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A reader that dies with the answer unread resets the connection at once; one that is still there after
/// this has it.
const RESET_GRACE: Duration = Duration::from_millis(50);

/// What is known about a connection, by everyone who has to do with it.
#[derive(Debug)]
pub(crate) struct Watch {
    socket: TcpStream,
    /// An error was seen: whatever was not acknowledged before it is lost.
    broken: AtomicBool,
    /// The other side closed its end in good order.
    finished: AtomicBool,
    requests: AtomicU64,
}

impl Watch {
    /// Called when a request begins: whoever asks again has read the answer before.
    pub(crate) fn begin_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.socket.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
    }

    /// Waits until the answer to the n-th request has arrived, and says whether it has.
    pub(crate) async fn arrived(&self, request: u64, deadline: Instant) -> bool {
        let mut pause = Duration::from_millis(1);
        let mut drained_at: Option<Instant> = None;
        loop {
            if self.broken.load(Ordering::Acquire) || !matches!(self.pending_error(), Ok(None)) {
                return false;
            }
            if self.requests.load(Ordering::Relaxed) > request {
                return true;
            }
            let now = Instant::now();
            match self.unacknowledged_bytes() {
                Ok(0) => {
                    let drained = *drained_at.get_or_insert(now);
                    if self.finished.load(Ordering::Acquire) || now - drained >= RESET_GRACE {
                        return true;
                    }
                }
                Ok(_) => drained_at = None,
                Err(_) => return false,
            }
            if now >= deadline {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn pending_error(&self) -> io::Result<Option<io::Error>> {
        socket2::SockRef::from(&self.socket).take_error()
    }

    #[expect(unsafe_code, reason = "no safe wrapper for SIOCOUTQ; the call writes one int that we own")]
    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is open as long as `self` lives, and the pointer is to a live int.
        let outcome = unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        if outcome == 0 { Ok(u64::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
    }

    fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            self.broken.store(true, Ordering::Release);
        }
        outcome
    }
}

/// The stream as the HTTP side uses it; the socket stays open while anybody still watches it.
#[derive(Debug)]
pub(crate) struct WatchedStream(Arc<Watch>);

impl WatchedStream {
    pub(crate) fn new(socket: TcpStream) -> (Self, Arc<Watch>) {
        let watch = Arc::new(Watch {
            socket,
            broken: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            requests: AtomicU64::new(0),
        });
        (Self(Arc::clone(&watch)), watch)
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let watch = &self.0;
        loop {
            watch.note(ready!(watch.socket.poll_read_ready(cx)))?;
            let wanted = buf.remaining();
            match watch.note(watch.socket.try_read_buf(buf)) {
                Ok(count) => {
                    if count == 0 && wanted > 0 {
                        watch.finished.store(true, Ordering::Release);
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl WatchedStream {
    fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let watch = &self.0;
        loop {
            watch.note(ready!(watch.socket.poll_write_ready(cx)))?;
            match watch.note(attempt(&watch.socket)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_io(cx, |socket| socket.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(cx, |socket| socket.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = socket2::SockRef::from(&self.0.socket).shutdown(std::net::Shutdown::Write);
        // The other side may have closed before us, which is no error of this connection.
        Poll::Ready(outcome.or_else(|error| match error.kind() {
            io::ErrorKind::NotConnected => Ok(()),
            _ => Err(error),
        }))
    }
}
