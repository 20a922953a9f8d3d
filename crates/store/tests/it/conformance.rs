//! One suite for every log: what the contract says, said again in code.

use crate::support::{append, assert_holds, record, records, replay, stage};
use bytes::Bytes;
use rollyard_core::ids::RunName;
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::log::{
    Commit, KeepSnapshots, Log, LogError, Options, Parts, Payloads, ReadError, Snapshot, Stage, StageError,
    memory::Memory, open,
};
use rollyard_test_nats::{Cluster, Options as NatsOptions, Server};
use std::cell::Cell;

const SEGMENT_BYTES: u64 = 1000;

#[test]
fn the_embedded_log_keeps_the_contract() {
    keeps_the_contract(|| {
        let dir = tempfile::tempdir().unwrap();
        move || open(dir.path(), Options { segment_bytes: SEGMENT_BYTES, ..Options::default() }).unwrap()
    });
}

#[test]
fn the_embedded_log_keeps_the_contract_without_fsync() {
    keeps_the_contract(|| {
        let dir = tempfile::tempdir().unwrap();
        move || {
            let durability = rollyard_store::log::Durability::Os;
            let options = Options { segment_bytes: SEGMENT_BYTES, durability, ..Options::default() };
            open(dir.path(), options).unwrap()
        }
    });
}

#[test]
fn the_memory_log_keeps_the_contract() {
    keeps_the_contract(|| {
        let memory = Memory::new(SEGMENT_BYTES);
        move || memory.open()
    });
}

#[test]
fn the_jetstream_log_keeps_the_contract() {
    let server = Server::start(NatsOptions::default());
    let settings = Settings { segment_bytes: SEGMENT_BYTES, ..Settings::new(server.url()) };
    keeps_the_contract_on_streams(&Connection::open(settings).unwrap());
}

#[test]
fn the_jetstream_log_keeps_the_contract_with_three_replicas() {
    let cluster = Cluster::start(3);
    let settings = Settings { segment_bytes: SEGMENT_BYTES, replicas: 3, ..Settings::new(cluster.urls()) };
    keeps_the_contract_on_streams(&Connection::open(settings).unwrap());
}

#[test]
fn the_jetstream_log_keeps_the_contract_on_a_server_of_small_messages() {
    let server = Server::start(NatsOptions { max_payload: Some(18 << 10), ..NatsOptions::default() });
    let settings = Settings { segment_bytes: SEGMENT_BYTES, ..Settings::new(server.url()) };
    keeps_the_contract_on_streams(&Connection::open(settings).unwrap());
}

fn keeps_the_contract_on_streams(connection: &Connection) {
    let runs = Cell::new(0);
    keeps_the_contract(|| {
        runs.set(runs.get() + 1);
        let run = RunName::try_from(format!("run-{}", runs.get()).as_str()).unwrap();
        let opener = connection.opener(&run, "node", "http://127.0.0.1:1");
        move || opener.open().unwrap()
    });
}

/// `new` makes an empty log and gives a way to open it, again and again.
fn keeps_the_contract<L: Log, O: Fn() -> L>(new: impl Fn() -> O) {
    committed_records_are_read_at_once_and_after_reopening(new());
    staged_records_are_gone_after_reopening(new());
    a_replay_begins_where_it_is_told(new());
    batches_out_of_order_are_refused(new());
    an_oversized_payload_is_refused_and_changes_nothing(new());
    the_newest_snapshot_comes_back(new());
    a_dead_segment_gives_its_space_back_and_keeps_its_records(new());
    nothing_is_reclaimed_before_it_is_known_what_lives(new());
    a_release_waits_for_the_records_that_freed_it(new());
    sparse_segments_are_found_emptiest_first(new());
}

fn committed_records_are_read_at_once_and_after_reopening<L: Log>(open: impl Fn() -> L) {
    let mut model = Vec::new();
    for (n, payload_len) in [(1, 0), (2, 10), (3, 5_000), (4, 70_000), (5, 4096), (6, 4095), (7, 1)] {
        let Parts { mut stager, mut writer, reader, .. } = open().into_parts();
        assert_eq!(stager.next_seq(), model.len() as u64 + 1);
        model.push(record(n, payload_len));
        let places = append(&mut stager, &mut writer, &model[model.len() - 1..]);
        if payload_len > 0 {
            assert_eq!(reader.payload(places[0]).unwrap(), model.last().unwrap().payload);
        } else {
            assert!(reader.payload(places[0]).is_err(), "there is no payload in this record");
        }
        assert_eq!(writer.committed_seq(), model.len() as u64);
        if n % 2 == 0 {
            writer.close().unwrap();
        }
    }
    assert_holds(open(), &model);
}

fn staged_records_are_gone_after_reopening<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    append(&mut stager, &mut writer, &records(1..=3, 100));
    stage(&mut stager, &records(4..=5, 100));
    assert!(stager.staged_bytes() >= 200);
    drop((stager, writer));
    let mut stager = assert_holds(open(), &records(1..=3, 100));
    assert_eq!(stager.next_seq(), 4);
    assert!(stager.take_batch().is_none());
}

