//! A large file line by line, with a word on the terminal of how far it is.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::terminal::ProgressLine;

pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    /// What is done with the lines, for the terminal.
    doing: &'static str,
    progress: ProgressLine,
    size_bytes: u64,
    done_bytes: u64,
    number: u64,
    line: Vec<u8>,
}

impl Lines {
    pub(crate) fn open(path: &Path, doing: &'static str) -> Result<Self> {
        let open = || File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size_bytes, file) = open().map_err(|error| cannot_read(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 20, file),
            doing,
            progress: ProgressLine::new(),
            size_bytes,
            done_bytes: 0,
            number: 0,
            line: Vec::new(),
        })
    }

    /// The next line with its ending, and its number, counted from 1.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.progress.show(self.doing, self.done_bytes, self.size_bytes);
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| cannot_read(&self.path, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.done_bytes += read as u64;
        Ok(Some((self.number, &self.line)))
    }

    /// Takes the progress off the terminal, so that output does not continue its line.
    pub(crate) fn wipe_progress(&mut self) {
        self.progress.wipe();
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot read: {error}: {}", path.display())
}
