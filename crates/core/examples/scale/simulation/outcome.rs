//! What a simulation found, and how it compares with the arithmetic.

use std::time::Duration;

use super::fleet::{Fleet, INLINE_BYTES_MAX, Load};
use super::owner::{Meter, TakeOver};
use super::payload::Sizes;
use super::table::{Row, number};

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) fleet: Fleet,
    pub(crate) load: Load,
    pub(crate) sizes: Sizes,
    pub(crate) seconds: u64,
    pub(crate) meter: Meter,
    /// Time in the ledgers, all of them together, for each virtual second.
    pub(crate) busy_secs: Vec<Duration>,
    pub(crate) held_max: u64,
    /// With what is leased, and what a rewind could need.
    pub(crate) kept_max: u64,
    pub(crate) take_overs: Vec<TakeOver>,
    /// Since the first day.
    pub(crate) admitted: u64,
    pub(crate) history_digest: u64,
}

impl Outcome {
    /// What the fleet is, in a sentence.
    pub(crate) fn heading(&self) -> String {
        let (Fleet { gpus, agents, runs, shape, .. }, load) = (&self.fleet, &self.load);
        format!(
            "{} GPUs, {} agents, {} runs, rollouts of {} tokens ({}): {} sequences a GPU, {} tokens/s an agent, \
             {} tokens/s in all, {} s a rollout; a run takes a step of {} groups every {} s and trains for {} s of it",
            number(f64::from(*gpus)),
            number(f64::from(*agents)),
            runs,
            number(shape.tokens()),
            shape.name,
            number(load.sequences_per_gpu),
            number(load.tokens_per_sec_of_an_agent),
            number(load.tokens_per_sec),
            number(load.rollout_secs),
            number(f64::from(load.batch_groups)),
            number(load.step_secs),
            number(load.training_secs),
        )
    }

    /// Rates of the whole yard, each beside what was reckoned.
    pub(crate) fn rates(&self) -> Vec<Row> {
        let (load, meter) = (&self.load, &self.meter);
        let per_sec = |count: u64| count as f64 / self.seconds as f64;
        let payload_bytes_per_sec = load.admitted_per_sec * self.sizes.mean_bytes;
        vec![
            Row::held_to("rollouts admitted", per_sec(meter.admitted), load.admitted_per_sec, "/s"),
            Row::held_to(
                "groups ended",
                per_sec(meter.groups_ready + meter.groups_dropped),
                load.groups_per_sec,
                "/s",
            ),
            Row::held_to("events", per_sec(meter.events), load.events_per_sec, "/s"),
            Row::held_to("records", per_sec(meter.records), load.records_per_sec, "/s"),
            Row::held_to("payloads", per_sec(meter.payload_bytes) / 1e6, payload_bytes_per_sec / 1e6, "MB/s"),
            Row::value("a payload, mean", self.sizes.mean_bytes / 1e3, "kB"),
            Row::value("history", per_sec(meter.history_bytes) / 1e3, "kB/s"),
            Row::value("history for each rollout", ratio(meter.history_bytes, meter.admitted), "bytes"),
            Row::value("history and payloads in the log of one run", self.log_bytes_per_run() / 1e3, "kB/s"),
        ]
    }

    /// What went wrong on the way, on purpose.
    pub(crate) fn mishaps(&self) -> Vec<Row> {
        let meter = &self.meter;
        let counts = [
            ("writes sent again, taken once", meter.retries),
            ("groups that timed out", meter.groups_timed_out),
            ("groups dropped, equal rewards or too few", meter.groups_dropped),
            ("leases", meter.leases),
            ("leases that expired", meter.leases_expired),
            ("acks that came too late, refused", meter.late_acks),
            ("steps committed", meter.steps),
            ("steps lost and rewound", meter.rewinds),
            ("rollouts held, most at once", self.held_max),
            ("rollouts kept, most at once", self.kept_max),
            ("rollouts admitted since the start, each in one place", self.admitted),
        ];
        counts.iter().map(|(what, count)| Row::count(what, *count)).collect()
    }

    /// What the ledger costs.
    pub(crate) fn costs(&self) -> Vec<Row> {
        let busy = self.busy_per_sec().as_secs_f64();
        let a_run = busy / f64::from(self.fleet.runs);
        let mut rows = vec![
            Row::value("ledger time for a second of the yard, median", busy * 1e3, "ms"),
            Row::value("ledger time for a command, mean", self.micros_per_command(), "µs"),
            Row::value("slowest command", self.meter.slowest.as_secs_f64() * 1e3, "ms"),
            Row::value("ledger time for a second of one run", a_run * 1e6, "µs"),
            Row::count("runs of this size whose ledgers one core could keep", (1.0 / a_run.max(1e-9)) as u64),
        ];
        if let Some(worst) = self.take_overs.iter().max_by_key(|moved| moved.restore_time + moved.replay_time)
        {
            rows.extend([
                Row::value(
                    "take-over of a run, the slowest: snapshot",
                    worst.snapshot_bytes as f64 / 1e6,
                    "MB",
                ),
                Row::value("take-over: taking it", worst.snapshot_time.as_secs_f64() * 1e3, "ms"),
                Row::value("take-over: restoring it", worst.restore_time.as_secs_f64() * 1e3, "ms"),
                Row::count("take-over: records behind it", worst.records),
                Row::value("take-over: replaying them", worst.replay_time.as_secs_f64() * 1e3, "ms"),
            ]);
        }
        rows
    }

    /// Time in all ledgers for one virtual second. The median, as others may have the cores for a while.
    pub(crate) fn busy_per_sec(&self) -> Duration {
        let mut sorted = self.busy_secs.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    fn micros_per_command(&self) -> f64 {
        self.meter.busy.as_secs_f64() * 1e6 / self.meter.commands.max(1) as f64
    }

    /// Large payloads are in the object store.
    fn log_bytes_per_run(&self) -> f64 {
        let is_inline = self.sizes.mean_bytes <= INLINE_BYTES_MAX;
        let payloads = if is_inline { self.meter.payload_bytes } else { 0 };
        ratio(self.meter.history_bytes + payloads, self.seconds) / f64::from(self.fleet.runs)
    }
}

fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}
