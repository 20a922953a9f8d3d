//! One run and everybody around it: agents that make rollouts, readers that lease them, a trainer that steps.
//!
//! Time is a list of what will happen. Agents are slots: when one ends its rollout it begins the next, so that as many
//! are under way as there are agents, and the rates follow from how long a rollout takes.

use rollyard_core::ids::{LeaseNo, Place, Time};
use rollyard_core::ledger::{Command, Event, LeaseTerms, Refusal, Want};
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item::{Item, Source};
use serde_json::json;
use std::collections::BTreeMap;

use super::dice::Dice;
use super::fleet::{Fleet, GROUP_SIZE, LENGTH_SPREAD, Load, Mishaps, READERS};
use super::owner::{Owner, Stopwatch};
use super::payload::Sizes;
use super::witness::uid;

/// Tasks of a run; when all were tried, the next pass begins.
const PROMPTS: u64 = 10_000;
/// A group that nothing was added to for so many rollouts' time is ended.
pub(super) const PATIENCE: f64 = 3.0;
/// A writer that heard nothing tries again after this.
const RETRY_MS: u64 = 1_000;
/// A reader that died is replaced after this.
const REPLACE_MS: u64 = 10_000;
/// No command of anybody but writers has a payload.
const NO_PLACE: Place = Place(u64::MAX);

/// One rollout on its way.
#[derive(Clone, Copy, Debug)]
struct Write {
    number: usize,
    prompt: u64,
    pass: u64,
    reward: f64,
    version: u64,
    size_bytes: u32,
}

#[derive(Debug)]
enum Happening {
    /// An agent ends its rollout, which is lost if there is nothing to write.
    Ended(Option<Write>),
    WrittenAgain(Write),
    ReaderReplaced(usize),
    /// A reader that was given up acks after its lease has expired.
    AckedLate(LeaseNo),
    BatchTrained,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Asking,
    Has(LeaseNo),
    Gone,
}

/// The group that agents are begun for.
#[derive(Debug, Default)]
struct Begun {
    groups: u64,
    members: u32,
    chance_to_solve: f64,
    is_broken: bool,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) owner: Owner,
    run: u64,
    load: Load,
    mishaps: Mishaps,
    sizes: Sizes,
    want: Want,
    dice: Dice,
    now: Time,
    /// By time, and by number where times are equal.
    upcoming: BTreeMap<(Time, u64), Happening>,
    scheduled: u64,
    rollouts: usize,
    begun: Begun,
    readers: Vec<Reader>,
    is_training: bool,
    step: u64,
}

impl World {
    pub(super) fn new(fleet: &Fleet, sizes: Sizes, run: u64, seed: u64, stopwatch: Stopwatch) -> Self {
        let load = fleet.load();
        let settings = json!({
            "group_size": GROUP_SIZE,
            // Weights change while a group is made.
            "version_spread_max": 8,
            "group_timeout_seconds": PATIENCE * load.rollout_secs,
            // A lease has to outlive the wait for the rest of the batch, readers that are replaced, and the step.
            "lease_seconds": 3.0 * load.step_secs + 3.0 * REPLACE_MS as f64 / 1e3,
        });
        let config = RunConfig::default().patched(settings.as_object().expect("an object is written above"));
        let mut world = Self {
            owner: Owner::new(run, config.expect("settings that exist"), stopwatch),
            run,
            load,
            mishaps: fleet.mishaps,
            sizes,
            want: Want::Groups((load.batch_groups / READERS) as usize),
            dice: Dice::new(seed, run),
            now: Time(1_800_000_000_000),
            upcoming: BTreeMap::new(),
            scheduled: 0,
            rollouts: 0,
            begun: Begun::default(),
            readers: vec![Reader::Asking; READERS as usize],
            is_training: false,
            step: 1,
        };
        for _ in 0..fleet.agents_per_run() {
            // Everybody is somewhere in the middle, as if the run had begun long ago.
            let length = world.dice.spread_as_found(LENGTH_SPREAD);
            let left = length * world.dice.unit();
            world.begin(length, left);
        }
        world
    }

