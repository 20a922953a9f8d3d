//! Files of rollouts under several writers, killed writers, deletion and damage.

use crate::rollout_samples::{about, exactly, row};
use rollyard_core::rollout::Metadata;
use rollyard_store::rollouts::{BatchReader, BatchWriter, FileName, OwnedRow, RolloutFolder};
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

fn writer(dir: &Path, files_max: usize) -> BatchWriter {
    BatchWriter::open(dir.to_str().unwrap(), NonZeroUsize::new(files_max).unwrap()).unwrap()
}

fn reader(dir: &Path) -> BatchReader {
    BatchReader::open(dir.to_str().unwrap()).unwrap()
}

fn folder(dir: &Path) -> RolloutFolder {
    RolloutFolder::open(dir.to_str().unwrap()).unwrap()
}

/// Writes a batch of the n-th row.
fn write(writer: &BatchWriter, n: u32, now_micros: u64) -> FileName {
    let written = writer.write(&[row(n).as_row()], &about(), now_micros).unwrap();
    assert!(written.undeleted.is_none(), "{:?}", written.undeleted);
    written.name
}

/// Which rows a reader still finds.
fn read(reader: &mut BatchReader) -> Vec<u32> {
    let batches = reader.read_all().unwrap();
    let number = |row: &OwnedRow| row.used.unwrap();
    batches.iter().flat_map(|batch| &batch.rows).map(number).collect()
}

#[test]
fn every_batch_is_read_once_and_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, mut reader) = (writer(dir.path(), 32), reader(dir.path()));
    assert!(reader.read_next().unwrap().is_none());
    for n in 0..3 {
        write(&writer, n, 1000 + u64::from(n));
    }
    let first = reader.read_next().unwrap().unwrap();
    assert_eq!((exactly(&first.rows), first.about), (exactly(&[row(0)]), about()));
    write(&writer, 3, 2000);
    assert_eq!(read(&mut reader), [1, 2, 3]);
    assert_eq!(read(&mut reader), [] as [u32; 0]);
    assert_eq!(reader.problems_total(), 0);
}

#[test]
fn a_reader_may_come_before_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("not/yet/there");
    let mut reader = reader(&path);
    assert_eq!(read(&mut reader), [] as [u32; 0]);
    write(&writer(&path, 32), 5, 1000);
    assert_eq!(read(&mut reader), [5]);
    // The other way to say the same place.
    let url = format!("file://{}", path.display());
    assert_eq!(read(&mut BatchReader::open(&url).unwrap()), [5]);
}

#[test]
fn a_folder_holds_no_more_files_than_it_may_whoever_wrote_them() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    let writers = [writer(dir.path(), 4), writer(dir.path(), 4)];
    for n in 0..10 {
        write(&writers[n as usize % 2], n, 1000 + u64::from(n));
        assert!(folder(dir.path()).list().unwrap().len() <= 4);
    }
    // A writer that starts again counts what was there before it.
    write(&writer(dir.path(), 3), 10, 3000);
    assert_eq!(read(&mut reader(dir.path())), [8, 9, 10]);
    writers[0].clear().unwrap();
    assert_eq!(folder(dir.path()).list().unwrap(), []);
    assert!(dir.path().join("notes.txt").exists());
}

#[test]
fn a_file_of_a_slow_clock_is_not_the_oldest_at_its_birth() {
    let dir = tempfile::tempdir().unwrap();
    let (fast, slow) = (writer(dir.path(), 3), writer(dir.path(), 3));
    for n in 0..3 {
        write(&fast, n, 1_000_000_000 + u64::from(n));
    }
    write(&slow, 7, 5);
    write(&slow, 8, 4);
    assert_eq!(read(&mut reader(dir.path())), [2, 7, 8]);
}

#[test]
fn a_file_that_comes_late_with_an_early_name_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(dir.path());
    let writer = writer(dir.path(), 32);
    write(&writer, 1, 1_000_000_000);
    assert_eq!(read(&mut reader), [1]);
    // As two writers of different clocks make it that list the folder at the same time.
    let late = write(&writer, 2, 1_000_000_000);
    let early = "00000000000000000005_host_000000.arrow";
    fs::rename(dir.path().join(late.to_string()), dir.path().join(early)).unwrap();
    assert_eq!(read(&mut reader), [2]);
}

