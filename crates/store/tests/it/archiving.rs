//! A run that is archived: everything is there once, whatever stops or fails on the way.

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use rollyard_core::ids::RunName;
use rollyard_core::ledger::{Command, LeaseTerms, Want};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item;
use rollyard_store::archive::{ArchiveSettings, Archiver, Format};
use rollyard_store::log;
use rollyard_store::yard::{Submission, Yard, open_held_on};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run on a disk with small segments, and its archive.
struct Archived {
    yard: Yard,
    archiver: Archiver,
    dir: PathBuf,
}

impl Archived {
    fn open(dir: &Path, settings: &ArchiveSettings) -> Self {
        let config = json!({"group_size": 2, "keep_commits": 0, "group_timeout_seconds": 3600});
        let config = RunConfig::default().patched(config.as_object().unwrap()).unwrap();
        let (run, dir) = (RunName::try_from("test").unwrap(), dir.join("run"));
        let hold = Archiver::hold(&dir, settings);
        let log_dir = dir.clone();
        let yard = open_held_on(&run, &config, hold.clone(), &mut |_, _| {}, move || {
            std::fs::create_dir_all(&log_dir).unwrap();
            log::open(&log_dir, log::Options { segment_bytes: 4096, ..log::Options::default() })
        });
        let yard = yard.unwrap();
        let archiver = Archiver::start(yard.clone(), &dir, settings, hold).unwrap();
        Self { yard, archiver, dir }
    }

    fn admit(&self, range: std::ops::Range<u32>) {
        for n in range {
            let text = json!({
                "uid": format!("u{n}"), "instance_id": n / 2, "reward": n % 2, "extra_info": {}, "mine": {"n": n},
                "messages": [{"role": "user", "content": "?".repeat(500)}, {"role": "assistant", "content": "!"}],
                "response_tokens": [1, 2, 3],
            })
            .to_string();
            let submission = Submission::new(item::decode(text.as_bytes()).unwrap(), Bytes::from(text));
            wait(self.yard.admit(vec![submission])).unwrap().remove(0).unwrap();
        }
    }

    /// Trains on everything that is ready.
    fn train(&self, step: u64) {
        let terms = LeaseTerms { reader: "test".to_owned(), secs: None, auto: false };
        let lease = wait(self.yard.lease(Want::All, terms, Instant::now())).unwrap().unwrap().lease;
        wait(self.yard.run(Command::Ack { lease })).unwrap();
        wait(self.yard.run(Command::Commit { step, leases: None })).unwrap();
    }

    fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is(self) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.archiver.status());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn until_archived(&self) {
        self.until("everything is archived", |run| {
            wait(run.yard.ask(|_| ())).unwrap();
            run.archiver.status().behind == 0
        });
    }

    /// Segments that still have their payloads.
    fn segments(&self) -> usize {
        wait(self.yard.ask(|_| ())).unwrap();
        let names = std::fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().ends_with(".log")).count()
    }

    fn stop(self) {
        self.archiver.stop();
        self.yard.close();
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn settings(dir: &Path) -> ArchiveSettings {
    let place = dir.join("archive").display().to_string();
    ArchiveSettings { worker: "w".into(), ..ArchiveSettings::new(&place) }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The lines of all JSONL files, those of fates or those of rollouts.
fn lines(dir: &Path, of_fates: bool) -> Vec<Value> {
    let all = files(&dir.join("archive"));
    let is_fates = |path: &Path| path.components().any(|part| part.as_os_str() == "fates");
    let wanted = all
        .iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl") && is_fates(path) == of_fates);
    let texts = wanted.map(|path| std::fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
        .collect()
}

fn uids(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| line["uid"].as_str().unwrap().to_owned()).collect()
}

fn named(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("u{n}")).collect()
}

/// By uid: what was told of it last.
fn fates(dir: &Path) -> BTreeMap<String, (String, Option<u64>)> {
    let told = lines(dir, true);
    let fate = |line: &Value| {
        assert_eq!(line["kind"], "fate");
        (
            line["uid"].as_str().unwrap().into(),
            (line["status"].as_str().unwrap().into(), line["step"].as_u64()),
        )
    };
    told.iter().map(fate).collect()
}

#[test]
fn every_rollout_is_archived_with_its_fate() {
    let dir = tempfile::tempdir().unwrap();
    let run = Archived::open(dir.path(), &settings(dir.path()));
    run.admit(0..7);
    run.train(3);
    wait(run.yard.run(Command::Drop { uid: "u6".into() })).unwrap();
    run.until_archived();
    let rollouts = lines(dir.path(), false);
    assert_eq!(uids(&rollouts), named(0..7));
    assert_eq!(rollouts[5]["mine"], json!({"n": 5}));
    assert_eq!(rollouts[5]["response_length"], 3);
    let attributes = &rollouts[5]["attributes"];
    assert_eq!((&attributes["experiment_name"], &attributes["sample_index"]), (&json!("test"), &json!(1)));
    let fates = fates(dir.path());
    for n in 0..6 {
        assert_eq!(fates[&format!("u{n}")], ("trained".to_owned(), Some(3)));
    }
    assert_eq!(fates["u6"].0, "dropped");
    run.stop();
}

#[test]
fn a_restart_goes_on_in_the_same_file_without_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let run = Archived::open(dir.path(), &settings(dir.path()));
        run.admit(round * 5..round * 5 + 5);
        run.stop();
    }
    assert_eq!(uids(&lines(dir.path(), false)), named(0..15));
    let rollouts: Vec<PathBuf> = files(&dir.path().join("archive"));
    assert_eq!(rollouts.len(), 1, "{rollouts:?}");
}

