//! Reads a copy back beside what it was made from.

use super::super::contract::Payloads;
use super::error::CopyError;
use super::needed::{Needed, Replayed};
use super::source::{Reading, Source};
use super::{Doing, Progress};
use rollyard_core::ids::Place;
use rollyard_core::ledger::Ledger;
use std::collections::HashMap;

/// A payload that both sides have.
struct Pair {
    seq: u64,
    in_source: Place,
    in_target: Place,
}

/// Compares every body, every payload that is needed, and the books. Gives the ledger that the target makes.
pub(super) fn verify<S: Source, V: Source>(
    source: &S,
    reader: &S::Reader,
    needed: &Needed,
    target: &V,
    watch: &mut dyn FnMut(Progress),
) -> Result<Ledger, CopyError> {
    let mut progress = Progress {
        doing: Doing::Verifying,
        records: 0,
        records_total: needed.last_seq,
        payload_bytes: 0,
        payload_bytes_total: needed.payload_bytes,
    };
    let mut replayed = Replayed::default();
    let mut pairs = Vec::with_capacity(needed.payloads.len());
    let copy = std::thread::scope(|scope| {
        let (originals, copies) = (Reading::start(scope, source), Reading::start(scope, target));
        for original in &originals.records {
            let seq = original.seq;
            let copy = copies.records.recv().map_err(|_| differs(format!("record {seq} is missing")))?;
            if copy.seq != seq || copy.body != original.body {
                return Err(differs(format!("record {seq} is another")));
            }
            let payload_len = needed.payloads.get(&seq).copied().unwrap_or(0);
            if copy.payload_len != payload_len {
                let found = copy.payload_len;
                return Err(differs(format!("record {seq} has {found} bytes of rollout, not {payload_len}")));
            }
            if payload_len > 0 {
                pairs.push(Pair { seq, in_source: original.place, in_target: copy.place });
            }
            replayed.apply(seq, &copy.body, copy.place)?;
            progress.records = seq;
            watch(progress);
        }
        if let Ok(more) = copies.records.recv() {
            return Err(differs(format!("it goes on with record {}", more.seq)));
        }
        originals.finish()?;
        copies.finish()
    })?;
    let found = copy.last_seq;
    if found != needed.last_seq {
        return Err(differs(format!("it ends after record {found}, not {}", needed.last_seq)));
    }
    for pair in &pairs {
        let unreadable = |cause| CopyError::Payload { seq: pair.seq, cause };
        let original = reader.payload(pair.in_source).map_err(unreadable)?;
        let copied = copy.reader.payload(pair.in_target);
        let copied =
            copied.map_err(|cause| differs(format!("the rollout of record {}: {cause}", pair.seq)))?;
        if original != copied {
            return Err(differs(format!("the rollout of record {} is another", pair.seq)));
        }
        progress.payload_bytes += copied.len() as u64;
        watch(progress);
    }
    let ledger = replayed.ledger;
    check_ledger(&ledger, needed, &pairs)?;
    Ok(ledger)
}

/// What is needed must be the same, and must be where the bytes are.
fn check_ledger(ledger: &Ledger, needed: &Needed, pairs: &[Pair]) -> Result<(), CopyError> {
    ledger.audit().map_err(|wrong| differs(format!("its books do not balance: {wrong}")))?;
    if *ledger.books() != needed.books {
        return Err(differs(format!("its books are {:?}, not {:?}", ledger.books(), needed.books)));
    }
    let read: HashMap<Place, u64> = pairs.iter().map(|pair| (pair.in_target, pair.seq)).collect();
    let mut wanted = 0;
    for (place, _) in ledger.places() {
        wanted += 1;
        if !read.contains_key(&place) {
            return Err(differs(format!("its ledger needs the rollout at {place}, which no record brought")));
        }
    }
    if wanted != pairs.len() {
        return Err(differs(format!("its ledger needs {wanted} rollouts, not {}", pairs.len())));
    }
    Ok(())
}

fn differs(what: String) -> CopyError {
    CopyError::Differs(what)
}
