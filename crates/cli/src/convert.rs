//! `rollyard convert`: rollouts of any format as the viewer's JSONL, or as Parquet.
//!
//! Nothing is lost on the way: a row that is in the viewer's format already is copied byte for byte, what another
//! format says is kept beside the messages, and rows that cannot be read go to a file of their own.

use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use clap::Args;
use rollyard_store::archive::parquet::RolloutFile;
use rollyard_store::catalog::RowNo;
use rollyard_store::places::{Places, Roots, Upload};
use rollyard_store::query::{Choice, Query};
use rollyard_store::records::Body;
use serde_json::{Map, Value};

use crate::query::explain;
use crate::terminal::{ProgressLine, count};
use crate::{catalog, say};

/// Turn files of rollouts into one file of the viewer's format, or of Parquet
#[derive(Debug, Args)]
#[command(after_help = "\
IN is a file, a folder, a glob or s3://bucket/prefix, in any format that can be viewed: the viewer's, Rollyard's
archive, dumps, verl, slime, prime-rl, Parquet. OUT ends in .jsonl or .parquet and may be on an object store; it
appears when it is complete. Rows that cannot be read are written to OUT.bad, byte for byte.

Example:
    rollyard convert verl_dump/ run.jsonl

The good half, for DuckDB:
    rollyard convert run.jsonl good.parquet --filter 'reward > 0.5' --unique")]
pub(crate) struct Arguments {
    /// What to read
    #[arg(value_name = "IN", required = true)]
    places: Vec<String>,
    /// The file to write
    out: String,
    /// Only rollouts that this lets through
    #[arg(long, value_name = "FILTER", default_value = "")]
    filter: String,
    /// A rollout that is there several times is written once
    #[arg(long)]
    unique: bool,
}

/// Bytes that go to the file together.
const CHUNK_BYTES: usize = 16 << 20;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let parquet = packing(&arguments.out)?;
    let query = catalog::open(&arguments.places)?;
    let rows = rows(&query, arguments)?;
    let connection = query.catalog().connect()?;
    // Last of all, so that a mistake leaves nothing behind.
    let mut out = Out::begin(&arguments.out, parquet)?;
    let mut bad: Option<Out> = None;
    let mut progress = ProgressLine::new();
    let (mut written, mut unread) = (0, 0);
    for (done, row) in (0u64..).zip(&rows) {
        progress.show("converting rows", done, rows.len() as u64);
        let body = query.catalog().body(*row)?;
        match line(&body, &connection, *row) {
            Ok(line) => {
                out.push(&line)?;
                written += 1;
            }
            Err(_) => {
                let place = format!("{}.bad", arguments.out);
                let lines = match &mut bad {
                    Some(lines) => lines,
                    None => bad.insert(Out::begin(&place, None)?),
                };
                lines.push(&body.raw)?;
                unread += 1;
            }
        }
    }
    out.finish()?;
    drop(progress);
    if let Some(bad) = bad {
        bad.finish()?;
        say(&format!("{} rows could not be read; they are in: {}.bad", count(unread), arguments.out));
    }
    say(&format!("wrote {} rollouts: {}", count(written), arguments.out));
    Ok(())
}

/// What to write, in the order of the files.
fn rows(query: &Query, arguments: &Arguments) -> Result<Vec<RowNo>> {
    if !arguments.filter.is_empty() {
        let choice = Choice { filter: arguments.filter.clone(), ..Choice::default() };
        let rows = query.rows(&choice).map_err(|error| explain(error, &arguments.filter))?;
        return Ok(rows.to_vec());
    }
    let only = if arguments.unique { "copy = 0 or bad = 1" } else { "true" };
    let connection = query.catalog().connect()?;
    let mut statement = connection.prepare(&format!("select row from rows where {only} order by row"))?;
    let rows = statement.query_map([], |row| Ok(RowNo(row.get(0)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// A row as the viewer's format has it.
fn line(body: &Body, connection: &rusqlite::Connection, row: RowNo) -> Result<Bytes, String> {
    let rollout = body.rollout()?;
    let own: Option<Map<String, Value>> = serde_json::from_slice(&body.raw).ok();
    if own.is_some_and(|own| own.contains_key("messages") && own.contains_key("attributes")) {
        return Ok(body.raw.clone());
    }
    let mut attributes = attributes(connection, row).map_err(|error| error.to_string())?;
    attributes.extend(rollout.attributes);
    let mut line = Map::new();
    line.insert("messages".to_owned(), rollout.messages.into());
    line.insert("attributes".to_owned(), attributes.into());
    line.insert("timestamp".to_owned(), rollout.timestamp.unwrap_or_default());
    line.extend(rollout.rest);
    Ok(Value::from(line).to_string().into())
}

/// What the catalog understood of a row in another format.
fn attributes(connection: &rusqlite::Connection, row: RowNo) -> rusqlite::Result<Map<String, Value>> {
    let mut statement = connection.prepare_cached(
        "select json_object('sample_index', sample_index, 'step', step, 'rollout_n', rollout_n, 'reward', reward,
           'data_source', data_source, 'experiment_name', experiment_name,
           'validate', json(iif(validate, 'true', 'false')))
         from rows where row = ?",
    )?;
    let text: String = statement.query_row([row.0], |row| row.get(0))?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// What lines are packed into, by the ending of the file's name.
fn packing(place: &str) -> Result<Option<RolloutFile>> {
    match catalog::ending(place) {
        Some("jsonl" | "ndjson") => Ok(None),
        Some("parquet") => Ok(Some(RolloutFile::new()?)),
        _ => bail!("what is to be written is not clear; end it in .jsonl or .parquet: {place}"),
    }
}

/// The file under construction. It appears when it is complete.
struct Out {
    upload: Box<dyn Upload>,
    /// Lines that are not written yet.
    chunk: BytesMut,
    /// Lines are packed into it, if that is what is written.
    parquet: Option<RolloutFile>,
}

impl Out {
    fn begin(place: &str, parquet: Option<RolloutFile>) -> Result<Self> {
        let upload = Places::new(Roots::Anywhere).create(place)?;
        Ok(Self { upload, chunk: BytesMut::with_capacity(CHUNK_BYTES), parquet })
    }

    fn push(&mut self, line: &[u8]) -> Result<()> {
        self.chunk.extend_from_slice(line);
        self.chunk.extend_from_slice(b"\n");
        if self.chunk.len() >= CHUNK_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let lines = self.chunk.split().freeze();
        let bytes = match &mut self.parquet {
            Some(file) => file.write(&lines)?.into(),
            None => lines,
        };
        Ok(self.upload.write(bytes)?)
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        if let Some(file) = self.parquet {
            self.upload.write(file.finish()?.into())?;
        }
        self.upload.finish()?;
        Ok(())
    }
}
