//! Every sample as a line of the viewer's format, appended to one file.
//!
//! A task's lines are written in one call and each says how many there are, so that a crash in the middle is
//! seen when the file is opened again and the torn end is cut off. What the file then holds is what has been
//! done: a run that is started again goes on from there.
//!
//! Rejected and failed tasks are there too, with their reason. A task may be there twice, if it failed and was
//! run again or went stale while it waited: the last word counts.

use rollyard_core::wire::rollout::TokenFields;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::Sink;
use super::identity::Naming;
use crate::episode::Sample;
use crate::executor::{Finished, Status, version_range};
use crate::generate::{Message, Segment};
use crate::group::{Member, Outcome};

#[derive(Clone, Debug)]
pub struct ArchiveSettings {
    pub naming: Naming,
    pub experiment: String,
    /// Also what was sampled, to the token.
    pub tokens: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot {doing} ({source}): {}", .path.display())]
    Io { doing: &'static str, source: io::Error, path: PathBuf },
    #[error("line {line} is no line of an archive ({reason}); give another folder, or move the file away: {}", .path.display())]
    Foreign { line: u64, reason: String, path: PathBuf },
}

/// What a file held when it was opened.
#[derive(Debug, Default)]
pub struct Past {
    /// How each task ended, the last time.
    tasks: HashMap<u64, PastTask>,
    /// Bytes of a task that was torn by a crash, and were cut off.
    pub cut_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastTask {
    pub status: PastStatus,
    /// Of its samples, and how many have one.
    pub reward_sum: f64,
    pub rewarded: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PastStatus {
    Accepted,
    Rejected,
    Failed,
}

impl Past {
    /// Whether it need not be run again: it was made, and if it was rejected, it would be again.
    pub fn is_done(&self, task_id: u64) -> bool {
        self.tasks.get(&task_id).is_some_and(|task| task.status != PastStatus::Failed)
    }

    pub fn done(&self) -> impl Iterator<Item = &PastTask> {
        self.tasks.values().filter(|task| task.status != PastStatus::Failed)
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    settings: ArchiveSettings,
    file: Mutex<File>,
}

impl Archive {
    /// Opens or begins the file, and says what it held.
    pub fn open(path: &Path, settings: ArchiveSettings) -> Result<(Self, Past), ArchiveError> {
        let io = |doing| move |source| ArchiveError::Io { doing, source, path: path.to_owned() };
        let past = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Past::default(),
            Err(error) => return Err(io("read")(error)),
            Ok(file) => read_past(path, file)?,
        };
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(io("open"))?;
        if past.cut_bytes > 0 {
            let len = file.metadata().map_err(io("look at"))?.len();
            file.set_len(len - past.cut_bytes).map_err(io("cut"))?;
        }
        Ok((Self { path: path.to_owned(), settings, file: Mutex::new(file) }, past))
    }

    /// To the disk itself. Without it a crash of the machine, not of the program, may lose the last seconds.
    pub fn sync(&self) -> Result<(), ArchiveError> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.sync_data().map_err(|source| ArchiveError::Io { doing: "sync", source, path: self.path.clone() })
    }

    fn append(&self, finished: &Finished) -> Result<(), String> {
        let bytes = self.settings.lines(finished).map_err(|error| error.to_string())?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).map_err(|error| format!("cannot write ({error}): {}", self.path.display()))
    }
}

impl Sink for Archive {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        // Into the page cache, which takes less than handing it to another thread.
        Box::pin(async move { self.append(finished) })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    uid: String,
    instance_id: &'a str,
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    reward: Option<f64>,
    attributes: Attributes<'a>,
    timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_version: Option<i32>,
    /// The tokens are the ones that were sampled.
    is_exact: bool,
    #[serde(skip_serializing_if = "<[Segment]>::is_empty")]
    segments: &'a [Segment],
    #[serde(flatten)]
    tokens: Option<TokenFields<'a>>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Attributes<'a> {
    sample_index: u64,
    step: i32,
    rollout_n: u32,
    reward: Option<f64>,
    data_source: &'a str,
    experiment_name: &'a str,
    validate: bool,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    attempts: u32,
    elapsed_secs: f64,
    group_size: u32,
    /// Lines of this task that were written together.
    group_lines: usize,
}

impl ArchiveSettings {
    /// All lines of the task.
    fn lines(&self, finished: &Finished) -> serde_json::Result<Vec<u8>> {
        let timestamp = jiff::Timestamp::now().to_string();
        let instance_id = Naming::instance_id(&finished.data);
        let data_source = finished.data.get("data_source").and_then(Value::as_str).unwrap_or("unknown");
        let nothing = Sample::default();
        let mut parts: Vec<(&Member, usize, Option<&Sample>)> = Vec::new();
        for member in &finished.members {
            match &member.outcome {
                Outcome::Done(trajectory) => {
                    parts
                        .extend(trajectory.samples.iter().enumerate().map(|(nth, s)| (member, nth, Some(s))));
                }
                Outcome::Rejected | Outcome::Failed(_) | Outcome::Cancelled => parts.push((member, 0, None)),
            }
        }
        let mut bytes = Vec::new();
        for (member, part, sample) in &parts {
            let (status, reason) = told(finished, member);
            let reward = sample.map(|sample| sample.reward);
            let sample = sample.unwrap_or(&nothing);
            let line = Line {
                uid: self.naming.uid(finished.id.0, &finished.data, member.sample_idx, *part),
                instance_id: &instance_id,
                messages: &sample.messages,
                reward,
                attributes: Attributes {
                    sample_index: finished.id.0,
                    step: finished.version,
                    rollout_n: member.sample_idx,
                    reward,
                    data_source,
                    experiment_name: &self.experiment,
                    validate: finished.is_eval,
                    status,
                    reason,
                    attempts: member.attempts,
                    elapsed_secs: member.elapsed.as_secs_f64(),
                    group_size: finished.group_size,
                    group_lines: parts.len(),
                },
                timestamp: &timestamp,
                weight_version: version_range(sample).map(|(head, _)| head),
                is_exact: sample.rollout.as_ref().is_some_and(|rollout| rollout.is_exact()),
                segments: &sample.segments,
                // Log-probabilities that JSON cannot say leave the text, which is better than nothing.
                tokens: sample.rollout.as_ref().filter(|_| self.tokens).and_then(|r| TokenFields::of(r).ok()),
                extra: &sample.extra,
            };
            serde_json::to_writer(&mut bytes, &line)?;
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
}

/// How a member's line says what became of it: as its group did, unless it never was part of it.
pub(super) fn told(finished: &Finished, member: &Member) -> (&'static str, Option<String>) {
    let by_group = || (finished.status.name(), finished.status.reason().map(ToString::to_string));
    match (&member.outcome, &finished.status) {
        (Outcome::Done(_), _) => by_group(),
        (Outcome::Rejected, _) => ("rejected", Some("the workflow returned nothing".to_owned())),
        (Outcome::Failed(error), _) => ("failed", Some(error.to_string())),
        (Outcome::Cancelled, Status::Accepted | Status::Rejected(_)) => ("failed", None),
        (Outcome::Cancelled, Status::Failed(reason)) => ("failed", Some(reason.to_string())),
    }
}

#[derive(Deserialize)]
struct PastLine {
    reward: Option<f64>,
    attributes: PastAttributes,
}

#[derive(Deserialize)]
struct PastAttributes {
    sample_index: u64,
    status: PastStatus,
    group_lines: u32,
}

/// Reads what is there; the end is cut where a task is not whole.
fn read_past(path: &Path, file: File) -> Result<Past, ArchiveError> {
    let mut past = Past::default();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut line, mut number) = (Vec::new(), 0);
    // Of the task that is being read.
    let mut open: Option<OpenTask> = None;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        let read =
            read.map_err(|source| ArchiveError::Io { doing: "read", source, path: path.to_owned() })?;
        if read == 0 {
            past.cut_bytes += open.map_or(0, |task| task.bytes);
            return Ok(past);
        }
        number += 1;
        let parsed: Result<PastLine, _> = serde_json::from_slice(&line);
        let past_line = match parsed {
            Ok(past_line) if line.ends_with(b"\n") => past_line,
            // The last line may be torn; no other can.
            _ if !line.ends_with(b"\n") => {
                past.cut_bytes += read as u64 + open.map_or(0, |task| task.bytes);
                return Ok(past);
            }
            Ok(_) => continue,
            Err(error) => {
                let reason = error.to_string();
                return Err(ArchiveError::Foreign { line: number, reason, path: path.to_owned() });
            }
        };
        let task = open.get_or_insert_with(|| OpenTask::new(&past_line.attributes));
        task.add(&past_line, read as u64);
        if task.lines >= past_line.attributes.group_lines {
            past.tasks.insert(task.id, task.ended);
            open = None;
        }
    }
}

struct OpenTask {
    id: u64,
    lines: u32,
    bytes: u64,
    ended: PastTask,
}

impl OpenTask {
    fn new(attributes: &PastAttributes) -> Self {
        let ended = PastTask { status: PastStatus::Failed, reward_sum: 0.0, rewarded: 0 };
        Self { id: attributes.sample_index, lines: 0, bytes: 0, ended }
    }

    /// A task is as good as the best of its lines: members that failed do not undo it.
    fn add(&mut self, line: &PastLine, bytes: u64) {
        self.lines += 1;
        self.bytes += bytes;
        self.ended.status = match (self.ended.status, line.attributes.status) {
            (PastStatus::Accepted, _) | (_, PastStatus::Accepted) => PastStatus::Accepted,
            (PastStatus::Rejected, _) | (_, PastStatus::Rejected) => PastStatus::Rejected,
            (PastStatus::Failed, PastStatus::Failed) => PastStatus::Failed,
        };
        if let Some(reward) = line.reward {
            self.ended.reward_sum += reward;
            self.ended.rewarded += 1;
        }
    }
}
