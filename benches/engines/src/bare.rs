//! The floor: append a group to a file and sync it. No checksums, no recovery, nothing to read with.

use crate::engine::{Engine, Item};
use std::fs::File;
use std::io::{IoSlice, Write};
use std::path::Path;

pub struct Bare {
    file: File,
}

impl Bare {
    pub fn open(dir: &Path, bytes_in_advance: u64) -> anyhow::Result<Self> {
        let file = File::create(dir.join("bare"))?;
        if bytes_in_advance > 0 {
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes_in_advance)?;
        }
        Ok(Self { file })
    }
}

impl Engine for Bare {
    fn append(&mut self, _first: u64, group: &[Item]) -> anyhow::Result<()> {
        let mut slices: Vec<_> = group.iter().map(|item| IoSlice::new(item)).collect();
        let mut slices = slices.as_mut_slice();
        while !slices.is_empty() {
            let written = self.file.write_vectored(slices)?;
            IoSlice::advance_slices(&mut slices, written);
        }
        Ok(self.file.sync_data()?)
    }

    fn read(&mut self, _n: u64) -> anyhow::Result<usize> {
        Ok(0)
    }

    fn delete_below(&mut self, _below: u64) -> anyhow::Result<bool> {
        Ok(false)
    }
}
