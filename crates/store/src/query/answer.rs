//! The rows of an SQL answer as one Arrow batch, for Parquet files and for Python.
//!
//! SQLite says the type of a value, not of a column, so a column takes the narrowest type that holds all of its
//! values: integers, numbers, truth, or text.

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use std::sync::Arc;

/// All rows of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub names: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Answer {
    pub fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let columns = (0..self.names.len()).map(|nth| self.column(nth));
        let (types, arrays): (Vec<DataType>, Vec<ArrayRef>) = columns.unzip();
        let fields = self.names.iter().zip(types).map(|(name, kind)| Field::new(name, kind, true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(Arc::new(schema), arrays, &rows)
    }

    /// As a stream of Arrow's IPC format.
    pub fn ipc(&self) -> Result<Bytes, ArrowError> {
        let batch = self.batch()?;
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(&batch)?;
        Ok(writer.into_inner()?.into())
    }

    /// As a Parquet file.
    pub fn parquet(&self) -> Result<Bytes, ArrowError> {
        let batch = self.batch()?;
        let packing = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(packing).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        Ok(writer.into_inner()?.into())
    }

    fn values(&self, nth: usize) -> impl Iterator<Item = &Value> {
        self.rows.iter().map(move |row| row.get(nth).unwrap_or(&Value::Null))
    }

    fn column(&self, nth: usize) -> (DataType, ArrayRef) {
        match self.values(nth).fold(DataType::Null, wider) {
            DataType::Boolean => {
                let mut builder = BooleanBuilder::with_capacity(self.rows.len());
                self.values(nth).for_each(|value| builder.append_option(value.as_bool()));
                (DataType::Boolean, Arc::new(builder.finish()))
            }
            DataType::Int64 => {
                let mut builder = Int64Builder::with_capacity(self.rows.len());
                self.values(nth).for_each(|value| builder.append_option(value.as_i64()));
                (DataType::Int64, Arc::new(builder.finish()))
            }
            DataType::Float64 => {
                let mut builder = Float64Builder::with_capacity(self.rows.len());
                self.values(nth).for_each(|value| builder.append_option(value.as_f64()));
                (DataType::Float64, Arc::new(builder.finish()))
            }
            // A column of nothing but NULL is text too: readers of Parquet differ about a type for nothing.
            _ => {
                let mut builder = StringBuilder::new();
                self.values(nth).for_each(|value| match value {
                    Value::Null => builder.append_null(),
                    Value::String(text) => builder.append_value(text),
                    other => builder.append_value(other.to_string()),
                });
                (DataType::Utf8, Arc::new(builder.finish()))
            }
        }
    }
}

fn wider(kind: DataType, value: &Value) -> DataType {
    let of_value = match value {
        Value::Null => return kind,
        Value::Bool(_) => DataType::Boolean,
        Value::Number(number) if number.is_i64() => DataType::Int64,
        Value::Number(_) => DataType::Float64,
        Value::String(_) | Value::Array(_) | Value::Object(_) => DataType::Utf8,
    };
    match (kind, of_value) {
        (DataType::Null, kind) => kind,
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => DataType::Float64,
        (kind, of_value) if kind == of_value => kind,
        _ => DataType::Utf8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_column_has_the_narrowest_type_that_holds_its_values() {
        for (values, kind) in [
            (vec![json!(1), json!(null), json!(2)], DataType::Int64),
            (vec![json!(1), json!(0.5)], DataType::Float64),
            (vec![json!(0.5), json!(1)], DataType::Float64),
            (vec![json!(true), json!(null)], DataType::Boolean),
            (vec![json!(1), json!("a")], DataType::Utf8),
            (vec![json!(true), json!(1)], DataType::Utf8),
            (vec![json!(null)], DataType::Utf8),
            (vec![], DataType::Utf8),
        ] {
            let rows = values.iter().map(|value| vec![value.clone()]).collect();
            let batch = Answer { names: vec!["x".to_owned()], rows }.batch().unwrap();
            assert_eq!(batch.schema().field(0).data_type(), &kind, "{values:?}");
            assert_eq!(batch.num_rows(), values.len());
        }
    }
}
