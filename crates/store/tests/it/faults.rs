//! Each way a disk can fail, one claim at a time.

use crate::faulty::{Crash, Faults, FaultyDisk};
use crate::support::{append, assert_holds, read, record, records, replay, stage};
use bytes::Bytes;
use rollyard_store::log::format::{Checksum, FILE_HEADER_LEN};
use rollyard_store::log::{
    Commit, Durability, KeepSnapshots, Log, LogError, Opened, Options, Parts, Payloads, ReadError,
    ReplayError, Snapshot, Stage, Stager, Writer, open,
};
use std::path::Path;
use std::sync::Arc;

const SEGMENT_BYTES: u64 = 1000;

fn try_open(disk: &FaultyDisk) -> Result<Opened, LogError> {
    let options =
        Options { segment_bytes: SEGMENT_BYTES, durability: Durability::Fsync, disk: Arc::new(disk.clone()) };
    open(Path::new("run"), options)
}

fn parts(disk: &FaultyDisk) -> (Stager, Writer) {
    let Parts { stager, writer, .. } = try_open(disk).unwrap().into_parts();
    (stager, writer)
}

/// Tears the last batch of a log at every byte: `before` batches of two records are synced before it.
fn tear_everywhere(before: u64, faults: &Faults) {
    for bytes in 0.. {
        let disk = FaultyDisk::default();
        disk.set(faults.clone());
        let (mut stager, mut writer) = parts(&disk);
        for n in 0..before {
            append(&mut stager, &mut writer, &records(n * 2 + 1..=n * 2 + 2, 40));
        }
        // The write arrives, the sync does not.
        let last = records(before * 2 + 1..=before * 2 + 2, 700);
        stage(&mut stager, &last);
        let batch = stager.take_batch().unwrap();
        let operations = if before == 0 { 3 } else { 1 };
        disk.set(Faults { power: Some(operations), ..faults.clone() });
        writer.commit(batch).unwrap_err();

        let disk = disk.after(Crash::Tear { bytes });
        let log = try_open(&disk).unwrap_or_else(|error| panic!("torn after {bytes} bytes: {error}"));
        let whole = replay(&log, 1).len() as u64 == before * 2 + 2;
        if whole {
            assert!(bytes > 1400, "no record is invented");
            assert_eq!(log.torn_bytes, 0);
            return;
        }
        assert!(log.torn_bytes <= bytes as u64 && (log.torn_bytes > 0) == (bytes > 0));
        let mut model = records(1..=before * 2, 40);
        assert_holds(log, &model);

        let (mut stager, mut writer) = parts(&disk);
        model.push(record(99, 2000));
        append(&mut stager, &mut writer, &model[model.len() - 1..]);
        assert_holds(try_open(&disk.after(Crash::LoseUnsynced)).unwrap(), &model);
    }
}

#[test]
fn a_batch_torn_at_any_byte_is_cut_off() {
    tear_everywhere(3, &Faults::default());
}

#[test]
fn a_batch_torn_at_any_byte_is_cut_off_where_space_is_not_laid_out() {
    tear_everywhere(3, &Faults { cannot_allocate: true, ..Faults::default() });
}

#[test]
fn the_first_batch_of_a_log_torn_at_any_byte_leaves_an_empty_log() {
    tear_everywhere(0, &Faults::default());
}

/// A log with every kind of file: released, finished and active segments, and two snapshots.
fn log_with_everything() -> (FaultyDisk, Vec<crate::support::Record>) {
    let disk = FaultyDisk::default();
    let log = try_open(&disk).unwrap();
    let Parts { mut stager, mut writer, snapshots, .. } = log.into_parts();
    let mut model = Vec::new();
    for n in 0..7 {
        let batch = records(n * 3 + 1..=n * 3 + 3, if n == 6 { 60 } else { 200 });
        let places = append(&mut stager, &mut writer, &batch);
        if n < 2 {
            places.iter().for_each(|place| stager.free(*place, 200));
        }
        model.extend(batch);
    }
    for release in stager.reclaimable() {
        writer.release(release).unwrap();
    }
    for seq in [4, 9] {
        snapshots.write(seq, format!("the state after {seq}").as_bytes()).unwrap();
    }
    (disk.after(Crash::LoseUnsynced), model)
}

