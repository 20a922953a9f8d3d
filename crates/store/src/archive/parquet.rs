//! Lines of an archive as Parquet, for engines that know nothing of rollouts.
//!
//! A few typed columns to filter and group by, and the whole line as text in `record`, so that nothing is lost. What a
//! line does not say, or says as something else, is null. `docs/reference/archive.md` has the columns in words.

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;

use super::line::Fields;
use super::texts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    Real,
    Flag,
    Time,
}

/// The columns of rollouts, in order. The run and the day are in the path, as `run=` and `date=`.
pub const ROLLOUTS: &[(&str, Kind)] = &[
    ("uid", Kind::Text),
    ("instance_id", Kind::Text),
    ("group_no", Kind::Integer),
    ("round", Kind::Integer),
    ("epoch", Kind::Integer),
    ("step", Kind::Integer),
    ("version", Kind::Integer),
    ("reward", Kind::Real),
    ("data_source", Kind::Text),
    ("experiment_name", Kind::Text),
    ("validate", Kind::Flag),
    ("sample_index", Kind::Integer),
    ("rollout_n", Kind::Integer),
    ("timestamp", Kind::Time),
    ("message_count", Kind::Integer),
    ("prompt", Kind::Text),
    ("response", Kind::Text),
    ("record", Kind::Text),
];

/// The columns of fates.
pub const FATES: &[(&str, Kind)] = &[
    ("uid", Kind::Text),
    ("status", Kind::Text),
    ("reason", Kind::Text),
    ("why", Kind::Text),
    ("step", Kind::Integer),
    ("version", Kind::Integer),
    ("seq", Kind::Integer),
    ("at", Kind::Time),
];

/// Columns of long text, of which no two values are the same.
const LONG: [&str; 3] = ["prompt", "response", "record"];

/// A file of rollouts, made of lines in the viewer's format.
pub fn of_rollouts(lines: &[u8]) -> Result<Vec<u8>, ParquetError> {
    let mut file = RolloutFile::new()?;
    let mut bytes = file.write(lines)?;
    bytes.extend(file.finish()?);
    Ok(bytes)
}

/// A file of fates, made of their lines.
pub fn of_fates(lines: &[u8]) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), schema(FATES), Some(properties()?))?;
    writer.write(&batch(lines, FATES, |line| {
        let fate: Map<String, Value> = serde_json::from_slice(line).unwrap_or_default();
        move |name: &str| fate.get(name).cloned().unwrap_or_default()
    })?)?;
    writer.into_inner()
}

/// A file of rollouts that is too large to be made at once. What each call gives belongs behind what came before.
pub struct RolloutFile {
    writer: ArrowWriter<Vec<u8>>,
}

impl RolloutFile {
    pub fn new() -> Result<Self, ParquetError> {
        Ok(Self { writer: ArrowWriter::try_new(Vec::new(), schema(ROLLOUTS), Some(properties()?))? })
    }

    /// Some lines, which become a row group of their own.
    pub fn write(&mut self, lines: &[u8]) -> Result<Vec<u8>, ParquetError> {
        self.writer.write(&batch(lines, ROLLOUTS, Rollout::read)?)?;
        self.writer.flush()?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    pub fn finish(self) -> Result<Vec<u8>, ParquetError> {
        self.writer.into_inner()
    }
}

impl std::fmt::Debug for RolloutFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RolloutFile").field("bytes", &self.writer.bytes_written()).finish_non_exhaustive()
    }
}

