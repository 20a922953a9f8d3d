//! A disk in memory that does its worst within the rules.
//!
//! What was synced stays. What was not may reach the plate in any order, page by page, in part or never;
//! names appear in the order they were made, up to some point. On top of that it can run full, fail a
//! sync and lose power at any operation.

use rollyard_store::log::LogError;
use rollyard_store::log::disk::{Disk, DiskFile, Guard};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

const PAGE: u64 = 4096;

#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<State>>);

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files().fmt(f)
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// The names after each operation since the last directory sync.
    name_history: Vec<BTreeMap<PathBuf, usize>>,
    files: Vec<Content>,
    faults: Faults,
}

/// What goes wrong next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Bytes until the disk is full.
    pub(crate) room: Option<u64>,
    /// Operations until the power goes; from then on nothing works.
    pub(crate) power: Option<u32>,
    pub(crate) sync_fails: bool,
    pub(crate) cannot_allocate: bool,
    pub(crate) read_only: bool,
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Resize(u64),
}

/// What is left after the power went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crash {
    /// Only the process died.
    Kill,
    /// Nothing but what was synced.
    LoseUnsynced,
    /// Every unsynced page by the toss of a coin, and names up to some point.
    Pages { seed: u64 },
    /// The last write stopped after this many bytes.
    Tear { bytes: usize },
}

/// Enough randomness for coins, and reproducible.
struct Coin(u64);

impl Coin {
    fn heads(&mut self) -> bool {
        self.toss() & 1 == 0
    }

    fn toss(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    }
}

