//! Reading over the owner's shoulder.

use crate::support::{append, records};
use rollyard_store::log::{Archive, Commit, Log, Options, Parts, Payloads, Place, ReplayError, Stage, open};
use std::convert::Infallible;
use std::path::Path;

fn seen(dir: &Path) -> Vec<(u64, Place, Vec<u8>)> {
    let mut seen = Vec::new();
    let visited = Archive::open(dir).unwrap().visit(|entry| {
        seen.push((entry.seq, entry.place, entry.body.to_vec()));
        Ok::<_, Infallible>(())
    });
    let visited = visited.unwrap();
    assert_eq!((visited.last_seq, visited.unread_bytes), (seen.len() as u64, 0));
    seen
}

#[test]
fn an_archive_follows_a_log_that_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1000, ..Options::default() };
    let Parts { mut stager, mut writer, .. } = open(dir.path(), options).unwrap().into_parts();
    assert!(seen(dir.path()).is_empty());
    let mut freed = Vec::new();
    for n in 0..20 {
        freed.extend(append(&mut stager, &mut writer, &records(n * 2 + 1..=n * 2 + 2, 300)));
        let seqs: Vec<_> = seen(dir.path()).into_iter().map(|(seq, ..)| seq).collect();
        assert_eq!(seqs, (1..=n * 2 + 2).collect::<Vec<_>>());
    }
    freed.iter().for_each(|place| stager.free(*place, 300));
    for release in stager.reclaimable() {
        writer.release(release).unwrap();
    }
    assert_eq!(seen(dir.path()).len(), 40, "the history is whole without the payloads");
}

#[test]
fn an_archive_reads_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let Parts { mut stager, mut writer, .. } = open(dir.path(), Options::default()).unwrap().into_parts();
    let expected = records(1..=3, 300);
    let places = append(&mut stager, &mut writer, &expected);
    let archive = Archive::open(dir.path()).unwrap();
    let reader = archive.visit(|_| Ok::<_, Infallible>(())).unwrap().reader;
    for (place, record) in places.iter().zip(&expected) {
        assert_eq!(reader.payload(*place).unwrap(), record.payload);
    }
}

#[test]
fn a_visitor_can_stop() {
    let dir = tempfile::tempdir().unwrap();
    let Parts { mut stager, mut writer, .. } = open(dir.path(), Options::default()).unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=3, 0));
    let stopped = Archive::open(dir.path()).unwrap().visit(|entry| Err(entry.seq));
    assert!(matches!(stopped, Err(ReplayError::Visit(1))));
}

#[test]
fn an_archive_of_nothing_is_an_error() {
    let missing = Archive::open(Path::new("/nonexistent/run")).unwrap_err().to_string();
    assert!(missing.ends_with("/nonexistent/run"), "{missing}");
}
