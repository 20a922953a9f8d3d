//! Rows of a Parquet file, as JSON.
//!
//! Our own archive keeps each row's line in a column `record`, and that is what is read. Of any other file a row is
//! the object of its columns, without those that are null.

use crate::places::{PlaceError, ReadAt};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, Read};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

const RECORD: &str = "record";
const BATCH_ROWS: usize = 256;
const READ_BYTES: u64 = 1 << 20;

/// Calls `each` with the lines of some rows, a batch at a time.
pub(crate) fn rows(
    file: &Arc<dyn ReadAt>,
    range: Range<u64>,
    mut each: impl FnMut(Vec<Bytes>) -> ControlFlow<()>,
) -> Result<(), String> {
    let told = |error: ParquetError| format!("it cannot be read as Parquet ({error})");
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(Chunks(Arc::clone(file))).map_err(told)?;
    // Groups of rows before the first one need not be looked at.
    let (mut groups, mut before, mut seen) = (Vec::new(), 0, 0);
    for (nth, group) in builder.metadata().row_groups().iter().enumerate() {
        let count = u64::try_from(group.num_rows()).unwrap_or(0);
        if seen + count <= range.start {
            before += count;
        } else if seen < range.end {
            groups.push(nth);
        }
        seen += count;
    }
    let has_record =
        builder.schema().fields().iter().any(|field| field.name() == RECORD && is_text(field.data_type()));
    if has_record {
        let mask = ProjectionMask::columns(builder.parquet_schema(), [RECORD]);
        builder = builder.with_projection(mask);
    }
    let (skip, take) = (range.start - before, range.end.min(seen).saturating_sub(range.start));
    let as_size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let builder = builder.with_row_groups(groups).with_offset(as_size(skip)).with_limit(as_size(take));
    for batch in builder.with_batch_size(BATCH_ROWS).build().map_err(told)? {
        let batch = batch.map_err(|error| format!("it cannot be read as Parquet ({error})"))?;
        let lines = (0..batch.num_rows()).map(|row| line(&batch, row, has_record)).collect();
        if each(lines).is_break() {
            break;
        }
    }
    Ok(())
}

fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary
    )
}

fn line(batch: &RecordBatch, row: usize, has_record: bool) -> Bytes {
    if has_record {
        let record = batch.columns().first().and_then(|column| text(column, row));
        return Bytes::from(record.map(<[u8]>::to_vec).unwrap_or_default());
    }
    let mut json = String::from("{");
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        entry(&mut json, field.name(), column, row);
    }
    json.push('}');
    Bytes::from(json)
}

fn entry(json: &mut String, name: &str, column: &dyn Array, row: usize) {
    if column.is_null(row) {
        return;
    }
    if !json.ends_with('{') {
        json.push(',');
    }
    quote(json, name);
    json.push(':');
    value(json, column, row);
}

fn quote(json: &mut String, text: &str) {
    json.push_str(&serde_json::Value::from(text).to_string());
}

fn text(column: &dyn Array, row: usize) -> Option<&[u8]> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => Some(column.as_string_view().value(row).as_bytes()),
        DataType::Binary => Some(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(column.as_binary::<i64>().value(row)),
        _ => None,
    }
}

fn value(json: &mut String, column: &dyn Array, row: usize) {
    if column.is_null(row) {
        return json.push_str("null");
    }
    if let Some(bytes) = text(column, row) {
        return quote(json, &String::from_utf8_lossy(bytes));
    }
    macro_rules! number {
        ($kind:ty) => {
            json.push_str(&column.as_primitive::<$kind>().value(row).to_string())
        };
    }
    match column.data_type() {
        DataType::Boolean => json.push_str(if column.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => float(json, f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(json, column.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => number!(Date32Type),
        DataType::Timestamp(TimeUnit::Second, _) => number!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => number!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => number!(TimestampNanosecondType),
        DataType::List(_) => list(json, &column.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(json, &column.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(json, &column.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            json.push('{');
            for (field, part) in fields.iter().zip(column.as_struct().columns()) {
                entry(json, field.name(), part, row);
            }
            json.push('}');
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            json.push('{');
            if let [keys, values] = entries.columns() {
                for at in 0..entries.len() {
                    let key = text(keys, at).map(String::from_utf8_lossy).unwrap_or_default();
                    entry(json, &key, values, at);
                }
            }
            json.push('}');
        }
        // Not without a word: whoever looks for the column sees what it is.
        other => quote(json, &format!("[{other}]")),
    }
}

fn float(json: &mut String, float: f64) {
    match float {
        f64::INFINITY => json.push_str("Infinity"),
        f64::NEG_INFINITY => json.push_str("-Infinity"),
        float if float.is_nan() => json.push_str("NaN"),
        float => json.push_str(&format!("{float:?}")),
    }
}

fn list(json: &mut String, items: &dyn Array) {
    json.push('[');
    for at in 0..items.len() {
        if at > 0 {
            json.push(',');
        }
        value(json, items, at);
    }
    json.push(']');
}

/// A file of some place, as the Parquet reader wants one.
struct Chunks(Arc<dyn ReadAt>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.size_bytes()
    }
}

impl ChunkReader for Chunks {
    type T = Ahead;

    fn get_read(&self, start: u64) -> Result<Ahead, ParquetError> {
        Ok(Ahead { file: Arc::clone(&self.0), at: start, read: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.0.read_at(start..start + length as u64).map_err(external)?;
        if bytes.len() == length {
            return Ok(bytes);
        }
        Err(ParquetError::EOF(format!("{} of {length} bytes at {start}", bytes.len())))
    }
}

fn external(error: PlaceError) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Reads on from somewhere, a stretch at a time.
#[derive(Debug)]
struct Ahead {
    file: Arc<dyn ReadAt>,
    at: u64,
    read: Bytes,
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            self.read = self.file.read_at(self.at..self.at + READ_BYTES).map_err(io::Error::other)?;
            self.at += self.read.len() as u64;
        }
        let count = into.len().min(self.read.len());
        self.read.copy_to_slice(into.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}
