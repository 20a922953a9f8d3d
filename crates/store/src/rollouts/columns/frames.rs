//! The messages of an Arrow IPC stream, with every length in them checked.
//!
//! Arrow's own reader verifies the structure of a message and then slices its body by the lengths that the
//! message claims, which panics if they lie. Here they are looked at first. Columns that are not ours are
//! passed over without being built, so only the few types of ours are ever made of bytes from outside.

use super::{ColumnsError, schema};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_ipc::{Message, MessageHeader, RecordBatch as Header};
use arrow_schema::{ArrowError, DataType, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// The schema of a stream and its batches, of which only our columns are there, in our order.
pub(super) fn read(bytes: &[u8]) -> Result<(Arc<Schema>, Vec<RecordBatch>), ColumnsError> {
    // A copy at an address that suits every type: the columns are read where they lie.
    let mut frames = Frames { bytes: Buffer::from(bytes), at: 0 };
    let schema = match frames.next()? {
        Some((message, _)) => schema_of(&message)?,
        None => return Err(not_arrow("there is no schema")),
    };
    let places = schema::places(&schema)?;
    let mut batches = Vec::new();
    while let Some((message, body)) = frames.next()? {
        let message = parse(&message)?;
        // Dictionaries belong to columns that are not ours.
        if message.header_type() != MessageHeader::RecordBatch {
            continue;
        }
        let header = message.header_as_record_batch().ok_or_else(|| not_arrow("a batch has no header"))?;
        check(&header, body.len())?;
        check_offsets(&header, &schema, &places)?;
        let (dictionaries, version) = (HashMap::new(), message.version());
        let decoder = RecordBatchDecoder::try_new(&body, header, schema.clone(), &dictionaries, &version);
        let batch = decoder.and_then(|decoder| decoder.with_projection(Some(&places)).read_record_batch());
        batches.push(batch.map_err(from_arrow)?);
    }
    Ok((schema, batches))
}

struct Frames {
    bytes: Buffer,
    at: usize,
}

impl Frames {
    /// The next message and its body; none at the end of the stream, whether it is marked or not.
    fn next(&mut self) -> Result<Option<(Buffer, Buffer)>, ColumnsError> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.take(8)?;
        let (mark, len) = start.as_slice().split_at_checked(4).unwrap_or_default();
        if mark != [0xff; 4] {
            return Err(not_arrow("a message does not begin with ff ff ff ff"));
        }
        let len = u32::from_le_bytes(len.try_into().expect("eight bytes less four"));
        if len == 0 {
            return Ok(None);
        }
        let message = self.take(i64::from(len))?;
        let body = self.take(parse(&message)?.bodyLength())?;
        Ok(Some((message, body)))
    }

    fn take(&mut self, len: i64) -> Result<Buffer, ColumnsError> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(len) {
            Ok(len) if len <= left => {
                let taken = self.bytes.slice_with_length(self.at, len);
                self.at += len;
                Ok(taken)
            }
            _ => Err(ColumnsError::Cut { at: self.at }),
        }
    }
}

fn parse(message: &Buffer) -> Result<Message<'_>, ColumnsError> {
    arrow_ipc::root_as_message(message).map_err(|error| not_arrow(&error.to_string()))
}

fn schema_of(message: &Buffer) -> Result<Arc<Schema>, ColumnsError> {
    let message = parse(message)?;
    let schema = message.header_as_schema().ok_or_else(|| not_arrow("the first message is no schema"))?;
    Ok(Arc::new(arrow_ipc::convert::try_fb_to_schema(schema).map_err(from_arrow)?))
}

/// Everything that a batch says of its body lies inside the body.
fn check(header: &Header<'_>, body_len: usize) -> Result<(), ColumnsError> {
    if header.compression().is_some() {
        return Err(not_arrow("its batches are compressed, which those of rollouts are not"));
    }
    let inside = |offset: i64, len: i64| {
        let end = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        end.and_then(|(offset, len)| offset.checked_add(len)).is_some_and(|end| end <= body_len)
    };
    // Even a column of booleans takes a bit for each of its values.
    let values_max = body_len.saturating_mul(8);
    let fits = |len: i64| usize::try_from(len).is_ok_and(|len| len <= values_max);
    let buffers_fit =
        header.buffers().iter().flatten().all(|buffer| inside(buffer.offset(), buffer.length()));
    let nodes_fit =
        header.nodes().iter().flatten().all(|node| fits(node.length()) && fits(node.null_count()));
    if buffers_fit && nodes_fit && fits(header.length()) {
        Ok(())
    } else {
        Err(not_arrow("a batch claims more than its body holds"))
    }
}

/// The offsets of our texts and lists are whole numbers; Arrow panics at a part of one.
fn check_offsets(header: &Header<'_>, schema: &Schema, places: &[usize]) -> Result<(), ColumnsError> {
    let buffers = header.buffers().ok_or_else(|| not_arrow("a batch has no buffers"))?;
    let mut first = 0;
    for (place, field) in schema.fields().iter().enumerate() {
        let has_offsets = matches!(field.data_type(), DataType::Utf8 | DataType::List(_));
        if has_offsets && places.contains(&place) {
            let len = buffers.iter().nth(first + 1).map(|offsets| offsets.length());
            if len.is_none_or(|len| len % 4 != 0) {
                return Err(not_arrow("a column ends inside one of its offsets"));
            }
        }
        first += buffers_of(field.data_type()).ok_or_else(|| ColumnsError::Strange {
            column: field.name().clone(),
            found: field.data_type().to_string(),
        })?;
    }
    Ok(())
}

/// How many buffers a column takes, where that can be told by its type alone.
fn buffers_of(data_type: &DataType) -> Option<usize> {
    Some(match data_type {
        DataType::Null => 0,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 3,
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            2 + buffers_of(item.data_type())?
        }
        DataType::FixedSizeList(item, _) => 1 + buffers_of(item.data_type())?,
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| buffers_of(field.data_type()));
            1 + fields.sum::<Option<usize>>()?
        }
        DataType::Boolean | DataType::FixedSizeBinary(_) | DataType::Dictionary(..) => 2,
        plain if plain.is_primitive() => 2,
        _ => return None,
    })
}

fn not_arrow(why: &str) -> ColumnsError {
    ColumnsError::NotArrow { why: why.to_owned() }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn from_arrow(error: ArrowError) -> ColumnsError {
    not_arrow(&error.to_string())
}
