//! The format: a header of named values, a list of tensors, and their bytes.
//!
//! All numbers are little-endian. Behind the magic stand the version, the counts of tensors and values, the values
//! (name, type, value), the tensors (name, dimensions from the fastest on, type, offset), and from the next multiple of
//! the alignment on the tensors' bytes. Candle has a reader too; it divides by whatever alignment the file names, so
//! that a file from the internet can stop the process, and its messages name neither key nor tensor.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek, SeekFrom};

use candle_core::quantized::GgmlDType;

use super::error::Fault;
use super::metadata::{Metadata, Value};

const ALIGNMENT: u64 = 32;
/// Lists in lists are allowed; nobody has more of them than this.
const DEPTH_MAX: usize = 4;
const DIMENSIONS_MAX: u32 = 4;

pub(super) struct Contents<R> {
    pub(super) metadata: Metadata,
    tensors: HashMap<String, Place>,
    /// Those that nobody has asked for.
    unread: BTreeSet<String>,
    data_start: u64,
    input: Input<R>,
}

struct Place {
    /// The slowest first.
    dims: Vec<u64>,
    kind: u32,
    offset: u64,
}

/// A tensor as it stands in the file.
pub(super) struct Tensor {
    pub(super) kind: GgmlDType,
    pub(super) bytes: Vec<u8>,
}

impl<R: Read + Seek> Contents<R> {
    pub(super) fn read(source: R) -> Result<Self, Fault> {
        let mut input = Input::new(source)?;
        let magic: [u8; 4] = input.array("the magic")?;
        if &magic != b"GGUF" {
            return Err(Fault::NotGguf { found: String::from_utf8_lossy(&magic).into_owned() });
        }
        let version = input.u32("the version")?;
        if !(2..=3).contains(&version) {
            return Err(Fault::Version { version });
        }
        let tensor_count = input.u64("the number of tensors")?;
        let value_count = input.u64("the number of values")?;
        let mut values = HashMap::new();
        for _ in 0..value_count {
            let key = input.text("the name of a value")?;
            let kind = input.u32(&key)?;
            let value = input.value(&key, kind, 0)?;
            values.insert(key, value);
        }
        let metadata = Metadata::new(values);
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let (name, place) = input.place()?;
            tensors.insert(name, place);
        }
        let alignment = metadata.maybe_count("general.alignment")?.map_or(ALIGNMENT, |count| count as u64);
        let data_start = input.at.checked_next_multiple_of(alignment);
        let data_start = data_start.ok_or_else(|| Fault::Damaged(format!("its alignment is {alignment}")))?;
        let unread = tensors.keys().cloned().collect();
        Ok(Self { metadata, tensors, unread, data_start, input })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// A tensor that must have these dimensions.
    pub(super) fn tensor(&mut self, name: &str, dims: &[usize]) -> Result<Tensor, Fault> {
        let wrong = |reason: String| Fault::Tensor { name: name.to_owned(), reason };
        let place = self.tensors.get(name).ok_or_else(|| Fault::NoTensor { name: name.to_owned() })?;
        self.unread.remove(name);
        if !place.dims.iter().copied().eq(dims.iter().map(|dim| *dim as u64)) {
            return Err(wrong(format!(
                "is {:?}, but {dims:?} by what the file says of the model",
                place.dims
            )));
        }
        let kind = known(place.kind).ok_or_else(|| {
            wrong(format!(
                "is quantised by type {}, which cannot be computed with here; take a file in Q4_0, Q4_1, Q5_0, Q5_1, \
                 Q8_0, Q4_K, F16 or the like",
                place.kind
            ))
        })?;
        let row = dims.last().copied().unwrap_or_default();
        if row == 0 || !row.is_multiple_of(stride(kind)) {
            return Err(wrong(format!(
                "has rows of {row}, but {kind:?} is computed with {} at once",
                stride(kind)
            )));
        }
        let elements = place.dims.iter().try_fold(1, |product: u64, dim| product.checked_mul(*dim));
        let length = elements.map(|elements| elements / kind.block_size() as u64);
        let length = length.and_then(|blocks| blocks.checked_mul(kind.type_size() as u64));
        let start = self.data_start.checked_add(place.offset);
        let (Some(length), Some(start)) = (length, start) else {
            return Err(Fault::Damaged(format!("tensor \"{name}\" lies beyond every file")));
        };
        let bytes = self.input.bytes_at(&format!("tensor \"{name}\""), start, length)?;
        Ok(Tensor { kind, bytes })
    }

    /// The first tensor that nobody has asked for.
    pub(super) fn unread(&self) -> Option<&str> {
        self.unread.first().map(String::as_str)
    }
}

