//! Logs written by older programs stay readable.
//!
//! `fixtures/log-v1` was written once by the first version of the format and is never written again.
//! It has a released segment, a finished one, an unfinished one and two snapshots.

use crate::support::{append, record, records};
use rollyard_store::log::{
    Archive, Commit, KeepSnapshots, Log, Options, Parts, Payloads, ReadError, Snapshot, Stage, open,
};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/log-v1")
}

fn options() -> Options {
    Options { segment_bytes: 2000, ..Options::default() }
}

fn model() -> Vec<crate::support::Record> {
    let mut model = records(1..=3, 700);
    model.extend(records(4..=6, 700));
    model.extend([record(7, 0), record(8, 5000), record(9, 30)]);
    model.extend(records(10..=11, 90));
    model
}

/// For a new version of the format: run this with `ROLLYARD_FIXTURE_DIR` and keep what it writes.
#[test]
fn a_log_of_today_is_read_byte_for_byte() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = std::env::var_os("ROLLYARD_FIXTURE_DIR").map_or(scratch.path().to_owned(), PathBuf::from);
    write_log(&dir);
    check_log(&dir);
}

fn write_log(dir: &Path) {
    let model = model();
    let Parts { mut stager, mut writer, snapshots, .. } = open(dir, options()).unwrap().into_parts();
    let dead = append(&mut stager, &mut writer, &model[..3]);
    dead.iter().for_each(|place| stager.free(*place, 700));
    append(&mut stager, &mut writer, &model[3..6]);
    append(&mut stager, &mut writer, &model[6..9]);
    append(&mut stager, &mut writer, &model[9..]);
    for release in stager.reclaimable() {
        writer.release(release).unwrap();
    }
    snapshots.write(5, b"the state after 5").unwrap();
    snapshots.write(9, b"the state after 9").unwrap();
}

#[test]
fn version_1_is_read_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    check_log(dir.path());
    writing_goes_on(dir.path());
}

fn check_log(dir: &Path) {
    let mut log = open(dir, options()).unwrap();
    assert_eq!(log.torn_bytes, 0);
    assert_eq!(log.take_snapshot(), Some(Snapshot { seq: 9, bytes: b"the state after 9".to_vec() }));
    let mut seen = Vec::new();
    let visited = log.replay(
        1,
        |_, _| {},
        |entry| {
            seen.push((entry.place, entry.payload_len, entry.body.to_vec()));
            Ok::<_, Infallible>(())
        },
    );
    visited.unwrap();
    for ((n, record), (place, payload_len, body)) in (1..).zip(model()).zip(seen) {
        assert_eq!((body, payload_len as usize), (record.body, record.payload.len()));
        match log.reader.payload(place) {
            Ok(payload) => assert_eq!(payload, record.payload),
            Err(ReadError::Gone { .. }) => assert!(n <= 3, "record {n}"),
            Err(error) => assert!(payload_len == 0, "record {n}: {error}"),
        }
    }
}

fn writing_goes_on(dir: &Path) {
    let Parts { mut stager, mut writer, .. } = open(dir, options()).unwrap().into_parts();
    assert_eq!(stager.next_seq(), 12);
    append(&mut stager, &mut writer, &records(12..=12, 10));
}

#[test]
fn version_1_is_read_without_touching_it() {
    let mut bodies = Vec::new();
    let visited = Archive::open(&fixture()).unwrap().visit(|entry| {
        bodies.push(entry.body.to_vec());
        Ok::<_, Infallible>(())
    });
    assert_eq!(visited.unwrap().unread_bytes, 0);
    assert_eq!(bodies, model().into_iter().map(|record| record.body).collect::<Vec<_>>());
}
