//! The tokens of a byte-level model: from bytes to id, and from id to bytes and text.

use hashbrown::{HashMap, HashSet};

use super::added::AddedToken;
use super::alphabet;
use super::bpe::Bpe;
use super::merge::Merger;
use super::spec::{AddedSpec, Reason};
use super::table::{KEY_LEN_MAX, Key, Merge, MergeTable, PieceTable};

/// Set on the id of a token that merging its own bytes does not give.
const UNMERGED: u32 = 1 << 31;
/// Ids are indices of tables here, so they may not lie far beyond the number of tokens.
const ID_SLACK: usize = 1 << 16;

/// Everything that is known about tokens once a tokenizer is loaded.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The token of each single byte.
    pub(super) byte_ids: Box<[u32; 256]>,
    pub(super) merges: MergeTable,
    short: PieceTable,
    long: HashMap<Box<[u8]>, u32>,
    /// Tokens that are not written in the byte alphabet, which no text is merged into.
    foreign: HashMap<String, u32>,
    pub(super) added: Vec<AddedToken>,
    texts: Texts,
    len: usize,
}

/// The bytes of every id, one after the other.
#[derive(Debug)]
struct Texts {
    bytes: Vec<u8>,
    /// Where the bytes of an id begin; those of the next id end them.
    starts: Vec<u32>,
    known: Vec<bool>,
    /// The written form of ids that the byte alphabet does not give.
    written: HashMap<u32, String>,
    special: HashSet<u32>,
}

impl Vocabulary {
    pub(super) fn new(
        bpe: &Bpe,
        added: &[AddedSpec],
        normalize: impl Fn(&str) -> String,
    ) -> Result<Self, Reason> {
        if let Some(oddity) = bpe.oddity() {
            return Err(oddity);
        }
        let added = assign_ids(bpe, added)?;
        let mut vocabulary = Vocabulary {
            byte_ids: byte_ids(bpe)?,
            merges: merge_table(bpe)?,
            short: PieceTable::new(bpe.vocab.ids.len()),
            long: HashMap::new(),
            foreign: HashMap::new(),
            texts: Texts::new(bpe, &added, normalize)?,
            len: bpe.vocab.ids.len()
                + added.iter().filter(|token| !bpe.vocab.ids.contains_key(token.content.as_str())).count(),
            added: added
                .iter()
                .map(|token| AddedToken {
                    content: token.content.clone(),
                    id: token.id,
                    special: token.special,
                })
                .collect(),
        };
        vocabulary.insert_pieces(bpe);
        Ok(vocabulary)
    }

    /// The token of a whole short piece, if merging it ends in one.
    #[inline(always)]
    pub(super) fn short_piece(&self, key: Key) -> Option<u32> {
        self.short.get(key).filter(|id| id & UNMERGED == 0)
    }

    #[inline]
    pub(super) fn long_piece(&self, piece: &[u8]) -> Option<u32> {
        self.long.get(piece).copied().filter(|id| id & UNMERGED == 0)
    }

    /// The tokens of the single bytes of a piece.
    #[inline(always)]
    pub(super) fn bytes<'a>(&'a self, piece: &'a [u8]) -> impl ExactSizeIterator<Item = u32> + 'a {
        piece.iter().map(|&byte| self.byte_ids.get(usize::from(byte)).copied().unwrap_or_default())
    }

    pub(super) fn token_to_id(&self, token: &str) -> Option<u32> {
        if let Some(added) = self.added.iter().find(|added| added.content == token) {
            return Some(added.id);
        }
        let Some(bytes) = alphabet::bytes_of(token) else {
            return self.foreign.get(token).copied();
        };
        let id = match Key::of(&bytes, 0, bytes.len()) {
            Some(key) => self.short.get(key),
            None => self.long.get(bytes.as_slice()).copied(),
        };
        id.map(|id| id & !UNMERGED)
    }

    pub(super) fn id_to_token(&self, id: u32) -> Option<String> {
        match self.texts.written.get(&id) {
            Some(token) => Some(token.clone()),
            None => self.texts.get(id).map(alphabet::token_of),
        }
    }

