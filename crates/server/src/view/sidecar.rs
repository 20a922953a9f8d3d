//! A file of JSON lines that only grows, kept in the server's data folder and never beside the user's files.
//!
//! What was said once is never rewritten: a later line takes back an earlier one. A crash can tear the last line; it
//! is cut off before the next one is written. What the lines come to is kept in memory.

use axum::http::StatusCode;
use memchr::memrchr;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::ApiError;

/// What the lines of a file come to.
pub(super) trait Told: Default {
    fn hear(&mut self, line: &Value);
}

#[derive(Debug)]
pub(super) struct Sidecar<T> {
    path: PathBuf,
    /// Opened with the first line that is read or written, so that a server nobody views with leaves no files.
    open: Mutex<Option<Open<T>>>,
}

#[derive(Debug)]
struct Open<T> {
    file: File,
    told: T,
}

impl<T: Told> Sidecar<T> {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: Mutex::default() }
    }

    pub(super) fn ask<A>(&self, question: impl FnOnce(&T) -> A) -> Result<A, ApiError> {
        self.with(|open| Ok(question(&open.told)))
    }

    /// On the disk when this returns.
    pub(super) fn append(&self, line: &Value) -> Result<(), ApiError> {
        self.append_all(std::slice::from_ref(line))
    }

    pub(super) fn append_all(&self, lines: &[Value]) -> Result<(), ApiError> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.with(|open| {
            let end = open.file.seek(SeekFrom::End(0))?;
            if let Err(error) = open.file.write_all(text.as_bytes()).and_then(|()| open.file.sync_data()) {
                // Half a line would swallow the next one.
                open.file.set_len(end)?;
                return Err(error);
            }
            lines.iter().for_each(|line| open.told.hear(line));
            Ok(())
        })
    }

    fn with<A>(&self, work: impl FnOnce(&mut Open<T>) -> io::Result<A>) -> Result<A, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match open.take() {
            Some(opened) => Ok(opened),
            None => self.read(),
        };
        opened.and_then(|opened| work(open.insert(opened))).map_err(|error| {
            let message = format!("what was said cannot be kept ({error}): {}", self.path.display());
            let (status, code) = match error.kind() {
                io::ErrorKind::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
                _ => (StatusCode::INTERNAL_SERVER_ERROR, "data_folder"),
            };
            ApiError::new(status, code, message)
        })
    }

    fn read(&self) -> io::Result<Open<T>> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
        if whole < bytes.len() {
            tracing::warn!(
                bytes = bytes.len() - whole,
                "a torn last line is cut off: {}",
                self.path.display()
            );
            file.set_len(whole as u64)?;
        }
        let mut told = T::default();
        let whole = bytes.get(..whole).unwrap_or_default();
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(line) => told.hear(&line),
                Err(error) => tracing::warn!("a line is passed over ({error}): {}", self.path.display()),
            }
        }
        Ok(Open { file, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Default)]
    struct Numbers(Vec<Value>);

    impl Told for Numbers {
        fn hear(&mut self, line: &Value) {
            self.0.push(line["n"].clone());
        }
    }

    #[test]
    fn a_torn_last_line_is_cut_and_the_next_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("view/a.jsonl");
        let sidecar = Sidecar::<Numbers>::new(path.clone());
        sidecar.append(&json!({"n": 1})).unwrap();
        drop(sidecar);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"n\": 2").unwrap();
        let sidecar = Sidecar::<Numbers>::new(path.clone());
        sidecar.append(&json!({"n": 3})).unwrap();
        assert_eq!(sidecar.ask(|numbers| numbers.0.clone()).unwrap(), [json!(1), json!(3)]);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{\"n\":1}\n{\"n\":3}\n");
    }
}