#[test]
fn a_flipped_bit_never_loses_a_synced_record_silently() {
    let (disk, model) = log_with_everything();
    let files = disk.files();
    assert_eq!(files.len(), 8, "{files:?}");
    let (mut refused, mut corrupt_payloads) = (0, 0);
    for (path, len) in files {
        let is_log = path.extension().unwrap() == "log";
        for byte in 0..len {
            let disk = disk.with_bit_flipped(&path, byte, (byte % 8) as u8);
            let at = format!("{} with byte {byte} flipped", path.display());
            let mut log = match try_open(&disk) {
                Err(LogError::Corrupt { path: named, .. }) => {
                    assert_eq!(named, path, "{at}");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{at}: {error}"),
                Ok(log) => log,
            };
            let mut found = Vec::new();
            let replayed = log.replay(
                1,
                |_, _| {},
                |entry| {
                    found.push((entry.place, entry.payload_len, entry.body.to_vec()));
                    Ok::<_, std::convert::Infallible>(())
                },
            );
            match replayed {
                Err(ReplayError::Log(LogError::Corrupt { path: named, .. })) => {
                    assert_eq!(named, path, "{at}");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{at}: {error}"),
                Ok(()) => {}
            }
            assert_eq!(found.len(), model.len(), "{at}: a record is lost");
            let snapshot = log.take_snapshot().unwrap();
            assert!([4, 9].contains(&snapshot.seq), "{at}");
            assert_eq!(snapshot.bytes, format!("the state after {}", snapshot.seq).as_bytes(), "{at}");
            let mut corrupt = 0;
            for (n, ((place, _, body), record)) in found.iter().zip(&model).enumerate() {
                assert_eq!(*body, record.body, "{at}");
                match log.reader.payload(*place) {
                    Ok(payload) => assert_eq!(payload, record.payload, "{at}"),
                    Err(ReadError::Gone { .. }) => assert!(n < 6, "{at}: only the released are gone"),
                    Err(ReadError::Corrupt { .. }) => corrupt += 1,
                    Err(error) => panic!("{at}: {error}"),
                }
            }
            assert!(corrupt <= usize::from(is_log), "{at}: {corrupt} payloads are concerned");
            corrupt_payloads += corrupt;
        }
    }
    assert!(refused > 300, "{refused} were refused");
    assert!(corrupt_payloads > 2500, "{corrupt_payloads} payloads were found corrupt");
}

#[test]
fn damage_in_the_middle_of_the_active_segment_is_not_taken_for_a_torn_write() {
    let disk = FaultyDisk::default();
    let (mut stager, mut writer) = parts(&disk);
    for n in 1..=4 {
        append(&mut stager, &mut writer, &records(n..=n, 100));
    }
    // Zeros where a synced batch was: the shape of a torn write, in a place where none can be.
    let path = Path::new("run/00000001.log");
    let mut damaged = disk.after(Crash::Kill);
    for byte in 250..280 {
        damaged = damaged.with_byte(path, byte, 0);
    }
    let refused = try_open(&damaged).unwrap_err();
    assert!(matches!(refused, LogError::Corrupt { .. }), "{refused}");
    assert!(refused.to_string().ends_with("run/00000001.log"), "{refused}");
}

#[test]
fn a_lost_first_page_is_not_taken_for_a_torn_first_write() {
    let disk = FaultyDisk::default();
    let (mut stager, mut writer) = parts(&disk);
    append(&mut stager, &mut writer, &records(1..=1, 100));
    append(&mut stager, &mut writer, &records(2..=2, 100));
    let mut damaged = disk.after(Crash::Kill);
    for byte in 0..100 {
        damaged = damaged.with_byte(Path::new("run/00000001.log"), byte, 0);
    }
    let refused = try_open(&damaged).unwrap_err();
    assert!(matches!(refused, LogError::Corrupt { offset: 0, .. }), "{refused}");
}

#[test]
fn a_lost_page_inside_the_last_payload_is_a_torn_write() {
    let disk = FaultyDisk::default();
    let (mut stager, mut writer) = parts(&disk);
    append(&mut stager, &mut writer, &records(1..=2, 100));
    stage(&mut stager, &records(3..=3, 40_000));
    let batch = stager.take_batch().unwrap();
    disk.set(Faults { power: Some(1), ..Faults::default() });
    writer.commit(batch).unwrap_err();
    let mut outcomes = [0, 0];
    for seed in 0..200 {
        let log = try_open(&disk.after(Crash::Pages { seed })).unwrap();
        let found = replay(&log, 1);
        outcomes[found.len() - 2] += 1;
        for found in &found {
            read(&log.reader, found).unwrap();
        }
    }
    assert!(outcomes[0] > 150, "{outcomes:?}");
}

#[test]
fn a_damaged_or_missing_history_is_made_again() {
    let (disk, model) = log_with_everything();
    for (path, _) in disk.files() {
        let finished = path.extension().unwrap() == "hist";
        let has_log = disk.files().iter().any(|(other, _)| *other == path.with_extension("log"));
        if finished && has_log {
            let disk = disk.after(Crash::Kill);
            disk.remove_file(&path);
            let log = try_open(&disk).unwrap();
            assert_eq!(replay(&log, 1).len(), model.len());
            assert!(disk.files().iter().any(|(other, _)| *other == path));
        }
    }
}

#[test]
fn a_missing_segment_is_noticed() {
    let (disk, _) = log_with_everything();
    for segment in ["run/00000001", "run/00000002"] {
        let disk = disk.after(Crash::Kill);
        disk.remove_file(&Path::new(segment).with_extension("log"));
        disk.remove_file(&Path::new(segment).with_extension("hist"));
        let refused = try_open(&disk).unwrap_err();
        assert!(matches!(refused, LogError::Corrupt { .. }), "{refused}");
    }
}

#[test]
fn a_snapshot_beyond_the_end_of_a_synced_log_is_noticed() {
    let disk = FaultyDisk::default();
    let Parts { mut stager, mut writer, snapshots, .. } = try_open(&disk).unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=5, 10));
    snapshots.write(5, b"state").unwrap();
    disk.remove_file(Path::new("run/00000001.log"));
    let refused = try_open(&disk).unwrap_err().to_string();
    assert!(refused.contains("after record 5, but the log ends with 0"), "{refused}");
}

