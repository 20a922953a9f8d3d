//! How Rust reaches an asyncio loop: one mailbox a loop, and one wake-up for many letters.
//!
//! A letter is something to do on the loop's thread, with the GIL: to complete a future, to begin an episode. Rust's
//! threads put letters in without the GIL, and write a byte to a socket that the loop watches only if the
//! mailbox was empty. So no thread of Rust's waits for Python, and under load one wake-up carries hundreds.

use pyo3::prelude::*;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) type Letter = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// The slot that letters are put into.
pub(crate) struct Slot {
    letters: Mutex<Option<Vec<Letter>>>,
    bell: UnixStream,
}

impl Slot {
    /// Letters to a loop that is closed are dropped, and with them whatever waits for their effect.
    pub(crate) fn post(&self, letter: Letter) {
        let was_empty = match self.lock().as_mut() {
            Some(letters) => {
                letters.push(letter);
                letters.len() == 1
            }
            None => false,
        };
        if was_empty {
            // Full of bells that nobody heard yet is as good as one more.
            let _ = (&self.bell).write(&[1]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Letter>>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop's end of it.
#[pyclass(frozen, module = "rollyard._rollyard")]
pub(crate) struct Mailbox {
    slot: Arc<Slot>,
    heard: UnixStream,
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let (heard, bell) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(Self { slot: Arc::new(Slot { letters: Mutex::new(Some(Vec::new())), bell }), heard })
    }

    /// What the loop watches: it is readable when there are letters.
    fn fileno(&self) -> i32 {
        self.heard.as_raw_fd()
    }

    /// Does what all letters say. Called by the loop, on its thread.
    fn drain(&self, py: Python<'_>) {
        let mut bells = [0; 64];
        // Before the letters are taken: a bell after that is for letters that come after.
        let _ = (&self.heard).read(&mut bells);
        let letters = self.slot.lock().as_mut().map(std::mem::take).unwrap_or_default();
        for letter in letters {
            if let Err(error) = letter(py) {
                // One letter must not keep the others from being read.
                error.write_unraisable(py, None);
            }
        }
    }

    /// Takes no more letters, and drops those that are there.
    fn close(&self, py: Python<'_>) {
        let letters = self.slot.lock().take();
        py.detach(|| drop(letters));
    }
}

impl Mailbox {
    pub(crate) fn slot(&self) -> Arc<Slot> {
        self.slot.clone()
    }
}
