//! The few things a log asks of a disk, as a trait, so that tests can pull the plug.
//!
//! The contract is that of POSIX, no more: what was written can be read at once, and survives power loss
//! only after a `sync`; a created, renamed or removed name only after a `sync_dir`. Unsynced writes may
//! reach the disk in any order, in part, or never. New space reads as zeros.

use super::error::LogError;
use super::lock::DirLock;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Where files live.
pub trait Disk: Debug + Send + Sync {
    /// Makes a directory and its parents, unless they exist.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Keeps other owners out of a directory for as long as the guard lives.
    fn lock(&self, dir: &Path) -> Result<Box<dyn Guard>, LogError>;

    /// The names in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// An empty file to read and write, in place of any that was there.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// An existing file to read and write.
    fn edit(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// An existing file to read.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, at once or not at all, in place of any file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Positions are explicit, so a handle can be shared.
pub trait DiskFile: Debug + Send + Sync {
    fn size(&self) -> io::Result<u64>;

    /// Reads up to `into.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all slices one after the other. After a failure any part may have been written.
    fn write_all_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Makes the content and the length durable.
    fn sync(&self) -> io::Result<()>;

    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the file this long with room set aside for it, filled with zeros.
    fn allocate(&self, len: u64) -> io::Result<()>;
}

/// Held for its `Drop`.
pub trait Guard: Debug + Send + Sync {}

/// The operating system's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

/// Linux takes no more slices in one call.
const SLICES_MAX: usize = 1024;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn lock(&self, dir: &Path) -> Result<Box<dyn Guard>, LogError> {
        Ok(Box::new(DirLock::acquire(dir)?))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        // A name that is no UTF-8 is none of ours.
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn edit(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile(File::options().read(true).write(true).open(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile(File::open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_all_at(&self, mut slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            let now = slices.get(..SLICES_MAX).unwrap_or(slices);
            let written = match rustix::io::pwritev(&self.0, now, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(rustix::io::Errno::INTR) => 0,
                Err(error) => return Err(error.into()),
            };
            offset += written as u64;
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::empty(), 0, len)?)
    }
}
