//! What the tests share: records, and one way in and one way out of a log.

use bytes::Bytes;
use rollyard_store::log::{Commit, Log, Payloads, Place, ReadError, Stage};

/// One record as the model remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) body: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// The n-th record of a test. Like JSON, its payload has no zero bytes.
pub(crate) fn record(n: u64, payload_len: usize) -> Record {
    let byte = |i: usize| (n as usize * 31 + i * 7) as u8 | 1;
    Record { body: format!("record {n}").into_bytes(), payload: (0..payload_len).map(byte).collect() }
}

pub(crate) fn records(range: std::ops::RangeInclusive<u64>, payload_len: usize) -> Vec<Record> {
    range.map(|n| record(n, payload_len)).collect()
}

/// Stages records; they are not in the log yet.
pub(crate) fn stage(stager: &mut impl Stage, records: &[Record]) -> Vec<Place> {
    let stage = |record: &Record| stager.stage(&record.body, Bytes::from(record.payload.clone()));
    records.iter().map(stage).map(|stamp| stamp.unwrap().place).collect()
}

/// Commits records as one batch and returns where their payloads are.
pub(crate) fn append<S: Stage, W: Commit<Batch = S::Batch>>(
    stager: &mut S,
    writer: &mut W,
    records: &[Record],
) -> Vec<Place> {
    let places = stage(stager, records);
    writer.commit(stager.take_batch().unwrap()).unwrap();
    places
}

/// A record that came back, with what reading its payload gave.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) seq: u64,
    pub(crate) place: Place,
    pub(crate) payload_len: u32,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn replay(log: &impl Log, from_seq: u64) -> Vec<Found> {
    let mut found = Vec::new();
    let visited: Result<(), _> = log.replay(
        from_seq,
        |done, total| assert!(done <= total),
        |entry| {
            let (seq, place, payload_len) = (entry.seq, entry.place, entry.payload_len);
            found.push(Found { seq, place, payload_len, body: entry.body.to_vec() });
            Ok::<_, std::convert::Infallible>(())
        },
    );
    visited.unwrap();
    found
}

pub(crate) fn read(reader: &impl Payloads, found: &Found) -> Result<Vec<u8>, ReadError> {
    match found.payload_len {
        0 => Ok(Vec::new()),
        _ => reader.payload(found.place).map(|payload| payload.to_vec()),
    }
}

/// Asserts that the log holds exactly these records, payloads included.
pub(crate) fn assert_holds<L: Log>(log: L, expected: &[Record]) -> L::Stager {
    let found = replay(&log, 1);
    let reader = log.into_parts();
    assert_eq!(found.len(), expected.len());
    for ((seq, found), expected) in (1..).zip(&found).zip(expected) {
        assert_eq!(found.seq, seq);
        assert_eq!(found.body, expected.body);
        assert_eq!(read(&reader.reader, found).unwrap(), expected.payload);
    }
    reader.stager
}
