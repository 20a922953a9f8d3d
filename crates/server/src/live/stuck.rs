//! What does not get on, why, and what to do about it, in words.

use rollyard_core::ledger::{LeaseOut, OpenGroup, Paced};
use rollyard_core::pipeline::DropReason;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::LiveRoom;
use super::history::{Lately, Moved};
use crate::api::ArchiveAnswer;
use crate::generators::GeneratorAnswer;

/// Nothing for that long is worth a word; rollouts and training steps take their time.
const QUIET_SECS: u64 = 120;

/// A built-in generator whose engine fails is told sooner.
const ENGINE_QUIET_SECS: u64 = 10;

/// A lease is near its end with this share of its time left, and at most a minute.
const LEASE_LEFT_RATIO: f64 = 0.2;
const LEASE_LEFT_SECS: f64 = 60.0;

/// Records that an archive may be behind without a word: it writes in batches.
const BEHIND_MAX: u64 = 10_000;

/// One reason that takes this share of what is lost is the reason.
const ONE_REASON_RATIO: f64 = 0.9;

/// Something that does not get on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Stuck {
    /// A short name to branch on: `no_writes`, `not_read`, `lease_expires`, `generator_failed`, `generator_waits`,
    /// `archive_failing`, `archive_behind`, `full`, `paced`, `all_dropped`.
    kind: &'static str,
    /// What is the matter.
    what: String,
    /// What is known of the cause.
    why: String,
    /// What to do.
    next: String,
}

/// What is looked at.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) run: &'a str,
    pub(super) now_ms: u64,
    pub(super) moved: Moved,
    pub(super) lately: Lately,
    pub(super) open_groups: usize,
    pub(super) longest_open: Option<&'a OpenGroup>,
    /// Groups that can be read, or rollouts that can be drawn.
    pub(super) ready: usize,
    /// `groups` or `rollouts`.
    pub(super) unit: &'static str,
    pub(super) leases: &'a [LeaseOut],
    pub(super) leases_out: usize,
    pub(super) group_size: usize,
    pub(super) room: &'a LiveRoom,
    pub(super) paced: Paced,
    pub(super) generator: Option<&'a GeneratorAnswer>,
    pub(super) archive: Option<&'a ArchiveAnswer>,
}

/// The gravest first.
pub(super) fn find(facts: &Facts<'_>) -> Vec<Stuck> {
    let mut found = Vec::new();
    found.extend(full(facts));
    found.extend(generator(facts));
    found.extend(archive(facts));
    found.extend(no_writes(facts));
    found.extend(all_dropped(facts));
    found.extend(not_read(facts));
    found.extend(leases(facts));
    found.extend(paced(facts));
    found
}

fn secs_since(facts: &Facts<'_>, at_ms: u64) -> u64 {
    facts.now_ms.saturating_sub(at_ms) / 1000
}

fn no_writes(facts: &Facts<'_>) -> Option<Stuck> {
    let quiet = secs_since(facts, facts.moved.admitted_ms);
    let open = facts.longest_open.filter(|_| quiet >= QUIET_SECS)?;
    let left = open.until.0.saturating_sub(facts.now_ms) / 1000;
    Some(Stuck {
        kind: "no_writes",
        what: format!(
            "No rollout came in for {quiet} s; still open: {}.",
            count(facts.open_groups, "groups")
        ),
        why: format!("{:?} has {} of {} rollouts.", clip(&open.instance), open.len, open.size),
        next: format!(
            "See whether what writes to this run is at work. In {left} s the group is used as it is, or dropped \
             (group_timeout_seconds)."
        ),
    })
}

fn not_read(facts: &Facts<'_>) -> Option<Stuck> {
    let quiet = secs_since(facts, facts.moved.read_ms);
    if facts.ready == 0 || facts.leases_out > 0 || quiet < QUIET_SECS || facts.paced.readers {
        return None;
    }
    Some(Stuck {
        kind: "not_read",
        what: format!("{} can be read, and nobody has for {quiet} s.", count(facts.ready, facts.unit)),
        why: "No lease is out, so no trainer is at work on rollouts of this run.".to_owned(),
        next: format!(
            "See whether the trainer runs, and whether it reads the run {:?} of this server.",
            facts.run
        ),
    })
}

