//! Rows of files that are read as a whole: JSON lists and Parquet.

use super::fates::Fate;
use super::lines::{self, Ask};
use super::pipeline::{Found, Part};
use super::plan::Job;
use super::sources::{Format, Reached};
use crate::places::ReadAt;
use crate::records::list::{self, Rows};
use crate::records::{Place, Summarizer, table};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A list has to be in memory to be taken apart.
const JSON_BYTES_MAX: u64 = 128 << 20;

pub(crate) fn json(file: &Arc<dyn ReadAt>, job: &Job, summarizer: &mut Summarizer) -> Result<Part, String> {
    let size = job.info.size_bytes;
    if size > JSON_BYTES_MAX {
        return Err(format!(
            "a JSON list of {size} bytes is not read, the most is {JSON_BYTES_MAX}; write its items as lines (JSONL)"
        ));
    }
    let bytes = file.read_at(0..size).map_err(|error| error.to_string())?;
    if bytes.len() as u64 != size {
        return Err("the file was replaced while it was read; refresh the catalog".to_owned());
    }
    let place = Place::of(&job.info.url);
    let mut part = Part { bytes: size, ..Part::default() };
    match list::rows(&bytes) {
        Rows::At(ranges) => {
            for (nth, range) in ranges.into_iter().enumerate() {
                let (offset, length) = (range.start as u64, range.len() as u64);
                let summary = summarizer.summarize(bytes.get(range).unwrap_or_default(), &place);
                part.rows.push(Found { nth: nth as u64, offset, length, summary });
            }
        }
        Rows::Lines => {
            let ask = Ask { stretch: 0..size, is_first: true, file_end: size };
            let read = lines::lines(&**file, &ask, |line| {
                if !line.is_blank() {
                    let summary = summarizer.summarize(line.bytes, &place);
                    part.rows.push(Found {
                        nth: line.nth,
                        offset: line.offset,
                        length: line.length,
                        summary,
                    });
                }
            });
            read.map_err(|error| error.to_string())?;
        }
    }
    part.reached = Some(Reached { bytes: size, ..Reached::default() });
    Ok(part)
}

/// A part a batch; `emit` says whether there is any use in going on.
pub(crate) fn parquet(
    file: &Arc<dyn ReadAt>,
    job: &Job,
    summarizer: &mut Summarizer,
    emit: &mut dyn FnMut(Part) -> bool,
) -> Result<Part, String> {
    let place = Place::of(&job.info.url);
    let mut at = 0;
    table::rows(file, 0..u64::MAX, |batch| {
        let mut part = Part::default();
        let count = batch.len() as u64;
        for (nth, line) in (0..).zip(batch) {
            if job.format == Format::FatesParquet {
                part.fates.extend(Fate::of_line(&line));
                continue;
            }
            let summary = summarizer.summarize(&line, &place);
            part.rows.push(Found { nth, offset: at + nth, length: line.len() as u64, summary });
        }
        at += count;
        part.reached = Some(Reached { lines: count, ..Reached::default() });
        if emit(part) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let reached = Some(Reached { bytes: job.info.size_bytes, ..Reached::default() });
    Ok(Part { bytes: job.info.size_bytes, reached, ..Part::default() })
}