    /// The bytes that `id` stands for.
    #[inline]
    pub(super) fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id)
    }

    pub(super) fn is_special(&self, id: u32) -> bool {
        self.texts.special.contains(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn insert_pieces(&mut self, bpe: &Bpe) {
        let mut merger = Merger::default();
        let mut merged = Vec::new();
        for (token, &id) in &bpe.vocab.ids {
            let Some(bytes) = alphabet::bytes_of(token) else {
                self.foreign.insert(token.to_string(), id);
                continue;
            };
            merged.clear();
            if !bpe.ignore_merges {
                merger.merge(&self.merges, self.bytes(&bytes), &mut merged);
            }
            let value = if bpe.ignore_merges || merged == [id] { id } else { id | UNMERGED };
            match Key::of(&bytes, 0, bytes.len()) {
                Some(key) => self.short.insert(key, value),
                None => drop(self.long.insert(bytes.into(), value)),
            }
        }
        debug_assert!(self.long.keys().all(|piece| piece.len() > KEY_LEN_MAX));
    }
}

/// `tokenizers` gives added tokens the id that the vocabulary has for them, or the next free one, whatever the
/// file says. Where the file says otherwise it is left to `tokenizers`.
fn assign_ids(bpe: &Bpe, added: &[AddedSpec]) -> Result<Vec<AddedSpec>, Reason> {
    let mut next = bpe.vocab.ids.len() as u32;
    let mut seen = HashSet::new();
    for token in added {
        let id = bpe.vocab.ids.get(token.content.as_str()).copied().unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        if id != token.id {
            return Err(format!("added token {:?} has id {}, and {id} is its turn", token.content, token.id));
        }
        if token.content.is_empty() || !seen.insert(token.content.as_str()) {
            return Err(format!("added token {:?} is empty or there twice", token.content));
        }
    }
    Ok(added.to_vec())
}

fn byte_ids(bpe: &Bpe) -> Result<Box<[u32; 256]>, Reason> {
    let mut ids = Box::new([0; 256]);
    for (byte, slot) in (0..=255).zip(ids.iter_mut()) {
        let token = alphabet::char_of(byte);
        let id = bpe.vocab.ids.get(token.encode_utf8(&mut [0; 4]) as &str);
        *slot = *id.ok_or_else(|| format!("the vocabulary has no token for byte {byte:#04x}"))?;
    }
    Ok(ids)
}

fn merge_table(bpe: &Bpe) -> Result<MergeTable, Reason> {
    let mut table = MergeTable::new(bpe.merges_len());
    for (rank, merge) in (0..).zip(bpe.merges()) {
        let merge = merge.map_err(|error| error.to_string())?;
        table.insert(merge.left, merge.right, Merge { rank, id: merge.id });
    }
    Ok(table)
}

impl Texts {
    fn new(bpe: &Bpe, added: &[AddedSpec], normalize: impl Fn(&str) -> String) -> Result<Texts, Reason> {
        let mut by_id: Vec<Option<(&str, bool)>> = Vec::new();
        let mut written = HashMap::new();
        let mut special = HashSet::new();
        let limit = 2 * (bpe.vocab.ids.len() + added.len()) + ID_SLACK;
        let vocab = bpe.vocab.ids.iter().map(|(token, &id)| (token.as_ref(), id, false));
        for (token, id, is_added) in
            vocab.chain(added.iter().map(|token| (token.content.as_str(), token.id, true)))
        {
            if id as usize >= limit {
                return Err(format!("id {id} of token {token:?} lies far beyond the others"));
            }
            if by_id.len() <= id as usize {
                by_id.resize(id as usize + 1, None);
            }
            let slot = by_id.get_mut(id as usize);
            match slot {
                Some(Some((other, _))) if *other != token => {
                    return Err(format!("tokens {other:?} and {token:?} share id {id}"));
                }
                Some(slot) => *slot = Some((token, is_added)),
                None => {}
            }
        }
        // Decoding sees an added token as it looks after normalising.
        for token in added {
            let form = if token.normalized { normalize(&token.content) } else { token.content.clone() };
            if token.special && form == token.content {
                special.insert(token.id);
            }
            written.insert(token.id, form);
        }
        let mut texts = Texts { bytes: Vec::new(), starts: vec![0], known: Vec::new(), written, special };
        for (id, token) in (0u32..).zip(by_id) {
            if let Some((token, _)) = token {
                let form = texts.written.get(&id).map_or(token, String::as_str);
                match alphabet::bytes_of(form) {
                    Some(bytes) => texts.bytes.extend(bytes),
                    None => {
                        texts.bytes.extend(form.as_bytes());
                        texts.written.insert(id, form.to_owned());
                    }
                }
            }
            texts.known.push(token.is_some());
            texts.starts.push(texts.bytes.len() as u32);
        }
        Ok(texts)
    }

    #[inline]
    fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        if !*self.known.get(id)? {
            return None;
        }
        self.bytes.get(*self.starts.get(id)? as usize..*self.starts.get(id + 1)? as usize)
    }
}