fn a_replay_begins_where_it_is_told<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    for n in 0..10 {
        append(&mut stager, &mut writer, &records(n * 5 + 1..=n * 5 + 5, 100));
    }
    drop((stager, writer));
    let log = open();
    for from in [1, 2, 17, 50, 51] {
        let seqs: Vec<_> = replay(&log, from).iter().map(|found| found.seq).collect();
        assert_eq!(seqs, (from..=50).collect::<Vec<_>>());
    }
}

fn batches_out_of_order_are_refused<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    stage(&mut stager, &records(1..=1, 10));
    let first = stager.take_batch().unwrap();
    stage(&mut stager, &records(2..=2, 10));
    let second = stager.take_batch().unwrap();
    let refused = writer.commit(second).unwrap_err();
    assert!(matches!(refused, LogError::OutOfOrder { expected: 1, found: 2 }), "{refused}");
    writer.commit(first).unwrap();
    drop((stager, writer));
    assert_holds(open(), &records(1..=1, 10));
}

fn an_oversized_payload_is_refused_and_changes_nothing<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    let refused = stager.stage(b"body", Bytes::from(vec![1; (256 << 20) + 1])).unwrap_err();
    assert!(matches!(refused, StageError::TooLarge { what: "payload", .. }), "{refused}");
    assert_eq!((stager.next_seq(), stager.staged_bytes()), (1, 0));
    append(&mut stager, &mut writer, &records(1..=1, 10));
}

fn the_newest_snapshot_comes_back<L: Log>(open: impl Fn() -> L) {
    assert_eq!(open().take_snapshot(), None);
    let Parts { mut stager, mut writer, snapshots, .. } = open().into_parts();
    append(&mut stager, &mut writer, &records(1..=9, 10));
    for seq in [3, 5, 9] {
        snapshots.write(seq, format!("state {seq}").as_bytes()).unwrap();
    }
    drop((stager, writer, snapshots));
    let mut log = open();
    assert_eq!(log.take_snapshot(), Some(Snapshot { seq: 9, bytes: b"state 9".to_vec() }));
    assert_eq!(log.take_snapshot(), None);
}

fn a_dead_segment_gives_its_space_back_and_keeps_its_records<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, reader, .. } = open().into_parts();
    let dead = append(&mut stager, &mut writer, &records(1..=4, 400));
    let alive = append(&mut stager, &mut writer, &records(5..=6, 400));
    assert!(stager.reclaimable().is_empty());
    dead.iter().for_each(|place| stager.free(*place, 400));
    let releases = stager.reclaimable();
    assert_eq!(releases.len(), 1);
    assert!(stager.reclaimable().is_empty(), "each is given out once");
    reader.payload(dead[0]).unwrap();
    for release in releases {
        assert!(writer.release(release).unwrap() >= 1600);
    }
    let gone = reader.payload(dead[0]).unwrap_err();
    assert!(matches!(gone, ReadError::Gone { .. }), "{gone}");
    reader.payload(alive[0]).unwrap();
    drop((stager, writer));
    let log = open();
    assert_eq!(replay(&log, 1).len(), 6);
    let mut stager = log.into_parts().stager;
    assert_eq!(stager.retain(&mut [(dead[0], 400), (alive[0], 400)].into_iter()), 1, "one is gone");
}

fn nothing_is_reclaimed_before_it_is_known_what_lives<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    let places = append(&mut stager, &mut writer, &records(1..=4, 400));
    drop((stager, writer));
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    assert!(stager.reclaimable().is_empty());
    assert!(stager.sparse(1.0).is_empty());
    assert_eq!(stager.retain(&mut [(places[1], 400)].into_iter()), 0);
    assert!(stager.reclaimable().is_empty());
    stager.free(places[1], 400);
    let releases = stager.reclaimable();
    assert_eq!(releases.len(), 1, "finished segments stay reclaimable after reopening");
    releases.into_iter().for_each(|release| assert!(writer.release(release).unwrap() > 0));
}

fn a_release_waits_for_the_records_that_freed_it<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, reader, .. } = open().into_parts();
    let dead = append(&mut stager, &mut writer, &records(1..=4, 400));
    dead.iter().for_each(|place| stager.free(*place, 400));
    stage(&mut stager, &records(5..=5, 0));
    let release = stager.reclaimable().pop().unwrap();
    let refused = writer.release(release).unwrap_err();
    assert!(matches!(refused, LogError::ReleasedEarly { after_seq: 5, committed_seq: 4, .. }), "{refused}");
    reader.payload(dead[0]).unwrap();
}

fn sparse_segments_are_found_emptiest_first<L: Log>(open: impl Fn() -> L) {
    let Parts { mut stager, mut writer, .. } = open().into_parts();
    let first = append(&mut stager, &mut writer, &records(1..=10, 400));
    let second = append(&mut stager, &mut writer, &records(11..=20, 400));
    append(&mut stager, &mut writer, &records(21..=21, 400));
    first.iter().skip(5).for_each(|place| stager.free(*place, 400));
    second.iter().skip(1).for_each(|place| stager.free(*place, 400));
    let sparse = stager.sparse(0.6);
    let live: Vec<_> = sparse.iter().map(|sparse| sparse.live_bytes).collect();
    assert_eq!(live, [400, 2000]);
    assert!(sparse.iter().all(|sparse| sparse.file_bytes >= 4000));
    assert_eq!(stager.sparse(0.2).len(), 1);
}
