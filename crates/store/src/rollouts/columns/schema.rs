//! The columns by name and type, and the facts about a batch as the schema's metadata.

use super::{About, ColumnsError, FORMAT_VERSION, digest};
use arrow_schema::{DataType, Field, Schema};
use rollyard_core::rollout::Metadata;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

/// A column's place in a batch of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    EnvName,
    EnvExampleId,
    PromptTokens,
    ResponseTokens,
    ResponseLogprobs,
    LossMask,
    Versions,
    TokenRewards,
    EpisodeReward,
    WorkerId,
    Timestamp,
    WeightStep,
    MetadataVersion,
    Temperature,
    TopK,
    IsTruncated,
    CorrectnessReward,
    Exact,
    Group,
    Uid,
    Advantage,
    Used,
    Digest,
}

/// What a column holds.
pub(super) struct Kind {
    pub(super) column: Column,
    pub(super) name: &'static str,
    /// For lists, of their values.
    value: DataType,
    is_list: bool,
    nullable: bool,
}

/// All columns, in the order they are written in.
pub(super) static KINDS: [Kind; 23] = {
    use DataType::{Boolean, Float32, Float64, Int32, Int64, UInt32, UInt64, Utf8};
    [
        one(Column::EnvName, "env_name", Utf8),
        one(Column::EnvExampleId, "env_example_id", Utf8),
        list(Column::PromptTokens, "prompt_tokens", Int32),
        list(Column::ResponseTokens, "response_tokens", Int32),
        list_or_null(Column::ResponseLogprobs, "response_logprobs", Float32),
        list_or_null(Column::LossMask, "loss_mask", Boolean),
        list_or_null(Column::Versions, "versions", Int32),
        list_or_null(Column::TokenRewards, "token_rewards", Float32),
        one(Column::EpisodeReward, "episode_reward", Float64),
        one(Column::WorkerId, "worker_id", Utf8),
        one(Column::Timestamp, "timestamp", Float64),
        one(Column::WeightStep, "weight_step", Int64),
        one(Column::MetadataVersion, "metadata_version", UInt32),
        one_or_null(Column::Temperature, "temperature", Float32),
        one_or_null(Column::TopK, "top_k", Int32),
        one(Column::IsTruncated, "is_truncated", Boolean),
        one_or_null(Column::CorrectnessReward, "correctness_reward", Float64),
        one(Column::Exact, "exact", Boolean),
        one(Column::Group, "group", UInt32),
        one_or_null(Column::Uid, "uid", Utf8),
        one_or_null(Column::Advantage, "advantage", Float32),
        one_or_null(Column::Used, "used", UInt32),
        one(Column::Digest, "digest", UInt64),
    ]
};

const fn one(column: Column, name: &'static str, value: DataType) -> Kind {
    Kind { column, name, value, is_list: false, nullable: false }
}

const fn one_or_null(column: Column, name: &'static str, value: DataType) -> Kind {
    Kind { column, name, value, is_list: false, nullable: true }
}

const fn list(column: Column, name: &'static str, value: DataType) -> Kind {
    Kind { column, name, value, is_list: true, nullable: false }
}

const fn list_or_null(column: Column, name: &'static str, value: DataType) -> Kind {
    Kind { column, name, value, is_list: true, nullable: true }
}

impl Kind {
    fn data_type(&self) -> DataType {
        if self.is_list { DataType::List(Arc::new(self.item())) } else { self.value.clone() }
    }

    pub(super) fn item(&self) -> Field {
        Field::new("item", self.value.clone(), false)
    }

    /// Other writers name the values of a list otherwise, and let them be null.
    fn is(&self, found: &DataType) -> bool {
        match found {
            DataType::List(item) => self.is_list && *item.data_type() == self.value,
            found => !self.is_list && *found == self.value,
        }
    }

    pub(super) fn refuse(&self, found: &DataType) -> ColumnsError {
        let (found, expected) = (found.to_string(), self.data_type().to_string());
        ColumnsError::Type { column: self.name, found, expected }
    }
}

