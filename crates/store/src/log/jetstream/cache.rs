//! Bundles that were written or read lately, for whoever reads their payloads next.
//!
//! What comes in first goes out first: rollouts are read about in the order they came, and once.

use bytes::Bytes;
use std::collections::{HashMap, VecDeque};

/// A stream, by the hash of its name and birth, and a sequence of it.
pub(super) type Key = (u64, u64);

/// Bundles of all streams.
#[derive(Debug)]
pub(super) struct Cache {
    bundles: HashMap<Key, Bytes>,
    order: VecDeque<Key>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bundles: HashMap::new(), order: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(super) fn get(&self, key: Key) -> Option<Bytes> {
        self.bundles.get(&key).cloned()
    }

    pub(super) fn put(&mut self, key: Key, bundle: Bytes) {
        self.bytes += bundle.len();
        match self.bundles.insert(key, bundle) {
            Some(before) => self.bytes -= before.len(),
            None => self.order.push_back(key),
        }
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.bundles.remove(&oldest).map_or(0, |bundle| bundle.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_is_too_much() {
        let mut cache = Cache::new(25);
        for sequence in 1..=3 {
            cache.put((7, sequence), Bytes::from(vec![0; 10]));
        }
        assert_eq!((cache.get((7, 1)), cache.bytes), (None, 20));
        assert!(cache.get((7, 2)).is_some() && cache.get((7, 3)).is_some() && cache.get((8, 3)).is_none());
        cache.put((7, 3), Bytes::from(vec![0; 12]));
        assert_eq!((cache.bytes, cache.order.len()), (22, 2));
    }
}
