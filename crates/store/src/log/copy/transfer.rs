//! Writes the records of one log to another.

use super::super::contract::{Commit, KeepSnapshots, Log, Parts, Payloads, Stage};
use super::super::error::{LogError, ReadError};
use super::error::CopyError;
use super::needed::Needed;
use super::source::{Reading, Record, Source};
use super::{Doing, Progress};
use bytes::Bytes;
use rollyard_core::ledger::Ledger;

/// A batch is committed at this size: large enough that syncs do not count, small enough for any server.
const BATCH_BYTES: u64 = 4 << 20;

/// Copies every record; gives the bytes of the bodies, and what keeps the snapshots of the target.
pub(super) fn transfer<S: Source, L: Log>(
    source: &S,
    reader: &S::Reader,
    needed: &Needed,
    log: L,
    watch: &mut dyn FnMut(Progress),
) -> Result<(u64, L::Snapshots), CopyError> {
    let Parts { mut stager, mut writer, snapshots, .. } = log.into_parts();
    let (mut body_bytes, mut payload_bytes) = (0, 0);
    std::thread::scope(|scope| {
        let reading = Reading::start(scope, source);
        for record in &reading.records {
            let expected = stager.next_seq();
            if record.seq != expected || record.seq > needed.last_seq {
                let what = format!("record {} came where {expected} was due", record.seq);
                return Err(CopyError::Differs(what));
            }
            let payload = payload_of(&record, reader, needed)?;
            body_bytes += record.body.len() as u64;
            payload_bytes += payload.len() as u64;
            stager.stage(&record.body, payload)?;
            if stager.staged_bytes() >= BATCH_BYTES {
                stager.take_batch().map_or(Ok(()), |batch| writer.commit(batch))?;
            }
            watch(Progress {
                doing: Doing::Copying,
                records: record.seq,
                records_total: needed.last_seq,
                payload_bytes,
                payload_bytes_total: needed.payload_bytes,
            });
        }
        reading.finish().map(drop)
    })?;
    stager.take_batch().map_or(Ok(()), |batch| writer.commit(batch))?;
    writer.close()?;
    Ok((body_bytes, snapshots))
}

/// The payload of a record, if the ledger needs it.
pub(super) fn payload_of(
    record: &Record,
    reader: &impl Payloads,
    needed: &Needed,
) -> Result<Bytes, CopyError> {
    let Some(size_bytes) = needed.payloads.get(&record.seq) else { return Ok(Bytes::new()) };
    let unreadable = |cause| CopyError::Payload { seq: record.seq, cause };
    let payload = reader.payload(record.place).map_err(unreadable)?;
    if payload.len() != *size_bytes as usize || record.payload_len != *size_bytes {
        let what = "it is not as long as the ledger says";
        let path = "the source".into();
        return Err(unreadable(ReadError::Corrupt { place: record.place, what, path }));
    }
    Ok(payload)
}

/// Makes the first start on the copy a short one.
pub(super) fn keep_snapshot<L: Log>(
    snapshots: &L::Snapshots,
    seq: u64,
    ledger: &Ledger,
) -> Result<(), LogError> {
    if seq == 0 { Ok(()) } else { snapshots.write(seq, &ledger.snapshot()) }
}