/// Where the columns are in a schema that may have more of them, in the order of [`KINDS`].
pub(super) fn places(schema: &Schema) -> Result<Vec<usize>, ColumnsError> {
    let place = |kind: &Kind| {
        let found = schema.column_with_name(kind.name);
        let (place, field) = found.ok_or(ColumnsError::NoColumn { column: kind.name })?;
        if kind.is(field.data_type()) { Ok(place) } else { Err(kind.refuse(field.data_type())) }
    };
    KINDS.iter().map(place).collect()
}

const FORMAT: &str = "rollyard.format";
const ROWS: &str = "rollyard.rows";
const WORKER_ID: &str = "rollyard.worker_id";
const TIMESTAMP: &str = "rollyard.timestamp";
const WEIGHT_STEP: &str = "rollyard.weight_step";
const METADATA_VERSION: &str = "rollyard.metadata_version";
const DIGEST: &str = "rollyard.digest";
/// Before the keys of [`About::extras`].
const EXTRA: &str = "extra.";

/// The schema of a batch of so many rows.
pub(super) fn of(about: &About, rows: usize) -> Schema {
    let fields: Vec<_> =
        KINDS.iter().map(|kind| Field::new(kind.name, kind.data_type(), kind.nullable)).collect();
    let Metadata { worker_id, timestamp, weight_step, version } = &about.metadata;
    let mut metadata = std::collections::HashMap::from([
        (FORMAT.to_owned(), FORMAT_VERSION.to_string()),
        (ROWS.to_owned(), rows.to_string()),
        (WORKER_ID.to_owned(), worker_id.clone()),
        // Rust writes as many digits as it takes to read the same number again.
        (TIMESTAMP.to_owned(), timestamp.to_string()),
        (WEIGHT_STEP.to_owned(), weight_step.to_string()),
        (METADATA_VERSION.to_owned(), version.to_string()),
        (DIGEST.to_owned(), hex(digest::of_about(about, rows))),
    ]);
    metadata.extend(about.extras.iter().map(|(key, value)| (format!("{EXTRA}{key}"), value.clone())));
    Schema::new_with_metadata(fields, metadata)
}

/// The facts about a batch and how many rows it has.
pub(super) fn about(schema: &Schema) -> Result<(About, usize), ColumnsError> {
    let said = &schema.metadata;
    let text = |key| said.get(key).map(|value| &**value).ok_or(ColumnsError::NotRollouts { key });
    let found = text(FORMAT)?;
    if found != FORMAT_VERSION.to_string() {
        return Err(ColumnsError::Version { found: found.to_owned() });
    }
    let rows = number(ROWS, text(ROWS)?)?;
    let metadata = Metadata {
        worker_id: text(WORKER_ID)?.to_owned(),
        timestamp: number(TIMESTAMP, text(TIMESTAMP)?)?,
        weight_step: number(WEIGHT_STEP, text(WEIGHT_STEP)?)?,
        version: number(METADATA_VERSION, text(METADATA_VERSION)?)?,
    };
    let extras =
        said.iter().filter_map(|(key, value)| Some((key.strip_prefix(EXTRA)?.to_owned(), value.clone())));
    let extras: BTreeMap<String, String> = extras.collect();
    if !metadata.timestamp.is_finite() {
        return Err(ColumnsError::Timestamp { value: metadata.timestamp });
    }
    let about = About { metadata, extras };
    let (found, expected) = (hex(digest::of_about(&about, rows)), text(DIGEST)?);
    if found != expected {
        return Err(ColumnsError::AboutDigest { found, expected: expected.to_owned() });
    }
    Ok((about, rows))
}

fn number<T: FromStr>(key: &'static str, value: &str) -> Result<T, ColumnsError> {
    value.parse().map_err(|_| ColumnsError::About { key, value: value.to_owned() })
}

fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}
