use rollyard_core::rollout::{Draft, Metadata, Rollout};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::episode::{Data, EpisodeError, PromptAndCompletion, Sample, Trajectory};
use crate::executor::{Reason, Status, TaskId};
use crate::generate::Segment;
use crate::group::{Member, Outcome};

/// Two turns with a tool result between them, and one after them: `p p | s s | t | s | t`.
fn two_turns() -> Sample {
    let rollout = Rollout::try_from(Draft {
        tokens: vec![1, 2, 10, 11, 5, 12, 6],
        prompt_len: 2,
        logprobs: Some(vec![-0.5, -0.25, 0.0, -0.125, 0.0]),
        sampled: Some(vec![true, true, false, true, false]),
        versions: Some(vec![4, 5, -1, 5, -1]),
        episode_reward: 0.5,
        metadata: Metadata { weight_step: 4, ..Metadata::default() },
        ..Draft::default()
    });
    let message = |json: Value| RawValue::from_string(json.to_string()).unwrap();
    Sample {
        rollout: Some(rollout.unwrap()),
        reward: 0.5,
        messages: vec![message(json!({"role": "user", "content": "hi"}))],
        text: Some(PromptAndCompletion { prompt: "hi".into(), completion: "call, then answer".into() }),
        segments: vec![
            Segment { tokens: 1, version: 4 },
            Segment { tokens: 1, version: 5 },
            Segment { tokens: 1, version: 5 },
        ],
        ..Sample::default()
    }
}

fn member(sample_idx: u32, outcome: Outcome) -> Member {
    Member { sample_idx, attempts: 1, elapsed: Duration::from_millis(1500), outcome }
}

fn done(sample: Sample) -> Outcome {
    Outcome::Done(Trajectory { samples: vec![sample], tensors: None })
}

