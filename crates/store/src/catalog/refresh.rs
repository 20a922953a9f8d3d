//! One look at the files, from their list to the last commit.

use super::error::is_damage;
use super::pipeline::{Line, Part, work};
use super::plan::{self, Job, Plan};
use super::schema::INDICES;
use super::writer::{self, Writer};
use super::{Catalog, CatalogError, Progress, home, sources};
use crate::places::{FileInfo, PlaceError};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REPORT_EVERY: Duration = Duration::from_millis(200);

pub(super) fn refresh(
    catalog: &Catalog,
    report: &(dyn Fn(Progress) + Sync),
    cancelled: &AtomicBool,
) -> Result<Progress, CatalogError> {
    home::prepare(&catalog.path)?;
    let _lock = home::lock(&catalog.path, &mut || {
        report(Progress { waiting: true, ..Progress::default() });
        if cancelled.load(Ordering::Relaxed) { Err(CatalogError::Cancelled) } else { Ok(()) }
    })?;
    match locked(catalog, report, cancelled) {
        // Found out only now. It is a summary: made anew, it is as good as before.
        Err(error) if is_damage(&error) => {
            home::make_anew(&catalog.path)?;
            catalog.shared.forget();
            locked(catalog, report, cancelled)
        }
        done => done,
    }
}

fn locked(
    catalog: &Catalog,
    report: &(dyn Fn(Progress) + Sync),
    cancelled: &AtomicBool,
) -> Result<Progress, CatalogError> {
    let sqlite = catalog.sqlite();
    let connection = home::to_write(&catalog.path)?;
    let known = sources::all(&connection).map_err(&sqlite)?;
    let files = files(catalog, !known.is_empty())?;
    let mut plan = plan::plan(&catalog.places, files.clone(), known);
    if plan.is_reset {
        plan = Plan { is_reset: true, ..plan::plan(&catalog.places, files, Vec::new()) };
    }
    writer::clear(&connection, &plan).map_err(&sqlite)?;
    let done = index(catalog, &connection, &plan, report, cancelled)?;
    report(done);
    Ok(done)
}

/// A place that had files and has none any more is empty; one that never had any is a mistake.
fn files(catalog: &Catalog, is_known: bool) -> Result<Vec<FileInfo>, CatalogError> {
    let mut files = Vec::new();
    for spec in &catalog.specs {
        match catalog.places.files(spec) {
            Ok(mut found) => files.append(&mut found),
            Err(PlaceError::NotFound { .. } | PlaceError::NoRollouts { .. }) if is_known => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

fn index(
    catalog: &Catalog,
    connection: &Connection,
    plan: &Plan,
    report: &(dyn Fn(Progress) + Sync),
    cancelled: &AtomicBool,
) -> Result<Progress, CatalogError> {
    let sqlite = catalog.sqlite();
    let left = |job: &Job| job.info.size_bytes - job.known.as_ref().map_or(0, |(_, reached)| reached.bytes);
    let new_bytes = plan.jobs.iter().map(left).sum();
    let mut writer = Writer::new(connection, &catalog.places, new_bytes).map_err(&sqlite)?;
    writer.progress.files = plan.jobs.len() as u64 + plan.unchanged_files;
    writer.progress.files_done = plan.unchanged_files;
    writer.progress.bytes = new_bytes + plan.unchanged_bytes;
    writer.progress.bytes_done = plan.unchanged_bytes;
    report(writer.progress);
    let fates_from = plan.jobs.partition_point(|job| !job.format.is_fates());
    let (rollouts, fates) = plan.jobs.split_at(fates_from);
    run(catalog, rollouts, &mut writer, report, cancelled)?;
    connection.execute_batch(INDICES).map_err(&sqlite)?;
    run(catalog, fates, &mut writer, report, cancelled)?;
    if !plan.jobs.is_empty() {
        writer::tell_fates(connection).map_err(&sqlite)?;
    }
    writer.settle().map_err(&sqlite)?;
    Ok(writer.progress)
}

/// Workers read, this thread writes.
fn run(
    catalog: &Catalog,
    jobs: &[Job],
    writer: &mut Writer<'_>,
    report: &(dyn Fn(Progress) + Sync),
    cancelled: &AtomicBool,
) -> Result<(), CatalogError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let line = Line::new(&catalog.places, jobs, cancelled);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let (sender, parts) = flume::bounded(2 * cores);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            let (line, sender) = (&line, sender.clone());
            scope.spawn(move || work(line, &sender));
        }
        drop(sender);
        let written = write_all(catalog, jobs, &line, &parts, writer, report);
        line.stop();
        drop(parts);
        written
    })?;
    writer.commit().map_err(catalog.sqlite())?;
    if cancelled.load(Ordering::Relaxed) { Err(CatalogError::Cancelled) } else { Ok(()) }
}

/// Parts come as they are done and are written in order.
fn write_all(
    catalog: &Catalog,
    jobs: &[Job],
    line: &Line<'_>,
    parts: &flume::Receiver<Part>,
    writer: &mut Writer<'_>,
    report: &(dyn Fn(Progress) + Sync),
) -> Result<(), CatalogError> {
    let mut early: BTreeMap<u64, Vec<Part>> = BTreeMap::new();
    let mut turn = 0;
    let mut reported = Instant::now();
    while let Ok(part) = parts.recv() {
        early.entry(part.turn).or_default().push(part);
        while let Some(ready) = early.remove(&turn) {
            let mut is_done = false;
            for part in ready {
                if let Some(job) = jobs.get(part.job) {
                    writer.put(job, &part).map_err(catalog.sqlite())?;
                }
                is_done |= part.is_last_of_turn;
            }
            if !is_done {
                break;
            }
            line.wrote(turn);
            turn += 1;
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            report(writer.progress);
        }
    }
    Ok(())
}
