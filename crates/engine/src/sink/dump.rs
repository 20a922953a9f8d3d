//! The trajectories of an experiment as files, a line a sample, for people who debug.
//!
//! `{fileroot}/{experiment}/{trial}/[rollout|eval-rollout]/{version}/{task_id}.jsonl`, where version is that of
//! the weights when the task ended. A file is there as a whole or not at all.

use rollyard_core::rollout::{NO_VERSION, Rollout};
use rollyard_core::tokens::Tokenizer;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use futures_util::future::BoxFuture;

use super::Sink;
use super::archive::told;
use crate::episode::Sample;
use crate::executor::{Finished, version_range};
use crate::generate::Segment;
use crate::group::{Member, Outcome};

#[derive(Clone, Debug)]
pub struct DumpSettings {
    pub fileroot: PathBuf,
    pub experiment: String,
    pub trial: String,
    /// Writes tokens as text; where there is none, only text that the engine wrote is there.
    pub tokenizer: Option<Arc<Tokenizer>>,
    /// Token ids and log-probabilities too.
    pub tokens: bool,
}

#[derive(Clone, Debug)]
pub struct Dump {
    settings: DumpSettings,
}

#[derive(Serialize)]
struct Line<'a> {
    task_id: u64,
    sample_idx: u32,
    seqlen: usize,
    /// Where the first sampled token stands.
    prompt_len: usize,
    /// Of the oldest and of the newest sampled token.
    head_version: Option<i32>,
    tail_version: Option<i32>,
    reward: Option<f64>,
    prompt: Option<String>,
    completion: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// `[version, tokens]` from the first sampled token on; -1 for tokens that were given.
    version_rle: Vec<(i32, usize)>,
    segments: &'a [Segment],
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<&'a [i32]>,
    /// One for each token after the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a [f32]>,
}

impl Dump {
    pub fn new(settings: DumpSettings) -> Self {
        Self { settings }
    }

    /// Where a task is written.
    pub fn path(&self, finished: &Finished) -> PathBuf {
        let DumpSettings { fileroot, experiment, trial, .. } = &self.settings;
        let scope = if finished.is_eval { "eval-rollout" } else { "rollout" };
        let folder = fileroot.join(experiment).join(trial).join(scope).join(finished.version.to_string());
        folder.join(format!("{}.jsonl", finished.id))
    }

    fn lines(&self, finished: &Finished) -> serde_json::Result<Vec<u8>> {
        let nothing = Sample::default();
        let mut bytes = Vec::new();
        for member in &finished.members {
            let samples = match &member.outcome {
                Outcome::Done(trajectory) => trajectory.samples.as_slice(),
                Outcome::Rejected | Outcome::Failed(_) | Outcome::Cancelled => std::slice::from_ref(&nothing),
            };
            for sample in samples {
                serde_json::to_writer(&mut bytes, &self.line(finished, member, sample))?;
                bytes.push(b'\n');
            }
        }
        Ok(bytes)
    }

    fn line<'a>(&self, finished: &Finished, member: &Member, sample: &'a Sample) -> Line<'a> {
        let (status, reason) = told(finished, member);
        let rollout = sample.rollout.as_ref();
        let versions = version_range(sample);
        let split = rollout.map_or(0, first_sampled);
        let (prompt, completion) = self.text(sample, split);
        let shown = rollout.filter(|_| self.settings.tokens);
        Line {
            task_id: finished.id.0,
            sample_idx: member.sample_idx,
            seqlen: rollout.map_or(0, |rollout| rollout.tokens().len()),
            prompt_len: split,
            head_version: versions.map(|(head, _)| head),
            tail_version: versions.map(|(_, tail)| tail),
            reward: matches!(member.outcome, Outcome::Done(_)).then_some(sample.reward),
            prompt,
            completion,
            status,
            reason,
            version_rle: rollout.map(|rollout| version_rle(rollout, split)).unwrap_or_default(),
            segments: &sample.segments,
            token_ids: shown.map(Rollout::tokens),
            logprobs: shown.and_then(Rollout::response_logprobs).map(|all| skip(all, rollout, split)),
        }
    }

    fn text(&self, sample: &Sample, split: usize) -> (Option<String>, Option<String>) {
        if let (Some(tokenizer), Some(rollout)) = (&self.settings.tokenizer, &sample.rollout) {
            let ids: Vec<u32> = rollout.tokens().iter().map(|id| id.cast_unsigned()).collect();
            let (prompt, completion) = ids.split_at_checked(split).unwrap_or((&ids, &[]));
            let text = |ids| tokenizer.encoder().decode(ids, false).ok();
            return (text(prompt), text(completion));
        }
        let text = sample.text.as_ref();
        (text.map(|text| text.prompt.clone()), text.map(|text| text.completion.clone()))
    }

    fn write(&self, finished: &Finished) -> io::Result<()> {
        let path = self.path(finished);
        let bytes = self.lines(finished)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let unfinished = folder.join(format!(".{}.jsonl.{}", finished.id, std::process::id()));
        fs::write(&unfinished, bytes)?;
        fs::rename(&unfinished, &path)
    }
}

impl Sink for Dump {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.write(finished)
                .map_err(|error| format!("cannot write ({error}): {}", self.path(finished).display()))
        })
    }
}

/// The place of the first token that was sampled; the end, if none was.
fn first_sampled(rollout: &Rollout) -> usize {
    let first = rollout.sampled().spans().find(|(_, sampled)| *sampled);
    rollout.prompt_len() + first.map_or(rollout.response_len(), |(span, _)| span.start)
}

fn version_rle(rollout: &Rollout, split: usize) -> Vec<(i32, usize)> {
    let from = split - rollout.prompt_len();
    let spans = rollout
        .versions()
        .spans()
        .map(|(span, version)| (version, span.end.saturating_sub(span.start.max(from))));
    spans
        .filter(|(_, tokens)| *tokens > 0)
        .map(|(version, tokens)| (version.max(NO_VERSION), tokens))
        .collect()
}

/// What belongs to the tokens from `split` on.
fn skip<'a>(all: &'a [f32], rollout: Option<&Rollout>, split: usize) -> &'a [f32] {
    all.get(split - rollout.map_or(0, Rollout::prompt_len)..).unwrap_or_default()
}
