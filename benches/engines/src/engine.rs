//! One engine, one measurement.

use crate::{bare::Bare, fjall_engine::Fjall, raft::Raft, yard::Yard};
use std::path::Path;
use std::time::Instant;

pub type Item = bytes::Bytes;

pub const ITEM_BYTES: u64 = 10_000;
const READS: u64 = 5_000;

pub trait Engine {
    /// Items `first` and following; durable when this returns.
    fn append(&mut self, first: u64, group: &[Item]) -> anyhow::Result<()>;

    /// The length of an item; 0 if it cannot be read.
    fn read(&mut self, n: u64) -> anyhow::Result<usize>;

    /// Gives back the space of all items below; false if it cannot.
    fn delete_below(&mut self, below: u64) -> anyhow::Result<bool>;
}

pub const ENGINES: [&str; 5] = ["bare", "bare-allocated", "rollyard", "fjall", "raft-engine"];

pub fn open(name: &str, dir: &Path, items: u64) -> anyhow::Result<Box<dyn Engine>> {
    Ok(match name {
        "bare" => Box::new(Bare::open(dir, 0)?),
        "bare-allocated" => Box::new(Bare::open(dir, items * ITEM_BYTES)?),
        "rollyard" => Box::new(Yard::open(dir)?),
        "fjall" => Box::new(Fjall::open(dir)?),
        "raft-engine" => Box::new(Raft::open(dir)?),
        other => anyhow::bail!("no engine {other:?}, only {ENGINES:?}"),
    })
}

/// What a measurement found. `None` where an engine cannot do the thing.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub items_per_sec: f64,
    pub rss_bytes: u64,
    pub disk_bytes: u64,
    /// Until every record has been seen again, with warm caches.
    pub reopen_secs: Option<f64>,
    /// Items anywhere in the log, with warm caches.
    pub reads_per_sec: Option<f64>,
    pub delete_secs: Option<f64>,
    pub disk_bytes_after_delete: Option<u64>,
}

/// Fills an empty directory and then deletes nine tenths.
pub fn measure(name: &str, dir: &Path, group: usize, items: u64) -> anyhow::Result<Measured> {
    let pool: Vec<Item> = (0..64).map(random_item).collect();
    let mut engine = open(name, dir, items)?;
    let started = Instant::now();
    for first in (0..items).step_by(group) {
        let batch: Vec<_> =
            (first..items.min(first + group as u64)).map(|n| pool[n as usize % 64].clone()).collect();
        engine.append(first, &batch)?;
    }
    let items_per_sec = items as f64 / started.elapsed().as_secs_f64();
    let (rss_bytes, disk_bytes) = (own_memory()?, disk_usage(dir)?);

    drop(engine);
    let started = Instant::now();
    let mut engine = open(name, dir, items)?;
    let reopen_secs = (!name.starts_with("bare")).then(|| started.elapsed().as_secs_f64());

    let started = Instant::now();
    let mut readable = true;
    for n in 0..READS {
        readable &= engine.read(n * 7919 % items)? as u64 >= ITEM_BYTES;
    }
    let reads_per_sec = readable.then(|| READS as f64 / started.elapsed().as_secs_f64());

    let started = Instant::now();
    let deleted = engine.delete_below(items / 10 * 9)?;
    let delete_secs = deleted.then(|| started.elapsed().as_secs_f64());
    let disk_bytes_after_delete = if deleted { Some(disk_usage(dir)?) } else { None };
    Ok(Measured {
        items_per_sec,
        rss_bytes,
        disk_bytes,
        reopen_secs,
        reads_per_sec,
        delete_secs,
        disk_bytes_after_delete,
    })
}

/// Printable and hardly compressible.
fn random_item(seed: u64) -> Item {
    let mut state = seed + 1;
    let byte = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b' ' + (state >> 58) as u8
    };
    (0..ITEM_BYTES).map(byte).collect::<Vec<u8>>().into()
}

/// The memory that is this process's own, without the page cache of mapped files.
fn own_memory() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line.unwrap_or("0").trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// Blocks in use, which is what the disk runs out of.
fn disk_usage(dir: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let (path, meta) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        bytes += if meta.is_dir() { disk_usage(&path)? } else { meta.blocks() * 512 };
    }
    Ok(bytes)
}
