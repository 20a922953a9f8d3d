//! The two readers: one that knows slime's calls only, and one that leases, acks and commits.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::stage::Stage;
use super::{NATIVE_RUN, SLIME_RUN};
use crate::client::Client;

/// The name under which the second reader takes its leases, and finds them again.
const READER: &str = "demo-trainer";

/// Leases that go into one step.
const LEASES_PER_STEP: u64 = 4;

/// A server notes the arrival of a plain read some 50 ms after it; on a busy machine it takes longer. A fast reader
/// has several such reads behind it when the server dies.
const NOTED_WITHIN: Duration = Duration::from_millis(250);

/// What a reader got.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// By uid: how often it came, and not because the server could not know that it had.
    pub(super) times: BTreeMap<String, u32>,
    /// Rollouts that came again because the crash hit between their arrival and the note of it.
    pub(super) again_after_crash: u64,
    pub(super) reads: u64,
    pub(super) steps: u64,
    /// Leases whose groups were lost on the way with the crash, and fetched again.
    pub(super) adopted: u64,
}

/// Reads as an unmodified slime client does: whatever is ready, again and again.
pub(super) fn read_like_slime(stage: &Stage) -> Result<Delivered> {
    let mut client = stage.client();
    let mut delivered = Delivered::default();
    // The last reads before a crash: their rollouts may come again, because nobody could note them.
    let mut recent: VecDeque<(Instant, Vec<String>)> = VecDeque::new();
    let mut may_repeat: BTreeSet<String> = BTreeSet::new();
    loop {
        let is_last_look = stage.is_reading_ended();
        let answer = stage.post(&mut client, "/get_rollout_data", &json!({"timeout": 0.2}))?;
        if answer.attempts > 1 {
            may_repeat.extend(recent.drain(..).flat_map(|(_, uids)| uids));
        }
        let rows = answer.body.pointer("/data/data").and_then(Value::as_array).map(Vec::as_slice);
        let uids = uids(rows.unwrap_or_default());
        if uids.is_empty() {
            if is_last_look && is_empty(stage, &mut client, SLIME_RUN)? {
                return Ok(delivered);
            }
            continue;
        }
        delivered.reads += 1;
        stage.note_delivered(uids.len());
        for uid in &uids {
            if may_repeat.remove(uid) {
                delivered.again_after_crash += 1;
            } else {
                *delivered.times.entry(uid.clone()).or_default() += 1;
            }
        }
        let now = Instant::now();
        recent.retain(|(arrived, _)| now.duration_since(*arrived) < NOTED_WITHIN);
        recent.push_back((now, uids));
    }
}

/// Reads as a trainer that wants to be sure does: lease, train, ack, commit.
pub(super) fn lease(stage: &Stage) -> Result<Delivered> {
    let mut client = stage.client();
    let mut delivered = Delivered::default();
    loop {
        let is_last_look = stage.is_reading_ended();
        let ask = json!({"wait_seconds": 0.2, "reader": READER});
        let answer = stage.post(&mut client, &path("lease"), &ask)?;
        if answer.attempts > 1 {
            // The server may have granted one and died before we heard of it: it is still ours.
            let granted = answer.body.get("lease").and_then(Value::as_u64);
            for lost in leases_out(stage, &mut client)?.into_iter().filter(|lease| Some(*lease) != granted) {
                let groups = stage.get(&mut client, &path(&format!("leases/{lost}")))?;
                delivered.adopted += 1;
                train(stage, &mut client, &groups, &mut delivered)?;
            }
        }
        if answer.body.get("lease").is_some_and(Value::is_u64) {
            train(stage, &mut client, &answer.body, &mut delivered)?;
        } else if is_last_look && is_empty(stage, &mut client, NATIVE_RUN)? {
            commit(stage, &mut client, &mut delivered)?;
            return Ok(delivered);
        }
    }
}

fn path(rest: &str) -> String {
    format!("/api/runs/{NATIVE_RUN}/{rest}")
}

fn train(stage: &Stage, client: &mut Client, answer: &Value, delivered: &mut Delivered) -> Result<()> {
    let lease = answer.get("lease").and_then(Value::as_u64).context("a lease without a number")?;
    let groups = answer.get("groups").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let rows = groups.iter().filter_map(|group| group.get("rollouts")?.as_array()).flatten();
    let uids = uids(rows);
    stage.note_delivered(uids.len());
    for uid in uids {
        *delivered.times.entry(uid).or_default() += 1;
    }
    delivered.reads += 1;
    stage.post(client, &path(&format!("leases/{lease}/ack")), &Value::Null)?;
    if delivered.reads.is_multiple_of(LEASES_PER_STEP) {
        commit(stage, client, delivered)?;
    }
    Ok(())
}

fn commit(stage: &Stage, client: &mut Client, delivered: &mut Delivered) -> Result<()> {
    delivered.steps += 1;
    stage.post(client, &path("commit"), &json!({"step": delivered.steps}))?;
    Ok(())
}

fn leases_out(stage: &Stage, client: &mut Client) -> Result<Vec<u64>> {
    let leases = stage.get(client, &path("leases"))?;
    let ours = |lease: &&Value| {
        lease.get("status") == Some(&Value::from("out")) && lease.get("reader") == Some(&Value::from(READER))
    };
    let leases = leases.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(leases.iter().filter(ours).filter_map(|lease| lease.get("lease")?.as_u64()).collect())
}

fn is_empty(stage: &Stage, client: &mut Client, run: &str) -> Result<bool> {
    let books = stage.get(client, &format!("/api/runs/{run}/books"))?;
    let is_zero = |column: &str| books.get(column).and_then(Value::as_u64) == Some(0);
    Ok(is_zero("held") && is_zero("leased"))
}

fn uids<'a>(rows: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let uid = |row: &Value| row.get("uid").and_then(Value::as_str).map(str::to_owned);
    rows.into_iter().filter_map(uid).collect()
}
