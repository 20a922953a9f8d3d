//! Lines for loggers that have no yard: handed over in memory, written by a thread.
//!
//! Whoever logs pays for a copy of the line. A thread appends what has gathered to a file in one write, so that several
//! processes can share the file and no line is ever torn by another; or it puts it in a bucket as an object of its own,
//! since an object cannot be appended to. What cannot be written is kept and tried again, and whoever logs next hears
//! of it. When far too much waits, logging waits too.

use bytes::Bytes;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::error::ArchiveError;
use crate::places::{Places, Roots};

/// How long a line may wait for others.
const GATHER_FOR: Duration = Duration::from_millis(100);

/// What goes out without waiting for more.
const GATHER_BYTES: usize = 1 << 20;

/// What may wait in memory before logging has to.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// How long a failed write is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Where lines go.
#[derive(Debug)]
pub enum Target {
    /// Appended to a file; its folder is made.
    File(PathBuf),
    /// Objects named after the first: `a.jsonl`, `a.0001.jsonl` and so on, one whenever it is asked for.
    Objects(String),
}

/// Takes lines from any thread. Dropping it writes what there is, if that can be done.
#[derive(Debug)]
pub struct LineWriter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something for the thread to do.
    work: Condvar,
    /// The thread has done something.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    count: u64,
    /// Lines that the thread has in hand.
    in_hand: u64,
    written: u64,
    /// Somebody waits, or an object is complete.
    asked: bool,
    closing: bool,
    error: Option<String>,
    /// Failures so far, so that whoever waits sees a new one.
    failures: u64,
}

/// Lines that are not written, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{lines} lines are not written yet: {why}")]
pub struct Unwritten {
    pub lines: u64,
    pub why: String,
}

impl LineWriter {
    /// Begins; the thread is started with it.
    pub fn open(target: Target) -> Result<Self, ArchiveError> {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new(), done: Condvar::new() });
        let output = match target {
            Target::File(path) => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                if let Some(folder) = folder {
                    fs::create_dir_all(folder).map_err(ArchiveError::io("make the folder", folder))?;
                }
                // Whoever cannot write should hear it now, not at the first line.
                open_append(&path).map_err(ArchiveError::io("open", &path))?;
                Output::File { path, file: None }
            }
            Target::Objects(first) => {
                Output::Objects { places: Places::new(Roots::Anywhere), first, next: 0 }
            }
        };
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rollyard logger".into())
            .spawn(move || of_thread.write_all(output))
            .map_err(ArchiveError::Thread)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Takes a line, which ends with a line break. Says if earlier ones could not be written; this one is kept as well.
    pub fn log(&self, line: &[u8]) -> Result<(), Unwritten> {
        let mut state = self.shared.lock();
        while state.lines.len() >= WAITING_BYTES_MAX && !state.closing {
            state.asked = true;
            self.shared.work.notify_one();
            let failures = state.failures;
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            if state.failures != failures {
                return Err(state.unwritten());
            }
        }
        let was_empty = state.lines.is_empty();
        state.lines.extend(line);
        state.count += 1;
        if was_empty || state.lines.len() >= GATHER_BYTES {
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Has what there is written soon, without waiting for it.
    pub fn flush_soon(&self) {
        self.shared.lock().asked = true;
        self.shared.work.notify_one();
    }

    /// Waits until everything is written, or could not be.
    pub fn flush(&self) -> Result<(), Unwritten> {
        let mut state = self.shared.lock();
        let failures = state.failures;
        while state.count + state.in_hand > 0 {
            if state.closing {
                return Err(state.unwritten());
            }
            state.asked = true;
            self.shared.work.notify_one();
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            if state.failures != failures {
                return Err(state.unwritten());
            }
        }
        Ok(())
    }

    /// Lines written so far.
    pub fn written(&self) -> u64 {
        self.shared.lock().written
    }

    /// What failed last, if it still does.
    pub fn trouble(&self) -> Option<Unwritten> {
        let state = self.shared.lock();
        state.error.is_some().then(|| state.unwritten())
    }

    /// Writes what there is and ends the thread. What could not be written is lost, and counted.
    pub fn close(&self) -> Result<(), Unwritten> {
        let flushed = self.flush();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.shared.lock().closing = true;
        self.shared.work.notify_one();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("a logger's thread panicked");
        }
        // What is lost is told once.
        let mut state = self.shared.lock();
        (state.count, state.in_hand) = (0, 0);
        state.lines.clear();
        drop(state);
        flushed
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        if let Err(lost) = self.close() {
            tracing::error!("lost: {lost}");
        }
    }
}

