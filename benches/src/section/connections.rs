//! Sixteen writers beside 5,000 other connections, a fifth of them slow on purpose.
//!
//! Two servers: one calm, one with the crowd on it. They take turns, and the crowd holds still meanwhile.

use anyhow::{Result, ensure};

use crate::crowd::{Crowd, Members};
use crate::items::Sequence;
use crate::load::{self, Outcome, Plan, Shape, Until};
use crate::section::writes::BULK;
use crate::setup::{CONNECTIONS, Setup};
use crate::table::{Bar, Row, count, gigabytes, median, millis, per_sec};

/// Each slow reader asks for 8 groups of 8: some 640 kB, far more than its window takes.
const ITEMS_PER_READER: usize = 64;
const GROUP: u64 = 8;
const HELD_PER_INSTANCE: u64 = 5;

pub(crate) fn run(setup: &Setup, open: usize) -> Result<Vec<Row>> {
    let slow = open / 10;
    let members =
        Members { open, slow_writers: slow, slow_readers: slow, items_per_reader: ITEMS_PER_READER };
    // Started before the crowd raises our limit of open files: a server has to see to its own.
    let calm = setup.start_rollyard()?;
    let crowded = setup.start_rollyard()?;
    let mut ready = Sequence::new('r', GROUP);
    let plan = Plan {
        connections: CONNECTIONS,
        shape: Shape::Bulk(BULK),
        until: Until::Items((slow * ITEMS_PER_READER) as u64),
    };
    load::run(crowded.address(), &mut ready, plan, |_| ())?;
    let mut crowd = Crowd::gather(crowded.address(), members)?;
    eprintln!("  {open} connections open, {slow} slow writers and {slow} slow readers among them");

    let (mut without, mut with) = (Vec::new(), Vec::new());
    let mut calm_sequence = Sequence::new('c', HELD_PER_INSTANCE);
    let mut crowded_sequence = Sequence::new('c', HELD_PER_INSTANCE);
    for _ in 0..setup.rounds {
        without.push(setup.write_round("without the crowd", &calm, &mut calm_sequence, Shape::Single)?);
        crowd.resume();
        with.push(setup.write_round("with the crowd", &crowded, &mut crowded_sequence, Shape::Single)?);
        crowd.pause();
    }
    let still_open = crowd.still_open();
    let rss = crowded.rss_bytes()? as f64 / 1e9;
    let finished = crowd.finish_one_reader()?;
    ensure!(finished == ITEMS_PER_READER, "a slow reader got {finished} items of {ITEMS_PER_READER}");

    let of_rounds =
        |outcomes: &[Outcome], value: fn(&Outcome) -> f64| outcomes.iter().map(value).collect::<Vec<_>>();
    let rate = |outcomes: &[Outcome]| median(&of_rounds(outcomes, Outcome::items_per_sec));
    let p99 =
        |outcomes: &[Outcome]| median(&of_rounds(outcomes, |outcome| outcome.latency(0.99).as_secs_f64()));
    let worst = |outcomes: &[Outcome]| {
        of_rounds(outcomes, |outcome| outcome.latency_max().as_secs_f64()).into_iter().fold(0.0, f64::max)
    };
    let crowd_name = format!("{open} connections");
    Ok(vec![
        Row::ratio(
            &format!("writes beside {crowd_name}"),
            rate(&with),
            rate(&without),
            per_sec,
            Bar::AtLeast(0.5),
        ),
        Row::ratio(
            &format!("p99 of a write beside {crowd_name}"),
            p99(&with),
            p99(&without),
            millis,
            Bar::None,
        ),
        Row::value(
            &format!("slowest write beside {crowd_name}"),
            worst(&with),
            millis,
            Bar::Below { limit: 1.0, unit: "s" },
        ),
        Row::value(&format!("memory (VmRSS) with {crowd_name}"), rss, gigabytes, Bar::None),
        Row::ratio("connections still open at the end", still_open as f64, open as f64, count, Bar::None),
    ])
}
