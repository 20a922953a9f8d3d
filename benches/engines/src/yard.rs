//! Rollyard's own log, on one thread like the others.

use crate::engine::{Engine, Item};
use rollyard_store::log::{Commit, Log, Opened, Options, Parts, Payloads, Place, Stage, open};
use std::convert::Infallible;
use std::path::Path;

/// About what an admitted rollout's events take.
const BODY: [u8; 150] = [b'e'; 150];

pub struct Yard {
    parts: Parts<Opened>,
    places: Vec<(Place, u32)>,
}

impl Yard {
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let log = open(dir, Options::default())?;
        let mut places = Vec::new();
        log.replay(
            1,
            |_, _| {},
            |entry| {
                places.push((entry.place, entry.payload_len));
                Ok::<_, Infallible>(())
            },
        )?;
        let mut parts = log.into_parts();
        parts.stager.retain(&mut places.iter().copied());
        Ok(Self { parts, places })
    }
}

impl Engine for Yard {
    fn append(&mut self, _first: u64, group: &[Item]) -> anyhow::Result<()> {
        for item in group {
            let stamp = self.parts.stager.stage(&BODY, item.clone())?;
            self.places.push((stamp.place, item.len() as u32));
        }
        if let Some(batch) = self.parts.stager.take_batch() {
            self.parts.writer.commit(batch)?;
        }
        Ok(())
    }

    fn read(&mut self, n: u64) -> anyhow::Result<usize> {
        Ok(self.parts.reader.payload(self.places[n as usize].0)?.len())
    }

    fn delete_below(&mut self, below: u64) -> anyhow::Result<bool> {
        for (place, len) in self.places.drain(..below as usize) {
            self.parts.stager.free(place, len);
        }
        self.parts.stager.stage(b"consumed", Item::new())?;
        if let Some(batch) = self.parts.stager.take_batch() {
            self.parts.writer.commit(batch)?;
        }
        for release in self.parts.stager.reclaimable() {
            self.parts.writer.release(release)?;
        }
        Ok(true)
    }
}