impl State {
    fn unwritten(&self) -> Unwritten {
        Unwritten { lines: self.count + self.in_hand, why: self.error.clone().unwrap_or_default() }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread: takes what has gathered and writes it, until it is told to end.
    fn write_all(&self, mut output: Output) {
        loop {
            let (mut lines, count) = {
                let mut state = self.gather(output.waits_to_be_asked());
                if state.closing {
                    return;
                }
                state.asked = false;
                state.in_hand = std::mem::take(&mut state.count);
                (std::mem::take(&mut state.lines), state.in_hand)
            };
            while let Err(error) = output.write(&mut lines) {
                let mut state = self.lock();
                state.error = Some(error.to_string());
                state.failures += 1;
                self.done.notify_all();
                let waited = self.work.wait_timeout_while(state, RETRY_AFTER, |state| !state.closing);
                if waited.unwrap_or_else(PoisonError::into_inner).0.closing {
                    return;
                }
            }
            let mut state = self.lock();
            state.written += count;
            (state.in_hand, state.error) = (0, None);
            self.done.notify_all();
        }
    }

    /// Waits until there is something to write, and a little for more of it.
    fn gather(&self, until_asked: bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let mut until = None;
        loop {
            if state.closing
                || (state.count > 0 && (state.asked || state.lines.len() >= GATHER_BYTES && !until_asked))
            {
                return state;
            }
            if state.lines.len() >= WAITING_BYTES_MAX {
                return state;
            }
            state.asked &= state.count > 0;
            if state.count == 0 || until_asked {
                until = None;
                self.done.notify_all();
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let until = *until.get_or_insert_with(|| Instant::now() + GATHER_FOR);
            let now = Instant::now();
            if now >= until {
                return state;
            }
            let waited = self.work.wait_timeout(state, until - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Where the thread writes to.
enum Output {
    File { path: PathBuf, file: Option<File> },
    Objects { places: Places, first: String, next: u32 },
}

impl Output {
    /// Objects are made when somebody asks; a file takes everything at once.
    fn waits_to_be_asked(&self) -> bool {
        matches!(self, Self::Objects { .. })
    }

    /// Writes the lines. What was written before a failure is taken out of them.
    fn write(&mut self, lines: &mut Vec<u8>) -> Result<(), ArchiveError> {
        match self {
            Self::File { path, file } => {
                let appended = append(path, file, lines);
                if appended.is_err() {
                    // Opened anew for the next try: the file may have been moved, or its disk be another one.
                    *file = None;
                }
                appended.map_err(ArchiveError::io("append", path))
            }
            Self::Objects { places, first, next } => {
                let url = match *next {
                    0 => first.clone(),
                    n => format!("{}.{n:04}.jsonl", first.strip_suffix(".jsonl").unwrap_or(first)),
                };
                let mut upload = places.create(&url)?;
                upload.write(Bytes::copy_from_slice(lines))?;
                upload.finish()?;
                *next += 1;
                Ok(())
            }
        }
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).read(true).open(path)
}

fn append(path: &Path, open: &mut Option<File>, lines: &mut Vec<u8>) -> io::Result<()> {
    let is_new = open.is_none();
    let file = match open {
        Some(file) => file,
        None => open.insert(open_append(path)?),
    };
    // A long write becomes visible page by page: without a lock, who looks in the middle of it sees a torn line. Where
    // files cannot be locked, that costs at most an empty line.
    let _unlocked_where_it_cannot_be = flock(&*file, FlockOperation::LockExclusive);
    let appended = append_locked(file, is_new, lines);
    let _unlocked_with_the_file = flock(&*file, FlockOperation::Unlock);
    appended
}

fn append_locked(file: &mut File, is_new: bool, lines: &mut Vec<u8>) -> io::Result<()> {
    if is_new && !ends_with_line(file)? {
        // Somebody died in the middle of a line. It stays what it is, and ours begin on their own.
        lines.insert(0, b'\n');
    }
    while !lines.is_empty() {
        // One call for everything: the system appends it as a whole, whoever else writes.
        match file.write(lines) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) if written >= lines.len() => lines.clear(),
            Ok(written) => {
                // A full disk. The line that was torn is written again as a whole, on a line of its own.
                let whole =
                    lines.get(..written).and_then(|part| part.iter().rposition(|byte| *byte == b'\n'));
                lines.drain(..whole.map_or(0, |end| end + 1));
                lines.insert(0, b'\n');
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn ends_with_line(file: &mut File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    // What is no file, such as a pipe, has no end to look at.
    if len == 0 || !file.metadata()?.is_file() {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(who: usize, n: usize) -> String {
        format!("{{\"who\":{who},\"n\":{n},\"text\":\"{}\"}}\n", "x".repeat(n % 997))
    }

    #[test]
    fn lines_of_several_writers_are_whole_and_each_is_there_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/folder/log.jsonl");
        std::thread::scope(|scope| {
            for who in 0..4 {
                let path = path.clone();
                scope.spawn(move || {
                    let writer = LineWriter::open(Target::File(path)).unwrap();
                    (0..2000).for_each(|n| writer.log(line(who, n).as_bytes()).unwrap());
                    writer.close().unwrap();
                    assert_eq!(writer.written(), 2000);
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
        lines.sort_unstable();
        let mut expected: Vec<String> = (0..4).flat_map(|who| (0..2000).map(move |n| line(who, n))).collect();
        expected.sort_unstable();
        assert!(lines == expected);
    }

    #[test]
    fn a_flushed_line_is_in_the_file_behind_what_was_torn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::fs::write(&path, "{\"torn").unwrap();
        let writer = LineWriter::open(Target::File(path.clone())).unwrap();
        writer.log(b"{}\n").unwrap();
        writer.flush().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"torn\n{}\n");
    }

    #[test]
    fn what_cannot_be_written_is_kept_and_told() {
        let writer = LineWriter::open(Target::File("/dev/full".into())).unwrap();
        for _ in 0..3 {
            writer.log(b"{}\n").unwrap();
        }
        let lost = writer.flush().unwrap_err();
        assert_eq!(lost.lines, 3);
        assert!(lost.why.contains("/dev/full"), "{lost}");
        assert!(writer.trouble().is_some());
        assert_eq!(writer.close().unwrap_err().lines, 3);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_refused_at_once() {
        let refused = LineWriter::open(Target::File("/proc/nothing/log.jsonl".into())).unwrap_err();
        assert!(refused.to_string().contains("/proc/nothing"), "{refused}");
    }

    #[test]
    fn every_flush_makes_an_object_that_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("a.jsonl");
        let writer = LineWriter::open(Target::Objects(first.display().to_string())).unwrap();
        for n in 0..3 {
            writer.log(format!("{n}\n").as_bytes()).unwrap();
            writer.flush().unwrap();
        }
        writer.flush().unwrap();
        for (name, text) in [("a.jsonl", "0\n"), ("a.0001.jsonl", "1\n"), ("a.0002.jsonl", "2\n")] {
            assert_eq!(std::fs::read_to_string(dir.path().join(name)).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "an empty flush makes nothing");
    }
}
