//! Ports that stay ours while a server is down.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

/// Below the ranges that systems give to outgoing connections: a port there is free again after a restart.
const FIRST: u16 = 10_000;
const COUNT: u64 = 20_000;

/// Different from each other, and free a moment ago.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let mut taken = BTreeSet::new();
    std::array::from_fn(|_| {
        loop {
            let port = FIRST + (RandomState::new().hash_one(0) % COUNT) as u16;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() && taken.insert(port) {
                return port;
            }
        }
    })
}
