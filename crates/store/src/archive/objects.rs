//! Files that appear as a whole: Parquet anywhere, and anything in a bucket.
//!
//! Lines wait in memory until there are enough of them, or for long enough; then each stream becomes one file. The
//! cursor moves when all of them are there. If it could not, the same records are put under the same names again.

use bytes::Bytes;
use std::path::Path;
use std::time::Instant;

use super::error::ArchiveError;
use super::layout::{Day, Format, Layout, Part, Stream};
use super::parquet;
use super::record::Record;
use super::settings::Limits;
use crate::places::Places;

/// What goes out with one write; larger objects go in parts.
const WRITE_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Objects {
    places: Places,
    format: Format,
    rollouts: Batch,
    fates: Batch,
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct Batch {
    first: Option<(u64, Day)>,
    lines: Vec<u8>,
}

impl Objects {
    pub(super) fn new(places: Places, format: Format) -> Self {
        Self { places, format, rollouts: Batch::default(), fates: Batch::default(), since: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.since.is_none()
    }

    /// Whether what waits has to go before a record of this day can be taken.
    pub(super) fn is_full(&self, day: Day, limits: Limits) -> bool {
        let bytes = self.rollouts.lines.len() + self.fates.lines.len();
        let other_day = |batch: &Batch| batch.first.is_some_and(|(_, first)| first != day);
        bytes as u64 >= limits.bytes || other_day(&self.rollouts) || other_day(&self.fates)
    }

    /// When what waits has waited for long enough.
    pub(super) fn old_at(&self, limits: Limits) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(limits.after))
    }

    pub(super) fn push(&mut self, record: &Record) {
        for stream in Stream::ALL {
            let lines = record.lines(stream);
            if lines.is_empty() {
                continue;
            }
            self.since.get_or_insert_with(Instant::now);
            let batch = match stream {
                Stream::Rollouts => &mut self.rollouts,
                Stream::Fates => &mut self.fates,
            };
            batch.first.get_or_insert((record.seq, record.day));
            batch.lines.extend(lines);
        }
    }

    /// Puts everything where it belongs. What fails is kept and can be put again.
    pub(super) fn put(&mut self, layout: &Layout) -> Result<(), ArchiveError> {
        for (stream, batch) in [(Stream::Rollouts, &self.rollouts), (Stream::Fates, &self.fates)] {
            let Some((first_seq, day)) = batch.first else { continue };
            let url = layout.url(self.format, Part { stream, day, first_seq });
            let bytes = match (self.format, stream) {
                (Format::Jsonl, _) => Bytes::copy_from_slice(&batch.lines),
                (Format::Parquet, Stream::Rollouts) => encoded(parquet::of_rollouts(&batch.lines), &url)?,
                (Format::Parquet, Stream::Fates) => encoded(parquet::of_fates(&batch.lines), &url)?,
            };
            self.upload(&url, bytes)?;
        }
        self.rollouts = Batch::default();
        self.fates = Batch::default();
        self.since = None;
        Ok(())
    }

    fn upload(&self, url: &str, mut bytes: Bytes) -> Result<(), ArchiveError> {
        if !url.contains("://") {
            let folder = Path::new(url).parent().unwrap_or(Path::new(url));
            std::fs::create_dir_all(folder)
                .map_err(ArchiveError::io("make a folder of the archive", folder))?;
        }
        let mut upload = self.places.create(url)?;
        while !bytes.is_empty() {
            upload.write(bytes.split_to(bytes.len().min(WRITE_BYTES)))?;
        }
        upload.finish()?;
        Ok(())
    }
}

fn encoded(
    bytes: Result<Vec<u8>, ::parquet::errors::ParquetError>,
    url: &str,
) -> Result<Bytes, ArchiveError> {
    bytes.map(Bytes::from).map_err(|cause| ArchiveError::Parquet { cause, url: url.to_owned() })
}
