//! Columns into rollouts, each checked as one that was never seen before.

use super::schema::{self, Column, KINDS, Kind};
use super::{ColumnsError, Damaged, Decoded, OwnedRow, digest, frames};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, ListArray, PrimitiveArray, RecordBatch, StringArray};
use rollyard_core::rollout::{Draft, Metadata, Rollout};
use std::ops::Range;

/// Reads what [`super::encode`] wrote. Rows that are not what was written are left out and reported.
pub fn decode(bytes: &[u8]) -> Result<Decoded, ColumnsError> {
    let (schema, batches) = frames::read(bytes)?;
    let (about, expected) = schema::about(&schema)?;
    let found = batches.iter().map(RecordBatch::num_rows).sum();
    if found != expected {
        return Err(ColumnsError::Rows { found, expected });
    }
    let mut decoded = Decoded { about, rows: Vec::with_capacity(found), damaged: Vec::new() };
    for batch in &batches {
        let table = Table::of(batch)?;
        for at in 0..batch.num_rows() {
            match table.row(at) {
                Ok(row) => decoded.rows.push(row),
                Err(why) => {
                    let row = decoded.rows.len() + decoded.damaged.len();
                    decoded.damaged.push(Damaged { row, group: table.group.value(at), why });
                }
            }
        }
    }
    Ok(decoded)
}

/// The columns of a batch by name. All are as long as the batch, which the batch itself has checked.
struct Table<'a> {
    env_name: &'a StringArray,
    env_example_id: &'a StringArray,
    prompt_tokens: Lists<'a, PrimitiveArray<Int32Type>>,
    response_tokens: Lists<'a, PrimitiveArray<Int32Type>>,
    response_logprobs: Lists<'a, PrimitiveArray<Float32Type>>,
    loss_mask: Lists<'a, BooleanArray>,
    versions: Lists<'a, PrimitiveArray<Int32Type>>,
    token_rewards: Lists<'a, PrimitiveArray<Float32Type>>,
    episode_reward: &'a PrimitiveArray<Float64Type>,
    worker_id: &'a StringArray,
    timestamp: &'a PrimitiveArray<Float64Type>,
    weight_step: &'a PrimitiveArray<Int64Type>,
    metadata_version: &'a PrimitiveArray<UInt32Type>,
    temperature: &'a PrimitiveArray<Float32Type>,
    top_k: &'a PrimitiveArray<Int32Type>,
    is_truncated: &'a BooleanArray,
    correctness_reward: &'a PrimitiveArray<Float64Type>,
    exact: &'a BooleanArray,
    group: &'a PrimitiveArray<UInt32Type>,
    uid: &'a StringArray,
    advantage: &'a PrimitiveArray<Float32Type>,
    used: &'a PrimitiveArray<UInt32Type>,
    digest: &'a PrimitiveArray<UInt64Type>,
}

