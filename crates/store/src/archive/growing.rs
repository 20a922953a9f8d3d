//! JSONL files on a disk that grow line by line, so that a viewer can follow them.
//!
//! Bytes go to a fixed offset behind what is known to be safe. A write that failed half way is simply done again, and
//! a crash leaves at most a tail that the next start cuts off.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cursor::{Cursor, OpenFile, sync_parent};
use super::error::ArchiveError;
use super::layout::{Day, Stream};
use super::settings::Limits;

/// The growing files of a run, one a stream.
#[derive(Debug, Default)]
pub(super) struct Growing {
    rollouts: Option<Open>,
    fates: Option<Open>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    day: Day,
    file: File,
    /// What is safe.
    len: u64,
    /// What comes behind it.
    buffer: Vec<u8>,
    since: Instant,
}

impl Growing {
    /// Goes on with the files of a cursor, cut to what it knows of them.
    pub(super) fn resume(cursor: &Cursor) -> Result<Self, ArchiveError> {
        let mut growing = Self::default();
        for known in &cursor.open {
            let stream = if known.is_fates { Stream::Fates } else { Stream::Rollouts };
            *growing.slot(stream) = Open::resume(known)?;
        }
        Ok(growing)
    }

    /// Whether the next lines need a new file.
    pub(super) fn is_done(&self, stream: Stream, day: Day, limits: Limits) -> bool {
        self.get(stream).is_none_or(|open| {
            open.day != day
                || open.len + open.buffer.len() as u64 >= limits.bytes
                || open.since.elapsed() >= limits.after
        })
    }

    /// The open files as a cursor has them, with `next` in the place of its stream's.
    pub(super) fn as_known(&self, next: Option<(Stream, Day, &Path)>) -> Vec<OpenFile> {
        let known = |stream: Stream| {
            let is_fates = stream == Stream::Fates;
            match next {
                Some((of, day, path)) if of == stream => {
                    Some(OpenFile { is_fates, day: day.number(), path: path.to_owned(), len: 0 })
                }
                _ => self.get(stream).map(|open| OpenFile {
                    is_fates,
                    day: open.day.number(),
                    path: open.path.clone(),
                    len: open.len,
                }),
            }
        };
        Stream::ALL.into_iter().filter_map(known).collect()
    }

    /// Begins a file. Whatever had its name was left by a crash.
    pub(super) fn begin(&mut self, stream: Stream, day: Day, path: &Path) -> Result<(), ArchiveError> {
        let make = || {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            let file = File::create(path)?;
            sync_parent(path)?;
            Ok(file)
        };
        let file = make().map_err(ArchiveError::io("begin a file of the archive", path))?;
        let (path, buffer, since) = (path.to_owned(), Vec::new(), Instant::now());
        *self.slot(stream) = Some(Open { path, day, file, len: 0, buffer, since });
        Ok(())
    }

    pub(super) fn push(&mut self, stream: Stream, lines: &[u8]) {
        if let Some(open) = self.slot(stream) {
            open.buffer.extend(lines);
        }
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        [&self.rollouts, &self.fates].into_iter().flatten().map(|open| open.buffer.len()).sum()
    }

    /// Makes everything durable.
    pub(super) fn save(&mut self) -> Result<(), ArchiveError> {
        [&mut self.rollouts, &mut self.fates].into_iter().flatten().try_for_each(Open::save)
    }

    fn get(&self, stream: Stream) -> Option<&Open> {
        match stream {
            Stream::Rollouts => self.rollouts.as_ref(),
            Stream::Fates => self.fates.as_ref(),
        }
    }

    fn slot(&mut self, stream: Stream) -> &mut Option<Open> {
        match stream {
            Stream::Rollouts => &mut self.rollouts,
            Stream::Fates => &mut self.fates,
        }
    }
}

impl Open {
    fn resume(known: &OpenFile) -> Result<Option<Self>, ArchiveError> {
        let path = &known.path;
        let failed = |doing| ArchiveError::io(doing, path);
        let file = match File::options().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if known.len > 0 {
                    tracing::warn!("a file of the archive was taken away: {}", path.display());
                }
                return Ok(None);
            }
            Err(error) => return Err(failed("open a file of the archive")(error)),
        };
        let len = file.metadata().map_err(failed("look at a file of the archive"))?.len();
        if len < known.len {
            // Somebody shortened it. What is left is theirs; the archive goes on in another file.
            tracing::warn!(
                expected = known.len,
                found = len,
                "a file of the archive was cut: {}",
                path.display()
            );
            return Ok(None);
        }
        file.set_len(known.len).map_err(failed("cut a file of the archive"))?;
        let (path, day, buffer) = (path.clone(), Day::from_number(known.day), Vec::new());
        Ok(Some(Self { path, day, file, len: known.len, buffer, since: Instant::now() }))
    }

    fn save(&mut self) -> Result<(), ArchiveError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all_at(&self.buffer, self.len).and_then(|()| self.file.sync_data());
        written.map_err(ArchiveError::io("write a file of the archive", &self.path))?;
        self.len += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(8 << 20);
        Ok(())
    }
}
