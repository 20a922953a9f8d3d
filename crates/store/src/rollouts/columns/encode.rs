//! Rollouts into columns.
//!
//! What most rollouts do not need is null and takes no room: a mask that is all ones, versions that are the
//! weight step, rewards that are all zero.

use super::schema::{self, Column, KINDS, Kind};
use super::{About, ColumnsError, Row, digest};
use arrow_array::types::{ArrowPrimitiveType, Float32Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray,
    PrimitiveArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema};
use rollyard_core::rollout::{Rollout, Runs};
use std::sync::Arc;

/// The rows as the bytes of an Arrow IPC stream: a schema, one batch, the end.
pub fn encode(rows: &[Row<'_>], about: &About) -> Result<Vec<u8>, ColumnsError> {
    let timestamp = about.metadata.timestamp;
    if !timestamp.is_finite() {
        return Err(ColumnsError::Timestamp { value: timestamp });
    }
    let schema = Arc::new(schema::of(about, rows.len()));
    let source = Source { rows };
    let columns = KINDS.iter().map(|kind| source.column(kind)).collect::<Result<Vec<_>, _>>()?;
    let room = columns.iter().map(|column| column.get_buffer_memory_size()).sum::<usize>();
    write(&schema, columns, Vec::with_capacity(room + ROOM_FOR_MESSAGES))
        .map_err(|error| ColumnsError::NotArrow { why: error.to_string() })
}

/// The schema and the padding of every column; a guess that spares most batches a second allocation.
const ROOM_FOR_MESSAGES: usize = 16 << 10;

fn write(schema: &Arc<Schema>, columns: Vec<ArrayRef>, into: Vec<u8>) -> Result<Vec<u8>, ArrowError> {
    let batch = RecordBatch::try_new(schema.clone(), columns)?;
    let mut writer = StreamWriter::try_new(into, schema)?;
    writer.write(&batch)?;
    writer.into_inner()
}

struct Source<'a> {
    rows: &'a [Row<'a>],
}

