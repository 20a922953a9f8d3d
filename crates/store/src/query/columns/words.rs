//! Texts of a column: each once, end to end in one string, and a code a row.

use hashbrown::HashTable;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// Of each row; 0 is NULL, and text `n` has the code `n + 1`.
    pub(crate) codes: Vec<u32>,
    heap: String,
    /// Where each text ends.
    ends: Vec<usize>,
    index: HashTable<u32>,
    /// The place of each code among the sorted texts, found when somebody first sorts.
    ranks: OnceLock<Arc<Vec<u32>>>,
}

impl Words {
    pub(crate) fn push(&mut self, text: Option<&str>) {
        let code = text.map_or(0, |text| self.code(text));
        self.codes.push(code);
    }

    fn code(&mut self, text: &str) -> u32 {
        let hash = xxh3_64(text.as_bytes());
        let (heap, ends) = (&self.heap, &self.ends);
        if let Some(found) = self.index.find(hash, |code| word(heap, ends, *code) == Some(text)) {
            return *found;
        }
        self.heap.push_str(text);
        self.ends.push(self.heap.len());
        self.ranks = OnceLock::new();
        let code = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        let (heap, ends) = (&self.heap, &self.ends);
        self.index.insert_unique(hash, code, |code| {
            xxh3_64(word(heap, ends, *code).unwrap_or_default().as_bytes())
        });
        code
    }

    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        self.word(*self.codes.get(row)?)
    }

    pub(crate) fn word(&self, code: u32) -> Option<&str> {
        word(&self.heap, &self.ends, code)
    }

    /// Different texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// By code, 0 included.
    pub(crate) fn ranks(&self) -> Arc<Vec<u32>> {
        let ranks = self.ranks.get_or_init(|| {
            let mut codes: Vec<u32> =
                (1..=self.ends.len()).filter_map(|code| u32::try_from(code).ok()).collect();
            codes.sort_unstable_by_key(|code| self.word(*code));
            let mut ranks = vec![0; codes.len() + 1];
            for (rank, code) in (0..).zip(codes) {
                if let Some(slot) = ranks.get_mut(code as usize) {
                    *slot = rank;
                }
            }
            Arc::new(ranks)
        });
        Arc::clone(ranks)
    }

    pub(crate) fn shrink(&mut self) {
        self.codes.shrink_to_fit();
        self.heap.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn word<'a>(heap: &'a str, ends: &[usize], code: u32) -> Option<&'a str> {
    let at = (code as usize).checked_sub(1)?;
    let from = at.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
    heap.get(from..*ends.get(at)?)
}