    pub(super) fn advance_secs(&mut self, secs: u64) {
        let until = Time(self.now.0 + secs * 1000);
        while let Some(next) = self.upcoming.first_entry()
            && next.key().0 <= until
        {
            let ((time, _), happening) = next.remove_entry();
            self.pass_time(time);
            self.happen(happening);
        }
        self.pass_time(until);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Ended(write) => {
                let length = self.dice.spread(LENGTH_SPREAD);
                self.begin(length, length);
                if let Some(write) = write {
                    let is_new = self.write(write);
                    assert!(is_new, "{write:?} was taken for a retry");
                    if self.dice.hits(self.mishaps.retry_share) {
                        self.schedule(RETRY_MS, Happening::WrittenAgain(write));
                    }
                }
            }
            Happening::WrittenAgain(write) => {
                let is_new = self.write(write);
                assert!(!is_new, "{write:?} was taken twice");
                self.owner.meter.retries += 1;
            }
            Happening::ReaderReplaced(reader) => {
                self.set_reader(reader, Reader::Asking);
                self.gather();
            }
            Happening::AckedLate(lease) => {
                let refused = self.owner.run(&Command::Ack { lease }, NO_PLACE, self.now);
                assert!(matches!(refused, Err(Refusal::LeaseGone { .. })), "{refused:?} for lease {lease}");
                self.owner.meter.late_acks += 1;
            }
            Happening::BatchTrained => self.end_step(),
        }
    }

    /// Lets timeouts happen when they are due, as a yard's thread does.
    fn pass_time(&mut self, until: Time) {
        while let Some(due) = self.owner.ledger.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.command(&Command::Tick);
            self.gather();
        }
        self.now = until;
    }

    /// An agent begins a rollout `length` times as long as the mean, of which `left` is still to come.
    fn begin(&mut self, length: f64, left: f64) {
        if self.begun.members == 0 {
            self.begun.groups += 1;
            self.begun.chance_to_solve = self.dice.unit();
            self.begun.is_broken = self.dice.hits(self.mishaps.broken_share);
        }
        self.begun.members = (self.begun.members + 1) % GROUP_SIZE;
        let is_lost =
            self.dice.hits(self.mishaps.lost_share) || (self.begun.is_broken && self.dice.hits(0.5));
        let group = self.begun.groups - 1;
        let write = Write {
            number: self.rollouts,
            prompt: group % PROMPTS,
            pass: group / PROMPTS,
            reward: f64::from(u8::from(self.dice.hits(self.begun.chance_to_solve))),
            version: self.step,
            size_bytes: self.sizes.bytes(length),
        };
        self.rollouts += 1;
        let in_ms = (left * self.load.rollout_secs * 1000.0) as u64;
        self.schedule(in_ms, Happening::Ended((!is_lost).then_some(write)));
    }

    /// Whether it was new.
    fn write(&mut self, write: Write) -> bool {
        let item = Item {
            uid: uid(self.run, write.number),
            instance: format!("prompt-{:05}", write.prompt),
            reward: write.reward,
            answered: true,
            version: Some(write.version),
            epoch: Some(write.pass),
            source: Source::default(),
        };
        let digest = (write.number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let command = Command::Admit { item, digest, size_bytes: write.size_bytes };
        let events = self
            .owner
            .run(&command, Place(write.number as u64), self.now)
            .unwrap_or_else(|refusal| panic!("{write:?}: {refusal}"));
        if events.iter().any(|event| matches!(event, Event::GroupReady { .. })) {
            self.gather();
        }
        !events.is_empty()
    }

    /// Readers that wait get what they want, if it is there; when all have it, the step begins.
    fn gather(&mut self) {
        if self.is_training {
            return;
        }
        for nth in 0..self.readers.len() {
            if self.readers.get(nth) != Some(&Reader::Asking) {
                continue;
            }
            let terms = LeaseTerms { reader: format!("rank-{nth}"), secs: None, auto: false };
            let events = self.command(&Command::Lease { want: self.want, terms });
            let Some(Event::Leased { lease, until, .. }) = events.last() else { continue };
            if self.dice.hits(self.mishaps.reader_lost_share) {
                let until_ms = until.0 - self.now.0;
                self.schedule(until_ms + RETRY_MS, Happening::AckedLate(*lease));
                self.schedule(REPLACE_MS, Happening::ReaderReplaced(nth));
                self.set_reader(nth, Reader::Gone);
            } else {
                self.set_reader(nth, Reader::Has(*lease));
            }
        }
        if self.readers.iter().all(|reader| matches!(reader, Reader::Has(_))) {
            self.is_training = true;
            self.schedule((self.load.training_secs * 1000.0) as u64, Happening::BatchTrained);
        }
    }

    fn end_step(&mut self) {
        for reader in std::mem::replace(&mut self.readers, vec![Reader::Asking; READERS as usize]) {
            if let Reader::Has(lease) = reader {
                self.command(&Command::Ack { lease });
            }
        }
        self.is_training = false;
        if self.dice.hits(self.mishaps.step_lost_share) {
            // The trainer starts again from its last checkpoint.
            let rewind = match self.owner.ledger.commits().last() {
                Some(&step) => Command::Rewind { step },
                None => Command::RewindToStart,
            };
            self.command(&rewind);
        } else {
            self.command(&Command::Commit { step: self.step, leases: None });
            self.step += 1;
            self.command(&Command::SetVersion { version: self.step });
        }
        self.gather();
    }

    fn command(&mut self, command: &Command) -> rollyard_core::ledger::Events {
        let done = self.owner.run(command, NO_PLACE, self.now);
        done.unwrap_or_else(|refusal| panic!("run {} refused {command:?}: {refusal}", self.run))
    }

    fn set_reader(&mut self, nth: usize, reader: Reader) {
        if let Some(place) = self.readers.get_mut(nth) {
            *place = reader;
        }
    }

    fn schedule(&mut self, in_ms: u64, happening: Happening) {
        self.scheduled += 1;
        self.upcoming.insert((Time(self.now.0 + in_ms), self.scheduled), happening);
    }
}
