//! `rollyard query`: SQL over the rollouts of some files.

mod output;
mod plot;

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use rollyard_store::query::{Answer, Query, QueryError};
use std::io::{self, Write};
use std::ops::ControlFlow;

use crate::catalog;

/// Ask files of rollouts anything, in SQL
#[derive(Debug, Args)]
#[command(after_help = "\
A PATH is a file, a folder, a glob or s3://bucket/prefix. What is found there is indexed once, in the cache folder
(ROLLYARD_CACHE), and asked again at once; new lines of a file are added.
The table is `rollouts`; `rollyard query --columns` lists its columns, `body`, `prompt` and `response` among them.

Example:
    rollyard query \"select step, avg(reward), count(*) from rollouts group by step order by step\" runs/

The same as a curve in the terminal, and as a file:
    rollyard query --plot \"select step, avg(reward) from rollouts group by step order by step\" runs/
    rollyard query --out curve.parquet \"select step, avg(reward) as reward from rollouts group by step\" runs/")]
pub(crate) struct Arguments {
    /// One SELECT statement
    #[arg(required_unless_present = "columns")]
    sql: Option<String>,
    /// Files, folders, globs, s3://bucket/prefix
    #[arg(value_name = "PATH", required_unless_present = "columns")]
    places: Vec<String>,
    /// How to print it [default: table on a terminal, csv elsewhere; by the ending of --out]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// A file to write to instead, here or on an object store
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Draw the second column against the first
    #[arg(long, conflicts_with_all = ["format", "out"])]
    plot: bool,
    /// List the columns of `rollouts`
    #[arg(long)]
    columns: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Csv,
    /// One object a line
    Json,
    Parquet,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Some(sql) = arguments.sql.as_deref().filter(|_| !arguments.columns) else {
        return Ok(io::stdout().write_all(output::columns().as_bytes())?);
    };
    let format = format(arguments)?;
    let query = catalog::open(&arguments.places)?;
    if arguments.plot {
        let answer = ask(&query, sql)?;
        let drawn = plot::draw(&answer, crate::terminal::width().min(100))?;
        return Ok(io::stdout().write_all(drawn.as_bytes())?);
    }
    match (&arguments.out, format) {
        (None, Format::Csv | Format::Json) => stream(&query, sql, format),
        (None, Format::Table) => {
            let answer = ask(&query, sql)?;
            Ok(io::stdout().write_all(output::table(&answer).as_bytes())?)
        }
        (None, Format::Parquet) => Ok(io::stdout().write_all(&ask(&query, sql)?.parquet()?)?),
        (Some(out), format) => {
            let answer = ask(&query, sql)?;
            let bytes = match format {
                Format::Table => output::table(&answer).into(),
                Format::Csv | Format::Json => output::lines(&answer, format == Format::Csv)?.into(),
                Format::Parquet => answer.parquet()?,
            };
            catalog::put(out, bytes)
        }
    }
}

fn format(arguments: &Arguments) -> Result<Format> {
    let by_ending = match arguments.out.as_deref().map(|out| (out, catalog::ending(out))) {
        None => None,
        Some((_, Some("csv"))) => Some(Format::Csv),
        Some((_, Some("json" | "jsonl" | "ndjson"))) => Some(Format::Json),
        Some((_, Some("parquet"))) => Some(Format::Parquet),
        Some((_, Some("txt" | "md"))) => Some(Format::Table),
        Some((out, _)) if arguments.format.is_none() => {
            bail!("what {out:?} is to be is not clear; end it in .csv, .jsonl or .parquet, or give --format")
        }
        Some(_) => None,
    };
    let usual = if io::IsTerminal::is_terminal(&io::stdout()) { Format::Table } else { Format::Csv };
    Ok(arguments.format.or(by_ending).unwrap_or(usual))
}

/// Rows as they come, so that the first are there while the last are looked for.
fn stream(query: &Query, sql: &str, format: Format) -> Result<()> {
    let is_csv = format == Format::Csv;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut failed, mut is_headed) = (Ok(()), !is_csv);
    let names = query.sql(sql, &mut |names, row| {
        if !std::mem::replace(&mut is_headed, true) {
            failed = output::csv_line(&mut out, names.iter().map(String::as_str));
        }
        if failed.is_ok() {
            failed = output::line(&mut out, names, row, is_csv);
        }
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    failed?;
    let names = names.map_err(|error| explain(error, sql))?;
    if !is_headed {
        output::csv_line(&mut out, names.iter().map(String::as_str))?;
    }
    Ok(out.flush()?)
}

/// All rows at once.
fn ask(query: &Query, sql: &str) -> Result<Answer> {
    let mut rows = Vec::new();
    let names = query.sql(sql, &mut |_, row| {
        rows.push(row.to_vec());
        ControlFlow::Continue(())
    });
    Ok(Answer { names: names.map_err(|error| explain(error, sql))?, rows })
}

/// A mistake is shown where it stands.
pub(crate) fn explain(error: QueryError, text: &str) -> anyhow::Error {
    let QueryError::Mistake(mistake) = error else { return anyhow!(error) };
    let before = text.get(..mistake.at.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let indent = before.get(line_start..).unwrap_or_default().chars().count();
    let marked = text.get(mistake.at.clone()).unwrap_or_default().chars().count().max(1);
    let marks = format!("{}{}", " ".repeat(indent), "^".repeat(marked));
    let known = match mistake.expected.as_slice() {
        [] => String::new(),
        expected => format!("\nThere could be: {}", expected.join(", ")),
    };
    anyhow!("{mistake}\n    {line}\n    {marks}{known}")
}