fn leases<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = Stuck> + 'a {
    facts.leases.iter().filter_map(|lease| {
        let (now, until) = (facts.now_ms as f64, lease.until.0 as f64);
        let (left, term) = ((until - now) / 1000.0, lease.until.secs_since(lease.granted_at));
        if left > (term * LEASE_LEFT_RATIO).min(LEASE_LEFT_SECS) {
            return None;
        }
        let reader = if lease.reader.is_empty() { String::new() } else { format!(" of {:?}", clip(&lease.reader)) };
        let when = if left > 0.0 { format!("expires in {left:.0} s") } else { "has expired".to_owned() };
        let age = secs_since(facts, lease.granted_at.0);
        Some(Stuck {
            kind: "lease_expires",
            what: format!("Lease {}{reader} {when}.", lease.lease),
            why: format!("It has {} for {age} s, and was neither acked nor returned.", count(lease.rollouts, "rollouts")),
            next: "They go back to be read again unless the reader acks or extends the lease. If training on a read \
                   takes that long, raise lease_seconds."
                .to_owned(),
        })
    })
}

fn generator(facts: &Facts<'_>) -> Option<Stuck> {
    let generator = facts.generator?;
    let task = &generator.task_type;
    let last_line = |text: &str| clip(text.trim().lines().last().unwrap_or_default()).to_owned();
    let trouble = generator.problem.as_deref().or(generator.told.as_deref()).map(last_line);
    let log = format!("GET /api/runs/{} has the last lines that it printed", facts.run);
    match generator.state {
        "failed" => Some(Stuck {
            kind: "generator_failed",
            what: format!("The generator of {task:?} failed and is not started again."),
            why: trouble.unwrap_or_else(|| "It did not say why.".to_owned()),
            next: format!("Mend it, then POST /api/runs/{}/generator/start. {log}.", facts.run),
        }),
        // A crash, and the pause before the next start.
        "running" if generator.kind == Some("file") && generator.pid.is_none() && generator.restarts > 0 => {
            Some(Stuck {
                kind: "generator_waits",
                what: format!("The generator of {task:?} crashed and is about to be started again."),
                why: trouble.unwrap_or_else(|| "It did not say why.".to_owned()),
                next: format!(
                    "Nothing, if it recovers; it was started again {} times. {log}.",
                    generator.restarts
                ),
            })
        }
        "running" => {
            // The last failure may be long ago: it is told only while nothing comes in.
            let is_quiet = secs_since(facts, facts.moved.admitted_ms) >= ENGINE_QUIET_SECS;
            let waits_for = generator.progress.as_ref().filter(|_| is_quiet)?.get("last_error")?.as_str()?;
            Some(Stuck {
                kind: "generator_waits",
                what: format!("The generator of {task:?} has trouble with its engine."),
                why: last_line(waits_for),
                next: "See whether the engine at its remote_engine_url answers; the generator goes on by itself."
                    .to_owned(),
            })
        }
        _ => None,
    }
}

fn archive(facts: &Facts<'_>) -> Option<Stuck> {
    let archive = facts.archive?;
    let kept = "Until then the rollouts stay in the run's folder, which grows; none is lost.";
    match &archive.error {
        Some(error) => Some(Stuck {
            kind: "archive_failing",
            what: format!("The archive cannot be written: {}.", archive.place),
            why: clip(error).to_owned(),
            next: format!("Make the place writable; it is tried again by itself. {kept}"),
        }),
        None if archive.behind > BEHIND_MAX => Some(Stuck {
            kind: "archive_behind",
            what: format!("The archive is {} records behind.", archive.behind),
            why: format!("Rollouts come in faster than {} takes them.", archive.place),
            next: format!("Look at the disk or the network to that place if the number grows. {kept}"),
        }),
        None => None,
    }
}

fn full(facts: &Facts<'_>) -> Option<Stuck> {
    let LiveRoom { rollouts, rollouts_max, bytes, bytes_max } = *facts.room;
    let (what, limit) = if rollouts >= rollouts_max {
        (format!("The run keeps {rollouts} rollouts, as many as it may."), "max_buffer_size")
    } else if bytes as f64 >= bytes_max as f64 * 0.99 {
        (format!("The run keeps {bytes} bytes, and may keep {bytes_max}."), "max_buffer_bytes")
    } else {
        return None;
    };
    Some(Stuck {
        kind: "full",
        what,
        why: "Writers wait or are refused until readers have taken and acked something.".to_owned(),
        next: format!("Read faster, raise {limit}, or lower keep_commits if rollouts are kept for a rewind."),
    })
}

