//! Names for what is the same.
//!
//! A rollout's id is a hash of what its row says, not of how it is written: spaces, escapes and the order of keys
//! make no difference, and neither does a whole number written as `1.0`. So links survive appends, re-sharding and
//! the way through another program. Grades and the file's name are said about a rollout, and are not part of it.

use super::json::{Node, Said};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

/// Collects small things, because the hash likes long ones.
pub struct Namer {
    state: Xxh3,
    small: Vec<u8>,
}

const SMALL_BYTES: usize = 1024;
const NOT_PART: [&str; 2] = ["grades", "source_file"];

impl Default for Namer {
    fn default() -> Self {
        Self { state: Xxh3::new(), small: Vec::with_capacity(2 * SMALL_BYTES) }
    }
}

impl std::fmt::Debug for Namer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Namer").finish_non_exhaustive()
    }
}

impl Namer {
    pub fn row(&mut self, row: Node<'_>) -> u128 {
        self.state.reset();
        self.small.clear();
        self.object(row, &NOT_PART);
        self.flush();
        self.state.digest128()
    }

    fn value(&mut self, node: Node<'_>) {
        match node.said() {
            Said::Null => self.scalar(b'n', &[]),
            Said::Bool(bool) => self.scalar(b'b', &[u8::from(bool)]),
            Said::Int(int) => self.scalar(b'i', &int.to_le_bytes()),
            Said::UInt(uint) => self.scalar(b'u', &uint.to_le_bytes()),
            Said::Float(float) => self.float(float),
            Said::Str(str) => self.str(b's', str),
            Said::List => {
                self.scalar(b'[', &[]);
                for item in node.items() {
                    self.value(item);
                }
                self.scalar(b']', &[]);
            }
            Said::Object => self.object(node, &[]),
        }
    }

    fn float(&mut self, float: f64) {
        let int = float as i64;
        // Below 2^53 a float says exactly which integer it is.
        if int as f64 == float && int.unsigned_abs() < 1 << 53 {
            self.scalar(b'i', &int.to_le_bytes());
        } else if float.is_nan() {
            self.scalar(b'N', &[]);
        } else {
            self.scalar(b'f', &float.to_bits().to_le_bytes());
        }
    }

    fn object(&mut self, node: Node<'_>, without: &[&str]) {
        self.scalar(b'{', &[]);
        let mut entries: Vec<_> = node.entries().filter(|(key, _)| !without.contains(key)).collect();
        // Stable: of a key that is there twice, the last is the one that counts.
        entries.sort_by_key(|(key, _)| *key);
        let mut rest = entries.as_slice();
        while let Some(((key, value), after)) = rest.split_first() {
            rest = after;
            if after.first().is_some_and(|(next, _)| next == key) {
                continue;
            }
            self.str(b'k', key);
            self.value(*value);
        }
        self.scalar(b'}', &[]);
    }

    fn scalar(&mut self, tag: u8, bytes: &[u8]) {
        self.small.push(tag);
        self.small.extend_from_slice(bytes);
        if self.small.len() >= SMALL_BYTES {
            self.flush();
        }
    }

    fn str(&mut self, tag: u8, str: &str) {
        self.scalar(tag, &(str.len() as u64).to_le_bytes());
        if str.len() < SMALL_BYTES {
            self.small.extend_from_slice(str.as_bytes());
        } else {
            self.flush();
            self.state.update(str.as_bytes());
        }
    }

    fn flush(&mut self) {
        self.state.update(&self.small);
        self.small.clear();
    }
}

/// Of a row that could not be read.
pub fn of_bytes(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Of a few texts in their order, as SQLite keeps integers.
pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> i64 {
    let mut state = Xxh3::new();
    for text in texts {
        state.update(&(text.len() as u64).to_le_bytes());
        state.update(text.as_bytes());
    }
    state.digest() as i64
}

/// Of a piece of a file, to see whether it is still what it was.
pub fn of_piece(bytes: &[u8]) -> i64 {
    xxh3_64(bytes) as i64
}