/// The types that weights come in; the others are for what is computed with them.
fn known(kind: u32) -> Option<GgmlDType> {
    use GgmlDType as Kind;
    let kind = match kind {
        0 => Kind::F32,
        1 => Kind::F16,
        2 => Kind::Q4_0,
        3 => Kind::Q4_1,
        6 => Kind::Q5_0,
        7 => Kind::Q5_1,
        8 => Kind::Q8_0,
        10 => Kind::Q2K,
        11 => Kind::Q3K,
        12 => Kind::Q4K,
        13 => Kind::Q5K,
        14 => Kind::Q6K,
        30 => Kind::BF16,
        _ => return None,
    };
    Some(kind)
}

/// How many numbers of a row are taken at once. Some of candle's loops go by two blocks, and are wrong for an odd one.
fn stride(kind: GgmlDType) -> usize {
    let blocks = if matches!(kind, GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1) { 2 } else { 1 };
    blocks * kind.block_size()
}

/// Never asks for more memory than the file has bytes.
struct Input<R> {
    source: R,
    at: u64,
    length: u64,
}

impl<R: Read + Seek> Input<R> {
    fn new(mut source: R) -> Result<Self, Fault> {
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        Ok(Self { source, at: 0, length })
    }

    fn bytes(&mut self, what: &str, wanted: u64) -> Result<Vec<u8>, Fault> {
        let left = self.length.saturating_sub(self.at);
        let truncated = || Fault::Truncated { what: what.to_owned(), wanted, left };
        if wanted > left {
            return Err(truncated());
        }
        let mut bytes = vec![0; usize::try_from(wanted).map_err(|_| truncated())?];
        self.source.read_exact(&mut bytes)?;
        self.at += wanted;
        Ok(bytes)
    }

    fn bytes_at(&mut self, what: &str, start: u64, wanted: u64) -> Result<Vec<u8>, Fault> {
        self.at = start;
        self.source.seek(SeekFrom::Start(start))?;
        self.bytes(what, wanted)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Fault> {
        let left = self.length.saturating_sub(self.at);
        let wanted = N as u64;
        if wanted > left {
            return Err(Fault::Truncated { what: what.to_owned(), wanted, left });
        }
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes)?;
        self.at += wanted;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn u64(&mut self, what: &str) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    fn text(&mut self, what: &str) -> Result<String, Fault> {
        let length = self.u64(what)?;
        let bytes = self.bytes(what, length)?;
        String::from_utf8(bytes).map_err(|error| Fault::Damaged(format!("{what} is no text ({error})")))
    }

    fn value(&mut self, key: &str, kind: u32, depth: usize) -> Result<Value, Fault> {
        Ok(match kind {
            0 => Value::Whole(i64::from(u8::from_le_bytes(self.array(key)?))),
            1 => Value::Whole(i64::from(i8::from_le_bytes(self.array(key)?))),
            2 => Value::Whole(i64::from(u16::from_le_bytes(self.array(key)?))),
            3 => Value::Whole(i64::from(i16::from_le_bytes(self.array(key)?))),
            4 => Value::Whole(i64::from(self.u32(key)?)),
            5 => Value::Whole(i64::from(i32::from_le_bytes(self.array(key)?))),
            6 => Value::Float(f64::from(f32::from_le_bytes(self.array(key)?))),
            7 => Value::Flag(self.array::<1>(key)? != [0]),
            8 => Value::Text(self.text(key)?),
            9 if depth < DEPTH_MAX => {
                let kind = self.u32(key)?;
                let count = self.u64(key)?;
                // Grows as it is read: the count is only what the file says.
                let mut list = Vec::new();
                for _ in 0..count {
                    list.push(self.value(key, kind, depth + 1)?);
                }
                Value::List(list)
            }
            10 => Value::Whole(i64::try_from(self.u64(key)?).unwrap_or(i64::MAX)),
            11 => Value::Whole(i64::from_le_bytes(self.array(key)?)),
            12 => Value::Float(f64::from_le_bytes(self.array(key)?)),
            _ => return Err(Fault::Damaged(format!("\"{key}\" is of the unknown type {kind}"))),
        })
    }

    fn place(&mut self) -> Result<(String, Place), Fault> {
        let name = self.text("the name of a tensor")?;
        let count = self.u32(&name)?;
        if count > DIMENSIONS_MAX {
            return Err(Fault::Damaged(format!("tensor \"{name}\" has {count} dimensions")));
        }
        let mut dims = (0..count).map(|_| self.u64(&name)).collect::<Result<Vec<u64>, Fault>>()?;
        dims.reverse();
        let kind = self.u32(&name)?;
        let offset = self.u64(&name)?;
        Ok((name, Place { dims, kind, offset }))
    }
}