fn paced(facts: &Facts<'_>) -> Option<Stuck> {
    let quiet = |at_ms| secs_since(facts, at_ms) >= QUIET_SECS;
    if facts.paced.writers {
        return Some(Stuck {
            kind: "paced",
            what: "Writers wait for the trainer.".to_owned(),
            why: "The limiter holds inserts back, so that rollouts do not get stale before they are sampled.".to_owned(),
            next: "Nothing, while the trainer samples. Otherwise start it, or see limiter, samples_per_insert and \
                   limiter_error_buffer."
                .to_owned(),
        });
    }
    // An empty pool at the beginning is no trouble; one that stays too small for the limiter is.
    (facts.paced.readers && facts.ready > 0 && quiet(facts.moved.admitted_ms)).then(|| Stuck {
        kind: "paced",
        what: "The trainer waits for rollouts.".to_owned(),
        why: format!("The limiter lets nobody sample yet; the pool has {}.", count(facts.ready, "rollouts")),
        next: "See whether rollouts come in, or lower limiter_size.".to_owned(),
    })
}

fn all_dropped(facts: &Facts<'_>) -> Option<Stuck> {
    let Lately { dropped, read } = &facts.lately;
    let total: u64 = dropped.values().sum();
    let (reason, most) = dropped.iter().max_by_key(|(_, count)| **count)?;
    let is_one = *most as f64 >= total as f64 * ONE_REASON_RATIO;
    // Less than a group, or beside others that are used, is the day's work of a filter.
    if *read > 0 || facts.ready > 0 || total < facts.group_size as u64 || !is_one {
        return None;
    }
    let (why, next) = meaning(*reason);
    Some(Stuck {
        kind: "all_dropped",
        what: format!("Every group of the last minute was dropped: {reason}, {most} rollouts."),
        why: why.to_owned(),
        next: next.to_owned(),
    })
}

/// What a reason says of the run, and what to do if it is the only one.
fn meaning(reason: DropReason) -> (&'static str, &'static str) {
    use DropReason as R;
    match reason {
        R::NoVariance => (
            "All rewards of a group were equal, so there is nothing to learn from it.",
            "Read some of them: the prompts are too easy or too hard, or the reward is broken.",
        ),
        R::TooFewAnswers => (
            "Too few rollouts of a group ended in an answer.",
            "Read some of them: they may be cut by the token limit, or the answer is not found in its format.",
        ),
        R::TooFewInTime => (
            "Groups timed out with too few rollouts.",
            "See whether rollouts are lost on the way here, or raise group_timeout_seconds.",
        ),
        R::Filtered | R::TooFewValid => (
            "The filter took out too many rollouts of each group.",
            "Compare the rewards with reward_min and reward_max.",
        ),
        R::CannotPad => (
            "Groups were too short to be padded by copies of themselves.",
            "Set pad to mask, or see why groups are short.",
        ),
        R::Requested => ("Somebody asked for it.", "Nothing, if that was meant."),
        R::Corrupt => ("Their bytes on disk no longer match their checksum.", "Look at the disk."),
        R::StaleStep | R::StaleTime | R::StaleTokens => (
            "Rollouts were too old when they could have been sampled.",
            "Update the weights of the engines more often, or raise max_rollout_step_delay or \
             max_rollout_timestamp_delay.",
        ),
        R::FutureStep => (
            "Rollouts were made with weights that the trainer does not have.",
            "See whether the trainer went back to an earlier step while the engines did not.",
        ),
        R::Capacity => {
            ("Newer rollouts needed the room.", "See whether the trainer samples, or raise replay_capacity.")
        }
        R::HookRejected => (
            "The generator's is_valid_group found the groups not valid.",
            "Read some of them, and the function.",
        ),
        R::HookFailed => (
            "A function of the generator raised, hung, died or returned the wrong shape.",
            "The log of the generator has what it printed.",
        ),
        R::Regenerated => (
            "The generator was started again and makes its groups anew.",
            "Nothing, unless it crashes again and again.",
        ),
    }
}

fn count(number: usize, unit: &str) -> String {
    if number == 1 { format!("1 {}", unit.trim_end_matches('s')) } else { format!("{number} {unit}") }
}

