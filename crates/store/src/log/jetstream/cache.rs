//! Bundles that were written or read lately, for whoever reads their payloads next.
//!
//! What comes in first goes out first: rollouts are read about in the order they came, and once.

use bytes::Bytes;
use std::collections::{HashMap, VecDeque};

/// Bundles by stream sequence.
#[derive(Debug)]
pub(super) struct Cache {
    bundles: HashMap<u64, Bytes>,
    order: VecDeque<u64>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bundles: HashMap::new(), order: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(super) fn get(&self, sequence: u64) -> Option<Bytes> {
        self.bundles.get(&sequence).cloned()
    }

    pub(super) fn put(&mut self, sequence: u64, bundle: Bytes) {
        self.bytes += bundle.len();
        match self.bundles.insert(sequence, bundle) {
            Some(before) => self.bytes -= before.len(),
            None => self.order.push_back(sequence),
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
            cache.put(sequence, Bytes::from(vec![0; 10]));
        }
        assert_eq!((cache.get(1), cache.bytes), (None, 20));
        assert!(cache.get(2).is_some() && cache.get(3).is_some());
        cache.put(3, Bytes::from(vec![0; 12]));
        assert_eq!((cache.bytes, cache.order.len()), (22, 2));
    }
}