#[test]
fn what_a_crash_left_behind_the_cursor_is_written_again_and_not_twice() {
    let dir = tempfile::tempdir().unwrap();
    let run = Archived::open(dir.path(), &settings(dir.path()));
    run.admit(0..4);
    run.until_archived();
    let cursor = std::fs::read(run.dir.join("archive-jsonl.cursor")).unwrap();
    run.admit(4..8);
    run.stop();
    // As if the process had died before its cursor was written, in the middle of a line.
    std::fs::write(dir.path().join("run/archive-jsonl.cursor"), cursor).unwrap();
    let file = files(&dir.path().join("archive")).remove(0);
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 30]).unwrap();

    let run = Archived::open(dir.path(), &settings(dir.path()));
    run.until_archived();
    assert_eq!(uids(&lines(dir.path(), false)), named(0..8));
    run.stop();
}

#[test]
fn a_file_is_finished_by_its_size_and_by_its_age() {
    for (roll_bytes, roll_after) in [(Some(2000), None), (None, Some(Duration::ZERO))] {
        let dir = tempfile::tempdir().unwrap();
        let settings = ArchiveSettings { roll_bytes, roll_after, ..settings(dir.path()) };
        let run = Archived::open(dir.path(), &settings);
        run.admit(0..9);
        run.stop();
        let files = files(&dir.path().join("archive"));
        assert!(files.len() >= 3, "{files:?}");
        assert_eq!(uids(&lines(dir.path(), false)), named(0..9));
    }
}

#[test]
fn payloads_stay_until_they_are_archived_and_the_run_goes_on_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    // A file stands where the folder should be.
    std::fs::write(dir.path().join("archive"), "").unwrap();
    let run = Archived::open(dir.path(), &settings(dir.path()));
    run.admit(0..40);
    run.train(1);
    run.admit(40..60);
    run.until("the failure is told", |run| run.archiver.status().error.is_some());
    assert!(run.segments() > 4, "{}", run.segments());
    assert_eq!(wait(run.yard.ask(|ledger| ledger.books().trained)).unwrap(), 40);

    std::fs::remove_file(dir.path().join("archive")).unwrap();
    run.until_archived();
    assert_eq!(uids(&lines(dir.path(), false)), named(0..60));
    run.until("the payloads of what was trained on are given back", |run| run.segments() <= 8);
    run.until("all is well", |run| run.archiver.status().error.is_none());
    run.stop();
}

#[test]
fn an_archive_that_comes_late_gets_what_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = ArchiveSettings { formats: Vec::new(), ..settings(dir.path()) };
    let run = Archived::open(dir.path(), &nowhere);
    run.admit(0..40);
    run.train(1);
    run.admit(40..44);
    run.until("the payloads are gone", |run| run.segments() <= 2);
    run.stop();

    let run = Archived::open(dir.path(), &settings(dir.path()));
    run.until_archived();
    let archived = uids(&lines(dir.path(), false));
    assert_eq!(archived[archived.len() - 4..], named(40..44));
    let missing = run.archiver.status().missing;
    assert_eq!(archived.len() as u64 + missing, 44);
    assert!(missing > 0);
    run.stop();
}

#[test]
fn parquet_holds_the_same_lines_as_jsonl() {
    let dir = tempfile::tempdir().unwrap();
    let both = ArchiveSettings { formats: vec![Format::Jsonl, Format::Parquet], ..settings(dir.path()) };
    let run = Archived::open(dir.path(), &both);
    let cursor = dir.path().join("run/archive-parquet.cursor");
    run.until("the archive has begun", |_| cursor.exists());
    let before = std::fs::read(&cursor).unwrap();
    run.admit(0..10);
    wait(run.yard.run(Command::Drop { uid: "u9".into() })).unwrap();
    run.stop();
    // As if the process had died between the upload and the cursor: the same is put under the same name.
    std::fs::write(&cursor, before).unwrap();
    let run = Archived::open(dir.path(), &ArchiveSettings { worker: "renamed".into(), ..both });
    run.stop();

    let column = |under: &str, name: &str| -> Vec<String> {
        let all = files(&dir.path().join("archive").join(under));
        let read = |path: &PathBuf| {
            assert!(path.display().to_string().contains("run=test/date=2"), "{path:?}");
            let bytes = Bytes::from(std::fs::read(path).unwrap());
            let batches = ParquetRecordBatchReader::try_new(bytes, 1024).unwrap();
            batches
                .flat_map(|batch| {
                    let batch = batch.unwrap();
                    let column = batch.column_by_name(name).unwrap();
                    let texts = column.as_any().downcast_ref::<arrow_array::StringArray>().unwrap().clone();
                    texts.iter().map(|text| text.unwrap().to_owned()).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(read).collect()
    };
    let records: Vec<Value> =
        column("rollouts", "record").iter().map(|record| serde_json::from_str(record).unwrap()).collect();
    assert_eq!(records, lines(dir.path(), false));
    assert_eq!(column("fates", "uid"), uids(&lines(dir.path(), true)));
    assert_eq!(column("rollouts", "response").first().map(String::as_str), Some("!"));
}