impl<'a> Table<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ColumnsError> {
        Ok(Self {
            env_name: get(batch, Column::EnvName)?,
            env_example_id: get(batch, Column::EnvExampleId)?,
            prompt_tokens: Lists::of(batch, Column::PromptTokens)?,
            response_tokens: Lists::of(batch, Column::ResponseTokens)?,
            response_logprobs: Lists::of(batch, Column::ResponseLogprobs)?,
            loss_mask: Lists::of(batch, Column::LossMask)?,
            versions: Lists::of(batch, Column::Versions)?,
            token_rewards: Lists::of(batch, Column::TokenRewards)?,
            episode_reward: get(batch, Column::EpisodeReward)?,
            worker_id: get(batch, Column::WorkerId)?,
            timestamp: get(batch, Column::Timestamp)?,
            weight_step: get(batch, Column::WeightStep)?,
            metadata_version: get(batch, Column::MetadataVersion)?,
            temperature: get(batch, Column::Temperature)?,
            top_k: get(batch, Column::TopK)?,
            is_truncated: get(batch, Column::IsTruncated)?,
            correctness_reward: get(batch, Column::CorrectnessReward)?,
            exact: get(batch, Column::Exact)?,
            group: get(batch, Column::Group)?,
            uid: get(batch, Column::Uid)?,
            advantage: get(batch, Column::Advantage)?,
            used: get(batch, Column::Used)?,
            digest: get(batch, Column::Digest)?,
        })
    }

    /// The row, or why it is not the one that was written.
    fn row(&self, at: usize) -> Result<OwnedRow, String> {
        let row = OwnedRow {
            rollout: Rollout::try_from(self.draft(at)?).map_err(|error| error.to_string())?,
            group: self.group.value(at),
            uid: self.uid.is_valid(at).then(|| self.uid.value(at).to_owned()),
            advantage: maybe(self.advantage, at),
            used: maybe(self.used, at),
        };
        let (found, expected) = (digest::of_row(&row.as_row()), self.digest.value(at));
        if found == expected {
            Ok(row)
        } else {
            Err(format!("its digest is {found:016x}, but {expected:016x} was written"))
        }
    }

    fn draft(&self, at: usize) -> Result<Draft, String> {
        let prompt = self.prompt_tokens.slice(at).ok_or("it has no prompt_tokens")?;
        let response = self.response_tokens.slice(at).ok_or("it has no response_tokens")?;
        Ok(Draft {
            env_name: self.env_name.value(at).to_owned(),
            env_example_id: self.env_example_id.value(at).to_owned(),
            tokens: [prompt, response].concat(),
            prompt_len: prompt.len(),
            logprobs: self.response_logprobs.slice(at).map(<[_]>::to_vec),
            sampled: self.loss_mask.bools(at),
            versions: self.versions.slice(at).map(<[_]>::to_vec),
            token_rewards: self.token_rewards.slice(at).map(<[_]>::to_vec),
            episode_reward: self.episode_reward.value(at),
            metadata: Metadata {
                worker_id: self.worker_id.value(at).to_owned(),
                timestamp: self.timestamp.value(at),
                weight_step: self.weight_step.value(at),
                version: self.metadata_version.value(at),
            },
            temperature: maybe(self.temperature, at),
            top_k: maybe(self.top_k, at),
            is_truncated: self.is_truncated.value(at),
            correctness_reward: maybe(self.correctness_reward, at),
            retokenised: !self.exact.value(at),
        })
    }
}

fn maybe<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, at: usize) -> Option<T::Native> {
    array.is_valid(at).then(|| array.value(at))
}

/// A column of our batch as what its type says it is.
fn get<A: Array + 'static>(batch: &RecordBatch, column: Column) -> Result<&A, ColumnsError> {
    let of_column = |kind: &&Kind| kind.column == column;
    let kind = KINDS.iter().find(of_column).expect("every column is among the kinds");
    let array = batch.columns().get(column as usize).ok_or(ColumnsError::NoColumn { column: kind.name })?;
    array.as_any().downcast_ref().ok_or_else(|| kind.refuse(array.data_type()))
}

/// A column of lists, and the values of all of them in a row.
struct Lists<'a, A> {
    lists: &'a ListArray,
    values: &'a A,
}

impl<'a, A: Array + 'static> Lists<'a, A> {
    fn of(batch: &'a RecordBatch, column: Column) -> Result<Self, ColumnsError> {
        let lists: &ListArray = get(batch, column)?;
        let values = lists.values().as_any().downcast_ref();
        let values = values.expect("the schema was checked to have lists of this type");
        Ok(Self { lists, values })
    }

    /// Where the values of a row are, unless it has none.
    fn span(&self, at: usize) -> Option<Range<usize>> {
        let offsets = self.lists.value_offsets().get(at..at + 2)?;
        let [start, end] = offsets else { return None };
        let span = usize::try_from(*start).ok()?..usize::try_from(*end).ok()?;
        self.lists.is_valid(at).then_some(span)
    }
}

impl<'a, T: ArrowPrimitiveType> Lists<'a, PrimitiveArray<T>> {
    fn slice(&self, at: usize) -> Option<&'a [T::Native]> {
        self.values.values().get(self.span(at)?)
    }
}

impl Lists<'_, BooleanArray> {
    fn bools(&self, at: usize) -> Option<Vec<bool>> {
        let span = self.span(at).filter(|span| span.end <= self.values.len())?;
        Some(span.map(|place| self.values.value(place)).collect())
    }
}
