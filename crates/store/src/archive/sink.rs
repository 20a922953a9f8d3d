//! One format of a run's archive: takes records, decides when a file is done, and moves its cursor.

use std::path::Path;
use std::time::{Duration, Instant};

use super::cursor::{Cursor, CursorFile};
use super::error::ArchiveError;
use super::growing::Growing;
use super::layout::{Day, Format, Layout, Part, Stream};
use super::objects::Objects;
use super::record::Record;
use super::settings::{ArchiveSettings, Limits};
use crate::places::{Places, Roots};

/// How old lines may get before they are on the disk: whoever follows a file is at most this far behind.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// How many bytes may wait for that.
const SAVE_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Sink {
    format: Format,
    layout: Layout,
    /// The name that new files get.
    worker: String,
    limits: Limits,
    file: CursorFile,
    cursor: Cursor,
    /// The last record that was taken.
    taken_seq: u64,
    saved_at: Instant,
    files: Files,
}

#[derive(Debug)]
enum Files {
    Growing(Growing),
    Objects(Objects),
}

impl Sink {
    pub(super) fn open(
        dir: &Path,
        run: &str,
        settings: &ArchiveSettings,
        format: Format,
    ) -> Result<Self, ArchiveError> {
        let file = CursorFile::of(dir, format);
        let root = settings.root();
        let cursor = file.read(&root);
        let (run, worker, tag) = (run.to_owned(), settings.worker.clone(), cursor.tag.clone());
        let mut layout = Layout { root, run, worker, tag };
        let files = if settings.grows(format) {
            Files::Growing(Growing::resume(&cursor)?)
        } else {
            // An upload that the cursor does not know of is done again, under the name it had.
            if !cursor.worker.is_empty() {
                layout.worker.clone_from(&cursor.worker);
            }
            Files::Objects(Objects::new(Places::new(Roots::Anywhere), format))
        };
        let (taken_seq, limits) = (cursor.seq, settings.limits(format));
        let (worker, saved_at) = (settings.worker.clone(), Instant::now());
        let is_new = cursor.worker.is_empty();
        let mut sink = Self { format, layout, worker, limits, file, cursor, taken_seq, saved_at, files };
        if is_new {
            sink.note(None)?;
        }
        Ok(sink)
    }

    pub(super) fn taken_seq(&self) -> u64 {
        self.taken_seq
    }

    /// Everything up to here is safe.
    pub(super) fn saved_seq(&self) -> u64 {
        self.cursor.seq
    }

    /// Takes a record it has not taken yet. A failure leaves it untaken.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), ArchiveError> {
        if record.seq <= self.taken_seq {
            return Ok(());
        }
        match &mut self.files {
            Files::Growing(_) => {
                for stream in Stream::ALL {
                    if !record.lines(stream).is_empty() {
                        self.make_room(stream, record)?;
                    }
                }
                if let Files::Growing(growing) = &mut self.files {
                    Stream::ALL.into_iter().for_each(|stream| growing.push(stream, record.lines(stream)));
                }
            }
            Files::Objects(objects) => {
                if objects.is_full(record.day, self.limits) {
                    self.save()?;
                }
                if let Files::Objects(objects) = &mut self.files {
                    objects.push(record);
                }
            }
        }
        self.taken_seq = record.seq;
        Ok(())
    }

    /// Saves what has waited for long enough.
    pub(super) fn tend(&mut self) -> Result<(), ArchiveError> {
        let is_due = self.next_due().is_some_and(|due| due <= Instant::now());
        if is_due { self.save() } else { Ok(()) }
    }

    /// When there will be something to save.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let every = (self.taken_seq > self.cursor.seq).then(|| self.saved_at + SAVE_EVERY);
        match &self.files {
            Files::Growing(growing) if growing.buffered_bytes() >= SAVE_BYTES => Some(self.saved_at),
            Files::Growing(_) => every,
            Files::Objects(objects) if objects.is_empty() => every,
            Files::Objects(objects) => objects.old_at(self.limits),
        }
    }

    /// Makes everything that was taken safe.
    pub(super) fn save(&mut self) -> Result<(), ArchiveError> {
        match &mut self.files {
            Files::Growing(growing) => growing.save()?,
            Files::Objects(objects) => objects.put(&self.layout)?,
        }
        self.note(None)?;
        self.layout.worker.clone_from(&self.worker);
        self.saved_at = Instant::now();
        Ok(())
    }

    /// Begins the stream's next file if the last is done.
    fn make_room(&mut self, stream: Stream, record: &Record) -> Result<(), ArchiveError> {
        let Files::Growing(growing) = &self.files else { return Ok(()) };
        if !growing.is_done(stream, record.day, self.limits) {
            return Ok(());
        }
        self.save()?;
        let part = Part { stream, day: record.day, first_seq: record.seq };
        let url = self.layout.url(self.format, part);
        // The cursor knows of a file before there is one: whatever a crash leaves in it will be cut off.
        self.note(Some((stream, record.day, Path::new(&url))))?;
        let Files::Growing(growing) = &mut self.files else { return Ok(()) };
        growing.begin(stream, record.day, Path::new(&url))
    }

    fn note(&mut self, next: Option<(Stream, Day, &Path)>) -> Result<(), ArchiveError> {
        let open = match &self.files {
            Files::Growing(growing) => growing.as_known(next),
            Files::Objects(_) => Vec::new(),
        };
        let Layout { root, tag, .. } = self.layout.clone();
        let cursor = Cursor { root, worker: self.worker.clone(), tag, seq: self.taken_seq, open };
        if cursor != self.cursor {
            self.file.write(&cursor)?;
            self.cursor = cursor;
        }
        Ok(())
    }
}

/// Up to which record all formats of a run's archive are safe.
pub(super) fn saved_seq(dir: &Path, settings: &ArchiveSettings) -> u64 {
    let root = settings.root();
    let seqs = settings.formats.iter().map(|format| CursorFile::of(dir, *format).read(&root).seq);
    seqs.min().unwrap_or(u64::MAX)
}