#[test]
fn what_is_deleted_or_damaged_is_skipped_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, mut reader) = (writer(dir.path(), 32), reader(dir.path()));
    let names: Vec<_> = (0..4).map(|n| write(&writer, n, 1000 + u64::from(n)).to_string()).collect();
    let damage = |name: &str, change: fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(dir.path().join(name)).unwrap();
        change(&mut bytes);
        fs::write(dir.path().join(name), bytes).unwrap();
    };
    damage(&names[1], |bytes| bytes.truncate(bytes.len() / 2));
    damage(&names[2], |bytes| {
        let at = bytes.windows(5).position(|window| window == b"uid-2").unwrap();
        bytes[at] ^= 0x20;
    });
    assert_eq!(read(&mut reader), [0, 3]);
    assert_eq!(read(&mut reader), [] as [u32; 0]);
    let told: Vec<_> = reader.problems().map(|problem| (&problem.name, problem.why.as_str())).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].0 == &names[1] && told[0].1.starts_with("the stream ends in the middle"), "{told:?}");
    assert!(told[1].0 == &names[2] && told[1].1.starts_with("row 0 of group 1 is damaged"), "{told:?}");
}

/// A link to nowhere is listed like a file that is deleted before it is read.
#[test]
fn a_file_that_vanishes_after_it_was_listed_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, mut reader) = (writer(dir.path(), 32), reader(dir.path()));
    let name = "00000000000000000001_host_000000.arrow";
    std::os::unix::fs::symlink("nowhere", dir.path().join(name)).unwrap();
    write(&writer, 1, 1000);
    assert_eq!(read(&mut reader), [1]);
    assert_eq!(read(&mut reader), [] as [u32; 0]);
    let problem = reader.problems().next().unwrap();
    assert_eq!((problem.name.as_str(), reader.problems_total()), (name, 1));
    assert!(problem.why.starts_with("the file is gone"), "{problem:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_tried_three_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(dir.path());
    // A folder of that name cannot be read by anybody, not even by root.
    fs::create_dir(dir.path().join("00000000000000000001_host_000000.arrow")).unwrap();
    for total in [1, 2, 3, 3] {
        assert_eq!(read(&mut reader), [] as [u32; 0]);
        assert_eq!(reader.problems_total(), total);
    }
}

#[test]
fn only_the_last_thousand_problems_are_kept_but_all_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = reader(dir.path());
    for n in 0..1001 {
        fs::write(dir.path().join(format!("{n:020}_host_000000.arrow")), "no rollouts").unwrap();
    }
    assert!(reader.read_next().unwrap().is_none());
    assert_eq!((reader.problems().count(), reader.problems_total()), (1000, 1001));
    assert!(reader.problems().next().unwrap().name.starts_with("00000000000000000001_"));
}

#[test]
fn what_a_killed_writer_left_is_never_listed_and_goes_after_an_hour() {
    let dir = tempfile::tempdir().unwrap();
    let (old, young) =
        (".00000000000000000001_host_000000.arrow.tmp", ".00000000000000000002_host_000000.arrow.tmp");
    let others = ".notes.tmp";
    let long_ago = SystemTime::now() - Duration::from_secs(3700);
    for (name, written) in [(old, long_ago), (young, SystemTime::now()), (others, long_ago)] {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_modified(written).unwrap();
    }
    assert_eq!(folder(dir.path()).list().unwrap(), []);
    let _next = writer(dir.path(), 32);
    let left = |name: &str| dir.path().join(name).exists();
    assert_eq!((left(old), left(young), left(others)), (false, true, true));
}

#[test]
fn a_reader_beside_a_writer_never_sees_half_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (writer, mut reader) = (writer(dir.path(), 1000), reader(dir.path()));
    let done = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                write(&writer, n, 1);
            }
            done.store(true, Ordering::Release);
        });
        let mut seen = Vec::new();
        while !done.load(Ordering::Acquire) {
            seen.extend(read(&mut reader));
        }
        seen.extend(read(&mut reader));
        seen
    });
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    assert_eq!(reader.problems_total(), 0);
}

#[test]
fn a_rollout_without_metadata_takes_that_of_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = row(1);
    old.rollout.set_metadata(Metadata::default()).unwrap();
    writer(dir.path(), 32).write(&[old.as_row(), row(2).as_row()], &about(), 1).unwrap();
    let batch = reader(dir.path()).read_next().unwrap().unwrap();
    assert_eq!(batch.rows[0].rollout.metadata, about().metadata);
    assert_eq!(batch.rows[0].rollout.versions().get(0), Some(-3));
    assert_eq!(batch.rows[1], row(2));
}

#[test]
fn a_place_that_cannot_be_is_told_with_what_can() {
    for place in ["gs://bucket/runs", "file://there/runs", "://"] {
        let error = RolloutFolder::open(place).unwrap_err().to_string();
        assert!(error.contains("give a path, file:///path or s3://") && error.ends_with(place), "{error}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let error = BatchWriter::open(path, NonZeroUsize::MIN).unwrap_err().to_string();
    assert!(error.starts_with("cannot make the folder") && error.ends_with(path), "{error}");
}
