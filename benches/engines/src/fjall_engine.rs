//! fjall: an LSM tree with a journal, large values apart from the keys.

use crate::engine::{Engine, Item};
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use std::path::Path;

pub struct Fjall {
    db: Database,
    items: Keyspace,
}

impl Fjall {
    /// Compression is off everywhere, as the other engines have none either.
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let db = Database::builder(dir).journal_compression(CompressionType::None).open()?;
        let separated = KvSeparationOptions::default().compression(CompressionType::None);
        let options = || {
            KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::disabled())
                .with_kv_separation(Some(separated))
        };
        let items = db.keyspace("items", options)?;
        Ok(Self { db, items })
    }
}

impl Engine for Fjall {
    fn append(&mut self, first: u64, group: &[Item]) -> anyhow::Result<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        for (n, item) in (first..).zip(group) {
            batch.insert(&self.items, n.to_be_bytes(), item.as_ref());
        }
        Ok(batch.commit()?)
    }

    fn read(&mut self, n: u64) -> anyhow::Result<usize> {
        Ok(self.items.get(n.to_be_bytes())?.map_or(0, |item| item.len()))
    }

    fn delete_below(&mut self, below: u64) -> anyhow::Result<bool> {
        for first in (0..below).step_by(128) {
            let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
            for n in first..below.min(first + 128) {
                batch.remove(&self.items, n.to_be_bytes());
            }
            batch.commit()?;
        }
        self.items.rotate_memtable_and_wait()?;
        self.items.major_compact()?;
        Ok(true)
    }
}