impl FaultyDisk {
    pub(crate) fn set(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// The disk that the next process finds.
    pub(crate) fn after(&self, crash: Crash) -> Self {
        let mut state = self.state().clone();
        state.faults = Faults::default();
        let mut coin = Coin(if let Crash::Pages { seed } = crash { seed } else { 0 });
        match crash {
            Crash::Kill | Crash::Tear { .. } => {}
            Crash::LoseUnsynced => state.names = state.durable_names.clone(),
            Crash::Pages { .. } => {
                let survived = coin.toss() as usize % (state.name_history.len() + 1);
                let before = std::iter::once(&state.durable_names).chain(&state.name_history);
                state.names = before.clone().nth(survived).unwrap().clone();
            }
        }
        if let Crash::Kill = crash {
            // The page cache outlives the process: what was not synced still is not.
            return Self(Arc::new(Mutex::new(state)));
        }
        for file in &mut state.files {
            file.survive(crash, &mut coin);
        }
        state.durable_names = state.names.clone();
        state.name_history.clear();
        Self(Arc::new(Mutex::new(state)))
    }

    /// The names of all files with their lengths.
    pub(crate) fn files(&self) -> Vec<(PathBuf, usize)> {
        let state = self.state();
        state.names.iter().map(|(path, id)| (path.clone(), state.files[*id].now.len())).collect()
    }

    /// A copy of the disk on which one bit has changed.
    pub(crate) fn with_bit_flipped(&self, path: &Path, byte: usize, bit: u8) -> Self {
        let old = self.byte(path, byte);
        self.with_byte(path, byte, old ^ (1 << bit))
    }

    fn byte(&self, path: &Path, byte: usize) -> u8 {
        let state = self.state();
        state.files[state.names[path]].now[byte]
    }

    /// A copy of the disk on which one byte is another.
    pub(crate) fn with_byte(&self, path: &Path, byte: usize, value: u8) -> Self {
        let mut state = self.state().clone();
        let id = state.names[path];
        state.files[id].now[byte] = value;
        state.files[id].durable = state.files[id].now.clone();
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn remove_file(&self, path: &Path) {
        self.state().names.remove(path);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn open_id(&self, id: usize) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { disk: self.clone(), id })
    }
}

impl State {
    /// Every operation that changes something passes here.
    fn spend(&mut self) -> io::Result<()> {
        if self.faults.read_only {
            return Err(ErrorKind::ReadOnlyFilesystem.into());
        }
        match &mut self.faults.power {
            Some(0) => return Err(io::Error::other("the power is off")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn named(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or(ErrorKind::NotFound.into())
    }
}

impl Content {
    fn apply(bytes: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Resize(len) => bytes.resize(*len as usize, 0),
            Change::Write { offset, bytes: new } => {
                let (start, end) = (*offset as usize, *offset as usize + new.len());
                bytes.resize(bytes.len().max(end), 0);
                bytes[start..end].copy_from_slice(new);
            }
        }
    }

    fn change(&mut self, change: Change) {
        Self::apply(&mut self.now, &change);
        self.pending.push(change);
    }

    fn survive(&mut self, crash: Crash, coin: &mut Coin) {
        let mut left = self.durable.clone();
        let count = self.pending.len();
        for (n, change) in self.pending.drain(..).enumerate() {
            match (crash, change) {
                (Crash::LoseUnsynced | Crash::Kill, _) => {}
                (Crash::Tear { bytes }, Change::Write { offset, bytes: mut new }) if n + 1 == count => {
                    new.truncate(bytes);
                    Self::apply(&mut left, &Change::Write { offset, bytes: new });
                }
                (Crash::Tear { .. }, change) => Self::apply(&mut left, &change),
                (Crash::Pages { .. }, Change::Resize(len)) => {
                    if coin.heads() {
                        Self::apply(&mut left, &Change::Resize(len));
                    }
                }
                (Crash::Pages { .. }, Change::Write { mut offset, bytes }) => {
                    let mut rest = bytes.as_slice();
                    while !rest.is_empty() {
                        let (page, after) = rest.split_at(rest.len().min((PAGE - offset % PAGE) as usize));
                        if coin.heads() {
                            Self::apply(&mut left, &Change::Write { offset, bytes: page.to_vec() });
                        }
                        offset += page.len() as u64;
                        rest = after;
                    }
                }
            }
        }
        self.now = left.clone();
        self.durable = left;
    }
}

#[derive(Debug)]
struct Unlocked;

impl Guard for Unlocked {}

impl Disk for FaultyDisk {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        self.state().spend()
    }

    fn lock(&self, _dir: &Path) -> Result<Box<dyn Guard>, LogError> {
        Ok(Box::new(Unlocked))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let inside = state.names.keys().filter_map(|path| path.strip_prefix(dir).ok());
        Ok(inside.map(|name| name.display().to_string()).collect())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.spend()?;
        let id = state.files.len();
        state.files.push(Content::default());
        state.names.insert(path.to_owned(), id);
        let names = state.names.clone();
        state.name_history.push(names);
        drop(state);
        Ok(self.open_id(id))
    }

    fn edit(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.state().named(path)?;
        Ok(self.open_id(id))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.edit(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        let id = state.named(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), id);
        let names = state.names.clone();
        state.name_history.push(names);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.named(path)?;
        state.names.remove(path);
        let names = state.names.clone();
        state.name_history.push(names);
        Ok(())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.spend()?;
        state.durable_names = state.names.clone();
        state.name_history.clear();
        Ok(())
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    id: usize,
}

impl DiskFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.id].now.len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let from = state.files[self.id].now.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(into.len());
        into[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }

    fn write_all_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let mut state = self.disk.state();
        state.spend()?;
        let wanted = bytes.len();
        if let Some(room) = &mut state.faults.room {
            bytes.truncate(*room as usize);
            *room -= bytes.len() as u64;
        }
        let full = bytes.len() < wanted;
        state.files[self.id].change(Change::Write { offset, bytes });
        if full { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.spend()?;
        if state.faults.sync_fails {
            // Like Linux: the pages are dropped, and look written until they are read again.
            state.files[self.id].pending.clear();
            return Err(io::Error::other("the disk did not answer"));
        }
        let file = &mut state.files[self.id];
        // Only what is waiting: a page that was dropped is not written by a later sync.
        for change in file.pending.drain(..) {
            Content::apply(&mut file.durable, &change);
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.spend()?;
        state.files[self.id].change(Change::Resize(len));
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.spend()?;
        if state.faults.cannot_allocate {
            return Err(ErrorKind::Unsupported.into());
        }
        state.files[self.id].change(Change::Resize(len));
        Ok(())
    }
}
