//! One owner per directory.
//!
//! Two processes that append to one log would overwrite each other's records. The lock is the operating
//! system's, so it goes with the process, however that ends; the file stays and means nothing by itself.

use super::disk::Guard;
use super::error::LogError;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

/// Holds a directory until dropped.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl Guard for DirLock {}

impl DirLock {
    /// Takes the directory, or says which process has it.
    pub fn acquire(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join("LOCK");
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|cause| match cause.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                LogError::NotWritable { cause: Arc::new(cause), path: dir.to_owned() }
            }
            _ => LogError::io("create the lock file", &path, cause),
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LogError::Locked { pid: holder(&mut file), path: dir.to_owned() });
            }
            Err(TryLockError::Error(cause)) => return Err(LogError::io("lock", &path, cause)),
        }
        sign(&mut file).map_err(|cause| LogError::io("sign the lock file", &path, cause))?;
        Ok(Self { _file: file })
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// The holder may be about to sign, or have died just now: then nobody can say.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text) {
        Ok(_) if text.trim().parse::<u32>().is_ok() => text.trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::acquire(dir.path()).unwrap();
        let refused = DirLock::acquire(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(refused.ends_with(&dir.path().display().to_string()), "{refused}");
        drop(held);
        DirLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        // Tests may run as root, whom permission bits do not stop; nobody can create files here.
        let refused = DirLock::acquire(Path::new("/proc/self")).unwrap_err().to_string();
        assert!(refused.contains("/proc/self"), "{refused}");
    }
}