/// Names and messages may be of any length.
fn clip(text: &str) -> &str {
    text.char_indices().nth(200).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rollyard_core::ids::{GroupNo, LeaseNo, Time};

    const NOW: u64 = 1_000_000;

    fn room() -> LiveRoom {
        LiveRoom { rollouts: 5, rollouts_max: 100, bytes: 10, bytes_max: 1000 }
    }

    /// A run in which all is well, and a group is open.
    fn well<'a>(room: &'a LiveRoom, open: &'a OpenGroup) -> Facts<'a> {
        Facts {
            run: "default",
            now_ms: NOW,
            moved: Moved { admitted_ms: NOW - 1000, read_ms: NOW - 1000 },
            lately: Lately::default(),
            open_groups: 1,
            longest_open: Some(open),
            ready: 0,
            unit: "groups",
            leases: &[],
            leases_out: 0,
            group_size: 8,
            room,
            paced: Paced::default(),
            generator: None,
            archive: None,
        }
    }

    fn open() -> OpenGroup {
        OpenGroup {
            group: GroupNo(1),
            instance: "gsm-7".into(),
            len: 3,
            size: 8,
            opened_at: Time(NOW - 200_000),
            touched_at: Time(NOW - 200_000),
            until: Time(NOW + 100_000),
        }
    }

    fn check(change: impl FnOnce(&mut Facts<'_>), expected: &[(&str, &str)]) {
        let (room, open) = (room(), open());
        let mut facts = well(&room, &open);
        change(&mut facts);
        let found = find(&facts);
        let kinds: Vec<&str> = found.iter().map(|stuck| stuck.kind).collect();
        assert_eq!(kinds, expected.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), "{found:?}");
        for (stuck, (_, part)) in found.iter().zip(expected) {
            let text = format!("{} {} {}", stuck.what, stuck.why, stuck.next);
            assert!(text.contains(part), "{text:?} lacks {part:?}");
        }
    }

    #[test]
    fn a_run_that_gets_on_has_nothing_to_tell() {
        check(|_| {}, &[]);
        check(|facts| facts.ready = 4, &[]);
    }

    #[test]
    fn open_groups_without_writes_are_told() {
        let quiet = |facts: &mut Facts<'_>| facts.moved.admitted_ms = NOW - 150_000;
        check(quiet, &[("no_writes", "No rollout came in for 150 s; still open: 1 group.")]);
        check(quiet, &[("no_writes", "\"gsm-7\" has 3 of 8 rollouts. See")]);
        check(
            |facts| {
                quiet(facts);
                facts.longest_open = None;
            },
            &[],
        );
    }

    #[test]
    fn ready_groups_without_a_reader_are_told() {
        let unread = |facts: &mut Facts<'_>| {
            facts.ready = 12;
            facts.moved.read_ms = NOW - 130_000;
        };
        check(unread, &[("not_read", "12 groups can be read, and nobody has for 130 s.")]);
        check(
            |facts| {
                unread(facts);
                facts.leases_out = 1;
            },
            &[],
        );
    }

    #[test]
    fn leases_near_their_end_are_told() {
        let lease = |until: u64| LeaseOut {
            lease: LeaseNo(7),
            reader: "rank-0".into(),
            auto: false,
            groups: 2,
            rollouts: 16,
            granted_at: Time(NOW - 580_000),
            until: Time(until),
        };
        for (until, expected) in [
            (NOW + 20_000, Some("Lease 7 of \"rank-0\" expires in 20 s. It has 16 rollouts for 580 s")),
            (NOW - 1_000, Some("has expired")),
            (NOW + 400_000, None),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|part| ("lease_expires", part)).collect();
            check(|facts| facts.leases = Box::leak(Box::new([lease(until)])), &expected);
        }
    }

    #[test]
    fn a_full_run_names_the_knob() {
        let many = LiveRoom { rollouts: 100, ..room() };
        let large = LiveRoom { bytes: 999, ..room() };
        for (room, knob) in [(many, "raise max_buffer_size"), (large, "raise max_buffer_bytes")] {
            check(|facts| facts.room = Box::leak(Box::new(room)), &[("full", knob)]);
        }
    }

    #[test]
    fn one_reason_that_takes_everything_is_told() {
        let lately =
            |pairs: &[(DropReason, u64)], read| Lately { dropped: pairs.iter().copied().collect(), read };
        use DropReason::{NoVariance, StaleStep};
        for (lately, expected) in [
            (lately(&[(NoVariance, 16)], 0), Some("too easy or too hard")),
            (lately(&[(NoVariance, 99), (StaleStep, 1)], 0), Some("no_variance, 99 rollouts")),
            (lately(&[(NoVariance, 16)], 8), None),
            (lately(&[(NoVariance, 8), (StaleStep, 8)], 0), None),
            (lately(&[(NoVariance, 7)], 0), None),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|part| ("all_dropped", part)).collect();
            check(|facts| facts.lately = lately, &expected);
        }
    }

    #[test]
    fn a_limiter_that_holds_writers_is_told() {
        check(
            |facts| facts.paced = Paced { writers: true, readers: false },
            &[("paced", "Writers wait for the trainer.")],
        );
        // At the beginning a trainer waits until there is something.
        check(|facts| facts.paced = Paced { writers: false, readers: true }, &[]);
    }
}
