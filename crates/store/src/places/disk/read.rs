//! Reads a file of the disk at any offset.

use super::super::ReadAt;
use super::super::error::PlaceError;
use super::look;
use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
struct OpenFile {
    file: File,
    size_bytes: u64,
    path: PathBuf,
}

/// The path is real, so a link in its last place was put there since: it is not followed.
pub(super) fn open(path: &Path) -> Result<Arc<dyn ReadAt>, PlaceError> {
    // A pipe would wait for a writer.
    look(path)?;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let failed = |error| PlaceError::disk("open the file", &error, path);
    let file =
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).map_err(failed)?;
    let size_bytes = file.metadata().map_err(failed)?.len();
    Ok(Arc::new(OpenFile { file, size_bytes, path: path.to_owned() }))
}

impl ReadAt for OpenFile {
    fn read_at(&self, range: Range<u64>) -> Result<Bytes, PlaceError> {
        let failed = |error: &std::io::Error| PlaceError::disk("read the file", error, &self.path);
        // Not more than there is, whatever was asked for: the buffer is made first.
        let size = self.file.metadata().map_err(|error| failed(&error))?.len();
        let wanted = range.end.min(size).saturating_sub(range.start);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, range.start + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes.into())
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}
