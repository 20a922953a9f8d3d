//! raft-engine: TiKV's log store. An item is an entry of one raft group.

use crate::engine::{Engine, Item};
use protobuf::well_known_types::BytesValue;
use raft_engine::{Config, LogBatch, MessageExt, ReadableSize};
use std::path::Path;

const REGION: u64 = 1;

pub struct Raft {
    engine: raft_engine::Engine,
    batch: LogBatch,
}

#[derive(Clone)]
struct Entries;

/// The entry's index is its first eight bytes, because the engine takes nothing but protobuf messages.
impl MessageExt for Entries {
    type Entry = BytesValue;

    fn index(entry: &BytesValue) -> u64 {
        entry.value.first_chunk().map_or(0, |index| u64::from_le_bytes(*index))
    }
}

impl Raft {
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let config = Config {
            dir: dir.display().to_string(),
            batch_compression_threshold: ReadableSize(0),
            // Low enough that deleted entries are purged within the measurement.
            purge_threshold: ReadableSize::mb(256),
            enable_log_recycle: false,
            ..Config::default()
        };
        Ok(Self { engine: raft_engine::Engine::open(config)?, batch: LogBatch::default() })
    }
}

impl Engine for Raft {
    fn append(&mut self, first: u64, group: &[Item]) -> anyhow::Result<()> {
        let entries: Vec<_> = (first + 1..)
            .zip(group)
            .map(|(index, item)| {
                let mut entry = BytesValue::new();
                entry.value.reserve(8 + item.len());
                entry.value.extend(index.to_le_bytes());
                entry.value.extend(item.iter());
                entry
            })
            .collect();
        self.batch.add_entries::<Entries>(REGION, &entries)?;
        self.engine.write(&mut self.batch, true)?;
        Ok(())
    }

    fn read(&mut self, n: u64) -> anyhow::Result<usize> {
        Ok(self.engine.get_entry::<Entries>(REGION, n + 1)?.map_or(0, |entry| entry.value.len()))
    }

    fn delete_below(&mut self, below: u64) -> anyhow::Result<bool> {
        self.engine.compact_to(REGION, below + 1);
        self.engine.purge_expired_files()?;
        Ok(true)
    }
}