fn finished(id: u64, status: Status, outcomes: Vec<Outcome>) -> Finished {
    let group_size = outcomes.len() as u32;
    Finished {
        id: TaskId(id),
        data: Arc::new(Data::parse(r#"{"instance_id": "m_1", "prompt": "hi"}"#).unwrap()),
        is_eval: false,
        group_size,
        status,
        members: outcomes.into_iter().zip(0..).map(|(outcome, idx)| member(idx, outcome)).collect(),
        started_version: 4,
        version: 5,
        elapsed: Duration::from_secs(2),
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn put(sink: &impl Sink, finished: &Finished) {
    futures_util::FutureExt::now_or_never(sink.put(finished)).expect("files are written at once").unwrap();
}

fn dump(dir: &Path, tokens: bool) -> Dump {
    let (experiment, trial) = ("my_exp".into(), "trial1".into());
    Dump::new(DumpSettings { fileroot: dir.to_owned(), experiment, trial, tokenizer: None, tokens })
}

#[test]
fn the_dump_of_two_turns_begins_the_completion_at_the_first_sampled_token() {
    let dir = tempfile::tempdir().unwrap();
    put(&dump(dir.path(), false), &finished(42, Status::Accepted, vec![done(two_turns())]));
    let expected = json!({
        "task_id": 42, "sample_idx": 0, "seqlen": 7, "prompt_len": 2, "head_version": 4, "tail_version": 5,
        "reward": 0.5, "prompt": "hi", "completion": "call, then answer", "status": "accepted",
        "version_rle": [[4, 1], [5, 1], [-1, 1], [5, 1], [-1, 1]],
        "segments": [{"tokens": 1, "version": 4}, {"tokens": 1, "version": 5}, {"tokens": 1, "version": 5}],
    });
    assert_eq!(lines(&dir.path().join("my_exp/trial1/rollout/5/42.jsonl")), [expected]);
}

#[test]
fn the_dump_has_tokens_when_asked_and_evaluation_apart() {
    let dir = tempfile::tempdir().unwrap();
    let eval = Finished { is_eval: true, ..finished(1, Status::Accepted, vec![done(two_turns())]) };
    put(&dump(dir.path(), true), &eval);
    let folder = dir.path().join("my_exp/trial1/eval-rollout/5");
    let lines = lines(&folder.join("1.jsonl"));
    assert_eq!(lines[0]["token_ids"], json!([1, 2, 10, 11, 5, 12, 6]));
    assert_eq!(lines[0]["logprobs"], json!([-0.5, -0.25, 0.0, -0.125, 0.0]));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "nothing unfinished is left");
}

#[test]
fn what_was_rejected_or_failed_is_dumped_with_its_reason() {
    let failed = || Outcome::Failed(EpisodeError::Workflow("KeyError: 'x'".into()));
    let incomplete = Reason::Incomplete { left: 1, wanted: 2, error: "KeyError: 'x'".into() };
    let stale = Reason::Stale { head_version: 4, version: 9 };
    // Status of the task, its members -> status and reason of each line.
    let cases = [
        (
            Status::Accepted,
            vec![done(two_turns()), Outcome::Rejected, failed()],
            vec![
                ("accepted", None),
                ("rejected", Some("the workflow returned nothing")),
                ("failed", Some("KeyError: 'x'")),
            ],
        ),
        (
            Status::Rejected(stale),
            vec![done(two_turns())],
            vec![("rejected", Some("its oldest token is of version 4, too old at version 9"))],
        ),
        (
            Status::Rejected(Reason::Filtered),
            vec![done(two_turns())],
            vec![("rejected", Some("the accept filter said no"))],
        ),
        (
            Status::Failed(incomplete),
            vec![done(two_turns()), failed(), Outcome::Cancelled],
            vec![
                ("failed", Some("only 1 of the 2 members wanted are left: KeyError: 'x'")),
                ("failed", Some("KeyError: 'x'")),
                ("failed", Some("only 1 of the 2 members wanted are left: KeyError: 'x'")),
            ],
        ),
    ];
    for (status, outcomes, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let finished = finished(0, status, outcomes);
        let dump = dump(dir.path(), false);
        put(&dump, &finished);
        let lines = lines(&dump.path(&finished));
        let found: Vec<_> =
            lines.iter().map(|line| (line["status"].as_str().unwrap(), line["reason"].as_str())).collect();
        assert_eq!(found, expected);
    }
}

fn settings() -> ArchiveSettings {
    ArchiveSettings { naming: Naming::new("test"), experiment: "my_exp".into(), tokens: true }
}

#[test]
fn a_line_of_the_archive_is_a_row_of_the_viewer_and_an_item_of_a_yard() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rollouts.jsonl");
    let (archive, past) = Archive::open(&path, settings()).unwrap();
    assert!(past.is_empty());
    put(&archive, &finished(7, Status::Accepted, vec![done(two_turns()), Outcome::Rejected]));
    let text = fs::read_to_string(&path).unwrap();
    let first = text.lines().next().unwrap();
    let line: Value = serde_json::from_str(first).unwrap();
    let attributes = json!({
        "sample_index": 7, "step": 5, "rollout_n": 0, "reward": 0.5, "data_source": "unknown",
        "experiment_name": "my_exp", "validate": false, "status": "accepted", "attempts": 1, "elapsed_secs": 1.5,
        "group_size": 2, "group_lines": 2,
    });
    assert_eq!(line["attributes"], attributes);
    assert_eq!(line["messages"], json!([{"role": "user", "content": "hi"}]));
    assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    let item = rollyard_core::wire::item::decode(first.as_bytes()).unwrap();
    assert_eq!((item.instance.as_str(), item.reward, item.version), ("m_1", 0.5, Some(4)));
    let rollout = rollyard_core::wire::rollout::decode(first.as_bytes()).unwrap();
    assert_eq!(rollout.tokens(), two_turns().rollout.unwrap().tokens());
    assert_eq!(rollout.versions(), two_turns().rollout.unwrap().versions());
}

#[test]
fn an_item_says_where_it_comes_from_unless_its_workflow_did() {
    let extra = |name: &str| json!({name: "theirs"}).as_object().unwrap().clone();
    for (env_name, extra, expected) in [
        (Some("sums"), extra("mine"), json!("sums")),
        (Some("sums"), extra("env_name"), json!("theirs")),
        (None, extra("mine"), Value::Null),
    ] {
        let (mut body, extra_info) = (Vec::new(), json!({}));
        let (uid, instance_id) = ("u-1", "m_1");
        let label = item::Label {
            uid,
            instance_id,
            env_name,
            timestamp: None,
            group_size: None,
            epoch: None,
            extra_info,
        };
        item::write(&mut body, label, &Sample { extra, ..two_turns() }).unwrap();
        let item: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(item["env_name"], expected);
        assert_eq!(
            String::from_utf8(body).unwrap().matches("env_name").count(),
            usize::from(!expected.is_null())
        );
    }
}

#[test]
fn an_archive_that_a_crash_cut_anywhere_has_whole_tasks_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rollouts.jsonl");
    let (archive, _) = Archive::open(&path, settings()).unwrap();
    let mut ends = vec![0];
    let failed = Status::Failed(Reason::Cancelled);
    for (id, status) in [(0, Status::Accepted), (1, Status::Rejected(Reason::Filtered)), (2, failed)] {
        let outcomes = match status {
            Status::Failed(_) => vec![Outcome::Cancelled],
            _ => vec![done(two_turns()), done(two_turns())],
        };
        put(&archive, &finished(id, status, outcomes));
        ends.push(fs::metadata(&path).unwrap().len());
    }
    let whole = fs::read(&path).unwrap();
    let near = |len: &usize| {
        len.is_multiple_of(13) || whole.get(len - 1..len + 1).is_some_and(|pair| pair.contains(&b'\n'))
    };
    for len in (0..=whole.len()).filter(near) {
        fs::write(&path, &whole[..len]).unwrap();
        let (_, past) = Archive::open(&path, settings()).unwrap();
        let kept = ends.iter().rposition(|end| *end <= len as u64).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), ends[kept], "cut at {len}");
        // The third failed, and is to be run again.
        let expected: Vec<bool> = (0..3).map(|id| id < kept && id < 2).collect();
        assert_eq!((0..3).map(|id| past.is_done(id)).collect::<Vec<_>>(), expected, "cut at {len}");
    }
}

#[test]
fn a_file_of_something_else_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rollouts.jsonl");
    fs::write(&path, "{\"prompt\": \"hi\"}\n{\"prompt\": \"ho\"}\n").unwrap();
    let error = Archive::open(&path, settings()).unwrap_err().to_string();
    assert!(error.starts_with("line 1 is no line of an archive (missing field `attributes`"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
}