#[test]
fn a_damaged_snapshot_falls_back_to_the_one_before() {
    let (disk, _) = log_with_everything();
    let path = Path::new("run/snapshot-00000000000000000009.snap");
    let log = try_open(&disk.with_bit_flipped(path, 70, 0)).unwrap();
    assert_eq!(log.snapshot, Some(Snapshot { seq: 4, bytes: b"the state after 4".to_vec() }));
}

#[test]
fn a_full_disk_loses_nothing_and_the_log_works_again_with_room() {
    for room in (0..9000).step_by(37) {
        let disk = FaultyDisk::default();
        let (mut stager, mut writer) = parts(&disk);
        disk.set(Faults { room: Some(room), ..Faults::default() });
        let mut model = Vec::new();
        let full = loop {
            let next = record(model.len() as u64 + 1, 500);
            stager.stage(&next.body, Bytes::from(next.payload.clone())).unwrap();
            match writer.commit(stager.take_batch().unwrap()) {
                Ok(()) => model.push(next),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, LogError::NoSpace { .. }) && !full.is_poison(), "{full}");
        disk.set(Faults::default());
        stage(&mut stager, &records(1..=1, 1));
        let refused = writer.commit(stager.take_batch().unwrap()).unwrap_err();
        assert!(matches!(refused, LogError::NoSpace { .. }), "{refused}");
        drop((stager, writer));

        disk.set(Faults { room: Some(0), ..Faults::default() });
        if let Err(still_full) = try_open(&disk) {
            assert!(matches!(still_full, LogError::NoSpace { .. }), "{still_full}");
        }
        disk.set(Faults::default());
        let (mut stager, mut writer) = parts(&disk);
        assert_eq!(stager.next_seq(), model.len() as u64 + 1);
        model.push(record(77, 500));
        append(&mut stager, &mut writer, &model[model.len() - 1..]);
        assert_holds(try_open(&disk.after(Crash::LoseUnsynced)).unwrap(), &model);
    }
}