fn schema(columns: &[(&'static str, Kind)]) -> Arc<Schema> {
    let fields = columns.iter().map(|(name, kind)| Column::new(*kind).field(name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn batch<'a, G: Fn(&str) -> Value>(
    lines: &'a [u8],
    columns: &[(&'static str, Kind)],
    read: impl Fn(&'a [u8]) -> G,
) -> Result<RecordBatch, ParquetError> {
    let mut builders: Vec<(&str, Column)> =
        columns.iter().map(|(name, kind)| (*name, Column::new(*kind))).collect();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let get = read(line);
        for (name, column) in &mut builders {
            column.push(&get(name));
        }
    }
    let arrays: Vec<ArrayRef> = builders.into_iter().map(|(_, column)| column.finish()).collect();
    RecordBatch::try_new(schema(columns), arrays).map_err(|error| ParquetError::General(error.to_string()))
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let packing = Compression::ZSTD(ZstdLevel::try_new(3)?);
    // A dictionary of texts that are all different only costs, and their bounds would be whole texts.
    let plain = LONG.iter().map(|name| ColumnPath::from(*name));
    let properties =
        plain.fold(WriterProperties::builder().set_compression(packing), |properties, column| {
            properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_statistics_enabled(column, EnabledStatistics::None)
        });
    Ok(properties.build())
}

/// A column under construction.
enum Column {
    Text(StringBuilder),
    Integer(Int64Builder),
    Real(Float64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Integer => Self::Integer(Int64Builder::new()),
            Kind::Real => Self::Real(Float64Builder::new()),
            Kind::Flag => Self::Flag(BooleanBuilder::new()),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::new()),
        }
    }

    fn push(&mut self, value: &Value) {
        match self {
            Self::Text(column) => match value {
                Value::String(text) => column.append_value(text),
                Value::Null => column.append_null(),
                other => column.append_value(other.to_string()),
            },
            Self::Integer(column) => column.append_option(integer(value)),
            Self::Real(column) => column.append_option(real(value)),
            Self::Flag(column) => column.append_option(value.as_bool()),
            Self::Time(column) => column.append_option(micros(value)),
        }
    }

    fn field(&self, name: &str) -> Field {
        let kind = match self {
            Self::Text(_) => DataType::Utf8,
            Self::Integer(_) => DataType::Int64,
            Self::Real(_) => DataType::Float64,
            Self::Flag(_) => DataType::Boolean,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        };
        Field::new(name, kind, true)
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::Integer(mut column) => Arc::new(column.finish()),
            Self::Real(mut column) => Arc::new(column.finish()),
            Self::Flag(mut column) => Arc::new(column.finish()),
            Self::Time(mut column) => Arc::new(column.finish().with_timezone("UTC")),
        }
    }
}

/// Engines report versions as numbers or as text.
fn integer(value: &Value) -> Option<i64> {
    let from_real = || value.as_f64().filter(|real| real.fract() == 0.0).map(|real| real as i64);
    value.as_i64().or_else(from_real).or_else(|| value.as_str()?.trim().parse().ok())
}

fn real(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
}

/// Seconds since 1970, or ISO 8601; without a zone it is taken for UTC.
fn micros(value: &Value) -> Option<i64> {
    let text = match value {
        Value::Number(secs) => return secs.as_f64().map(|secs| (secs * 1e6) as i64),
        Value::String(text) => text.trim(),
        _ => return None,
    };
    if let Ok(secs) = text.parse::<f64>() {
        return Some((secs * 1e6) as i64);
    }
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let plain = || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    zoned.or_else(|| plain().map(|plain| plain.timestamp())).map(jiff::Timestamp::as_microsecond)
}

struct Rollout;

impl Rollout {
    /// What a line says under the name of a column.
    fn read(line: &[u8]) -> impl Fn(&str) -> Value {
        let fields: Fields<'_> = serde_json::from_slice(line).unwrap_or_default();
        let parse = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
        let mut known: Map<String, Value> = match fields.get("attributes").and_then(parse) {
            Some(Value::Object(attributes)) => attributes,
            _ => Map::new(),
        };
        let messages = match fields.get("messages").and_then(parse) {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        };
        for (name, from) in [
            ("uid", "uid"),
            ("instance_id", "instance_id"),
            ("version", "weight_version"),
            ("timestamp", "timestamp"),
        ] {
            known.insert(name.to_owned(), fields.get(from).and_then(parse).unwrap_or_default());
        }
        let group = known.get("group").cloned().unwrap_or_default();
        known.insert("group_no".to_owned(), group);
        known.insert("message_count".to_owned(), Value::from(messages.len()));
        known.insert("prompt".to_owned(), Value::from(texts::prompt(&messages)));
        known.insert("response".to_owned(), Value::from(texts::response(&messages)));
        known.insert("record".to_owned(), Value::from(String::from_utf8_lossy(line)));
        move |name: &str| known.get(name).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReader;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
    use bytes::Bytes;

    fn read(bytes: Vec<u8>) -> RecordBatch {
        let mut batches = ParquetRecordBatchReader::try_new(Bytes::from(bytes), 1024).unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert!(batches.next().is_none());
        batch
    }

    #[test]
    fn what_was_written_is_read_back() {
        let lines = concat!(
            r#"{"uid":"u1","instance_id":7,"weight_version":"12","messages":[{"role":"system","content":"s"},"#,
            r#"{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":"a"},"#,
            r#"{"role":"tool","content":"t"},{"role":"assistant","content":"b"}],"timestamp":"2026-01-16T11:33:10.744140","#,
            r#""attributes":{"step":3,"reward":0.5,"group":9,"validate":true,"data_source":"maze"}}"#,
            "\n",
            r#"{"uid":"u2","messages":null,"attributes":{"reward":"NaN"},"timestamp":12.5}"#,
            "\n",
        );
        let batch = read(of_rollouts(lines.as_bytes()).unwrap());
        assert_eq!(batch.num_rows(), 2);
        let texts = |name: &str| -> Vec<Option<String>> {
            let column = batch.column_by_name(name).unwrap().as_string::<i32>();
            column.iter().map(|text| text.map(str::to_owned)).collect()
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(texts("uid"), [some("u1"), some("u2")]);
        assert_eq!(texts("instance_id"), [some("7"), None]);
        assert_eq!(texts("prompt"), [some("s\n\nq"), some("")]);
        assert_eq!(texts("response"), [some("a\n\nb"), some("")]);
        let records: Vec<String> = texts("record").into_iter().flatten().collect();
        assert_eq!(records, lines.lines().collect::<Vec<_>>(), "every line is there, byte for byte");
        let integer = |name: &str| {
            batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
        };
        assert_eq!(integer("version"), [Some(12), None]);
        assert_eq!(integer("group_no"), [Some(9), None]);
        assert_eq!(integer("message_count"), [Some(5), Some(0)]);
        let rewards = batch.column_by_name("reward").unwrap().as_primitive::<Float64Type>();
        assert_eq!(rewards.iter().collect::<Vec<_>>(), [Some(0.5), None]);
        let times = batch.column_by_name("timestamp").unwrap().as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.iter().collect::<Vec<_>>(), [Some(1_768_563_190_744_140), Some(12_500_000)]);
        let names: Vec<&str> = ROLLOUTS.iter().map(|(name, _)| *name).collect();
        let schema = batch.schema();
        assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_line_that_is_no_json_keeps_its_text() {
        let batch = read(of_rollouts(b"not json\n").unwrap());
        assert_eq!(batch.column_by_name("record").unwrap().as_string::<i32>().value(0), "not json");
    }
}
