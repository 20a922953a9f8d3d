//! A shelf in memory that takes what a yard takes.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rollyard_core::wire::item;
use rollyard_engine::task::{KNOWN_MAX, Refused, Shelf, ShelfError, Written};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(super) struct MemoryShelf {
    state: Mutex<State>,
    /// While it is, writes wait.
    is_busy: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    items: BTreeMap<String, Bytes>,
    /// Uids as they were taken.
    order: Vec<String>,
    /// Uids of every call after what is known.
    asked: Vec<Vec<String>>,
    /// Items that a call brought, for every call.
    calls: Vec<usize>,
    /// How often an item was offered that is there already.
    twice: usize,
    room: Option<usize>,
    refuses: HashMap<String, &'static str>,
    is_broken: bool,
}

impl MemoryShelf {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// From now on so many items have room.
    pub(super) fn set_room(&self, room: Option<usize>) {
        self.state().room = room;
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        self.is_busy.send_replace(is_busy);
    }

    /// As if these had been written before.
    pub(super) fn fill(&self, uids: impl IntoIterator<Item = String>) {
        self.state().items.extend(uids.into_iter().map(|uid| (uid, Bytes::new())));
    }

    /// This uid is refused with this code.
    pub(super) fn refuse(&self, uid: &str, code: &'static str) {
        self.state().refuses.insert(uid.to_owned(), code);
    }

    pub(super) fn break_down(&self) {
        self.state().is_broken = true;
    }

    pub(super) fn len(&self) -> usize {
        self.state().items.len()
    }

    pub(super) fn uids(&self) -> BTreeSet<String> {
        self.state().items.keys().cloned().collect()
    }

    pub(super) fn order(&self) -> Vec<String> {
        self.state().order.clone()
    }

    pub(super) fn asked(&self) -> Vec<Vec<String>> {
        self.state().asked.clone()
    }

    pub(super) fn calls(&self) -> Vec<usize> {
        self.state().calls.clone()
    }

    pub(super) fn twice(&self) -> usize {
        self.state().twice
    }

    pub(super) fn bytes(&self, uid: &str) -> Bytes {
        self.state().items.get(uid).unwrap().clone()
    }

    pub(super) fn item(&self, uid: &str) -> Value {
        serde_json::from_slice(&self.bytes(uid)).unwrap()
    }

    pub(super) fn items(&self) -> Vec<Value> {
        self.uids().iter().map(|uid| self.item(uid)).collect()
    }
}

impl State {
    fn put(&mut self, bytes: Bytes) -> Result<Written, Refused> {
        let refused = |code: &str, message: String| Refused { code: code.into(), message };
        let read = item::decode(&bytes).map_err(|error| refused(error.code(), error.to_string()))?;
        if let Some(code) = self.refuses.get(&read.uid) {
            return Err(refused(code, format!("{} is not wanted", read.uid)));
        }
        if let Some(there) = self.items.get(&read.uid) {
            self.twice += 1;
            let is_same = *there == bytes;
            let taken = || refused("uid_taken", format!("{} is taken", read.uid));
            return is_same.then_some(Written { duplicate: true }).ok_or_else(taken);
        }
        if self.room.is_some_and(|room| self.items.len() >= room) {
            return Err(refused("full", "the yard is full".into()));
        }
        self.order.push(read.uid.clone());
        self.items.insert(read.uid, bytes);
        Ok(Written { duplicate: false })
    }
}

impl Shelf for MemoryShelf {
    fn known(&self, uids: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, ShelfError>> {
        async move {
            assert!(uids.len() <= KNOWN_MAX);
            let mut state = self.state();
            let known = uids.iter().filter(|uid| state.items.contains_key(*uid)).cloned().collect();
            state.asked.push(uids);
            Ok(known)
        }
        .boxed()
    }

    fn write(&self, items: Vec<Bytes>) -> BoxFuture<'_, Result<Vec<Result<Written, Refused>>, ShelfError>> {
        async move {
            self.is_busy.subscribe().wait_for(|is_busy| !is_busy).await.unwrap();
            let mut state = self.state();
            if state.is_broken {
                return Err(ShelfError("the disk is gone".into()));
            }
            state.calls.push(items.len());
            Ok(items.into_iter().map(|item| state.put(item)).collect())
        }
        .boxed()
    }
}