#[test]
fn a_failed_sync_poisons_the_writer() {
    let disk = FaultyDisk::default();
    let (mut stager, mut writer) = parts(&disk);
    append(&mut stager, &mut writer, &records(1..=2, 100));
    stage(&mut stager, &records(3..=3, 100));
    disk.set(Faults { sync_fails: true, ..Faults::default() });
    let failed = writer.commit(stager.take_batch().unwrap()).unwrap_err();
    assert!(matches!(failed, LogError::Sync { .. }) && failed.is_poison(), "{failed}");

    disk.set(Faults::default());
    stage(&mut stager, &records(4..=4, 100));
    let later = writer.commit(stager.take_batch().unwrap()).unwrap_err();
    assert!(later.is_poison(), "a sync that works again does not bring the dropped pages back: {later}");
    assert!(writer.close().unwrap_err().is_poison());
    assert_holds(try_open(&disk.after(Crash::LoseUnsynced)).unwrap(), &records(1..=2, 100));

    // The page cache still shows the dropped pages, so a new process sees the batch and must write it again.
    let disk = disk.after(Crash::Kill);
    assert_holds(try_open(&disk).unwrap(), &records(1..=3, 100));
    assert_holds(try_open(&disk.after(Crash::LoseUnsynced)).unwrap(), &records(1..=3, 100));
}

#[test]
fn a_read_only_disk_is_named() {
    let disk = FaultyDisk::default();
    disk.set(Faults { read_only: true, ..Faults::default() });
    let refused = try_open(&disk).unwrap_err();
    assert!(matches!(refused, LogError::NotWritable { .. }), "{refused}");
    assert!(refused.to_string().ends_with("run"), "{refused}");
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    std::fs::write(&path, "not a directory").unwrap();
    let refused = open(&path, Options::default()).unwrap_err().to_string();
    assert!(refused.ends_with(&path.display().to_string()), "{refused}");
}

#[test]
fn a_log_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), Options::default()).unwrap();
    let refused = open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, LogError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    drop(first);
    open(dir.path(), Options::default()).unwrap();
}

#[test]
fn a_future_version_is_told_apart_from_damage() {
    for name in ["00000001.log", "00000001.hist", "snapshot-00000000000000000002.snap"] {
        let dir = tempfile::tempdir().unwrap();
        let Parts { mut stager, mut writer, snapshots, .. } =
            open(dir.path(), Options::default()).unwrap().into_parts();
        append(&mut stager, &mut writer, &records(1..=2, 100));
        snapshots.write(2, b"state").unwrap();
        match name.ends_with("hist") {
            true => writer.close().unwrap(),
            false => drop(writer),
        }
        drop((stager, snapshots));
        let path = dir.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8] = 2;
        let salt = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        let crc = Checksum::new(salt).of(&bytes[..FILE_HEADER_LEN - 4]);
        bytes[FILE_HEADER_LEN - 4..FILE_HEADER_LEN].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        let refused = open(dir.path(), Options::default()).unwrap_err();
        assert!(matches!(refused, LogError::Version { found: 2, known: 1, .. }), "{refused}");
        assert!(refused.to_string().ends_with(name), "{refused}");
    }
}
