//! What a row and the facts about a batch are known by again.
//!
//! Every part goes in with its length or a mark of its presence, so that no two contents give the same bytes.
//! Runs go in as runs: a digest says what a rollout is, not how its columns were written.

use super::{About, FORMAT_VERSION, Row};
use rollyard_core::rollout::{Metadata, Runs};
use xxhash_rust::xxh3::Xxh3Default;

/// Of one row's content.
pub(super) fn of_row(row: &Row<'_>) -> u64 {
    let rollout = row.rollout;
    let mut digest = Digest::default();
    digest.text(&rollout.env_name);
    digest.text(&rollout.env_example_id);
    digest.bytes(bytemuck::cast_slice(rollout.prompt_tokens()));
    digest.bytes(bytemuck::cast_slice(rollout.response_tokens()));
    digest
        .maybe(rollout.response_logprobs(), |digest, logprobs| digest.bytes(bytemuck::cast_slice(logprobs)));
    digest.runs(rollout.sampled(), u32::from);
    digest.runs(rollout.versions(), i32::cast_unsigned);
    digest.runs(rollout.token_rewards(), f32::to_bits);
    digest.u64(rollout.episode_reward.to_bits());
    digest.metadata(&rollout.metadata);
    digest.maybe(rollout.temperature, |digest, value| digest.u32(value.to_bits()));
    digest.maybe(rollout.top_k, |digest, value| digest.u32(value.cast_unsigned()));
    digest.u32(u32::from(rollout.is_truncated));
    digest.maybe(rollout.correctness_reward, |digest, value| digest.u64(value.to_bits()));
    digest.u32(u32::from(rollout.is_exact()));
    digest.u32(row.group);
    digest.maybe(row.uid, Digest::text);
    digest.maybe(row.advantage, |digest, value| digest.u32(value.to_bits()));
    digest.maybe(row.used, Digest::u32);
    digest.0.digest()
}

/// Of the facts about a batch, with the number of its rows.
pub(super) fn of_about(about: &About, rows: usize) -> u64 {
    let mut digest = Digest::default();
    digest.u32(FORMAT_VERSION);
    digest.u64(rows as u64);
    digest.metadata(&about.metadata);
    for (key, value) in &about.extras {
        digest.text(key);
        digest.text(value);
    }
    digest.0.digest()
}

#[derive(Default)]
struct Digest(Xxh3Default);

impl Digest {
    fn u32(&mut self, value: u32) {
        self.0.update(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.update(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn maybe<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.u32(u32::from(value.is_some()));
        if let Some(value) = value {
            put(self, value);
        }
    }

    fn runs<T: Copy + PartialEq>(&mut self, runs: &Runs<T>, bits: impl Fn(T) -> u32) {
        self.u64(runs.count() as u64);
        for (span, value) in runs.spans() {
            self.u64(span.end as u64);
            self.u32(bits(value));
        }
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.text(&metadata.worker_id);
        self.u64(metadata.timestamp.to_bits());
        self.u64(metadata.weight_step.cast_unsigned());
        self.u32(metadata.version);
    }
}