impl Source<'_> {
    fn column(&self, kind: &Kind) -> Result<ArrayRef, ColumnsError> {
        Ok(match kind.column {
            Column::EnvName => self.texts(kind, |row| Some(&row.rollout.env_name))?,
            Column::EnvExampleId => self.texts(kind, |row| Some(&row.rollout.env_example_id))?,
            Column::PromptTokens => {
                self.slices::<Int32Type>(kind, |rollout| Some(rollout.prompt_tokens()))?
            }
            Column::ResponseTokens => {
                self.slices::<Int32Type>(kind, |rollout| Some(rollout.response_tokens()))?
            }
            Column::ResponseLogprobs => self.slices::<Float32Type>(kind, Rollout::response_logprobs)?,
            Column::LossMask => self.masks(kind)?,
            Column::Versions => self.runs::<Int32Type>(kind, versions)?,
            Column::TokenRewards => self.runs::<Float32Type>(kind, token_rewards)?,
            Column::EpisodeReward => self.each::<_, Float64Array>(|row| row.rollout.episode_reward),
            Column::WorkerId => self.texts(kind, |row| Some(&row.rollout.metadata.worker_id))?,
            Column::Timestamp => self.each::<_, Float64Array>(|row| row.rollout.metadata.timestamp),
            Column::WeightStep => self.each::<_, Int64Array>(|row| row.rollout.metadata.weight_step),
            Column::MetadataVersion => self.each::<_, UInt32Array>(|row| row.rollout.metadata.version),
            Column::Temperature => self.each::<_, Float32Array>(|row| row.rollout.temperature),
            Column::TopK => self.each::<_, Int32Array>(|row| row.rollout.top_k),
            Column::IsTruncated => self.each::<_, BooleanArray>(|row| Some(row.rollout.is_truncated)),
            Column::CorrectnessReward => self.each::<_, Float64Array>(|row| row.rollout.correctness_reward),
            Column::Exact => self.each::<_, BooleanArray>(|row| Some(row.rollout.is_exact())),
            Column::Group => self.each::<_, UInt32Array>(|row| row.group),
            Column::Uid => self.texts(kind, |row| row.uid)?,
            Column::Advantage => self.each::<_, Float32Array>(|row| row.advantage),
            Column::Used => self.each::<_, UInt32Array>(|row| row.used),
            Column::Digest => self.each::<_, UInt64Array>(digest::of_row),
        })
    }

    fn each<T, A: Array + FromIterator<T> + 'static>(&self, value: impl Fn(&Row<'_>) -> T) -> ArrayRef {
        Arc::new(self.rows.iter().map(value).collect::<A>())
    }

    fn texts<'a>(
        &'a self,
        kind: &Kind,
        text: impl Fn(&'a Row<'a>) -> Option<&'a str>,
    ) -> Result<ArrayRef, ColumnsError> {
        // Arrow would panic rather than overflow.
        let values = self.rows.iter().filter_map(&text).map(str::len).sum();
        kind.check_room(values)?;
        Ok(Arc::new(self.rows.iter().map(&text).collect::<StringArray>()))
    }

    fn slices<T: ArrowPrimitiveType>(
        &self,
        kind: &Kind,
        values: impl Fn(&Rollout) -> Option<&[T::Native]>,
    ) -> Result<ArrayRef, ColumnsError> {
        let lists: Vec<_> = self.rows.iter().map(|row| values(row.rollout)).collect();
        let mut flat = Vec::with_capacity(lists.iter().flatten().map(|list| list.len()).sum());
        lists.iter().flatten().for_each(|list| flat.extend_from_slice(list));
        let lengths = lists.iter().map(|list| list.map(<[_]>::len));
        kind.list(lengths, Arc::new(PrimitiveArray::<T>::new(flat.into(), None)))
    }

    fn runs<T: ArrowPrimitiveType>(
        &self,
        kind: &Kind,
        runs: impl Fn(&Rollout) -> Option<&Runs<T::Native>>,
    ) -> Result<ArrayRef, ColumnsError> {
        let lists: Vec<_> = self.rows.iter().map(|row| runs(row.rollout)).collect();
        let flat: Vec<T::Native> = lists.iter().flatten().flat_map(|runs| runs.values()).collect();
        let lengths = lists.iter().map(|runs| runs.map(Runs::len));
        kind.list(lengths, Arc::new(PrimitiveArray::<T>::new(flat.into(), None)))
    }

    fn masks(&self, kind: &Kind) -> Result<ArrayRef, ColumnsError> {
        let lists: Vec<_> = self.rows.iter().map(|row| mask(row.rollout)).collect();
        let flat: BooleanArray = lists.iter().flatten().flat_map(|runs| runs.values()).map(Some).collect();
        kind.list(lists.iter().map(|runs| runs.map(Runs::len)), Arc::new(flat))
    }
}

/// Unless all tokens were sampled.
fn mask(rollout: &Rollout) -> Option<&Runs<bool>> {
    rollout.sampled().spans().any(|(_, sampled)| !sampled).then(|| rollout.sampled())
}

/// Unless they are those of the weight step.
fn versions(rollout: &Rollout) -> Option<&Runs<i32>> {
    (!rollout.has_one_version()).then(|| rollout.versions())
}

/// Unless all are zero, to the bit: minus zero is written.
fn token_rewards(rollout: &Rollout) -> Option<&Runs<f32>> {
    let rewards = rollout.token_rewards();
    rewards.spans().any(|(_, reward)| reward.to_bits() != 0).then_some(rewards)
}

impl Kind {
    fn check_room(&self, values: usize) -> Result<(), ColumnsError> {
        match i32::try_from(values) {
            Ok(_) => Ok(()),
            Err(_) => Err(ColumnsError::TooLarge { column: self.name, values }),
        }
    }

    /// A list of so many values, or null, for each row.
    fn list(
        &self,
        lengths: impl Iterator<Item = Option<usize>> + Clone,
        values: ArrayRef,
    ) -> Result<ArrayRef, ColumnsError> {
        self.check_room(values.len())?;
        let offsets = OffsetBuffer::from_lengths(lengths.clone().map(Option::unwrap_or_default));
        let nulls = NullBuffer::from_iter(lengths.map(|len| len.is_some()));
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        Ok(Arc::new(ListArray::new(Arc::new(self.item()), offsets, values, nulls)))
    }
}
