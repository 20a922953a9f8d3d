//! `rollyard grep`: text and regular expressions in what was said, by who said it.

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rollyard_store::query::{Found, Hit, Pattern, Query, Scanned};
use rollyard_store::records::Channel;
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;

use crate::catalog;
use crate::query::explain;
use crate::terminal::{ProgressLine, count, size};

/// Search what was said in rollouts, by who said it
#[derive(Debug, Args)]
#[command(after_help = "\
A line is one rollout: its file and line, step and reward, who said it, and the text around the first hit.
Like grep, it ends with code 1 if nothing was found.

Example:
    rollyard grep 'wait, (actually|no)' runs/ --channel reasoning --filter 'reward > 0.5'

How many rollouts of each step cheat the tests, as JSON for other programs:
    rollyard grep --fixed-strings 'sys.exit(0)' s3://bucket/runs/exp7/ --channel tool-call --json")]
pub(crate) struct Arguments {
    /// A regular expression
    pattern: String,
    /// Files, folders, globs, s3://bucket/prefix
    #[arg(value_name = "PATH", required = true)]
    places: Vec<String>,
    /// The pattern is plain text
    #[arg(short = 'F', long)]
    fixed_strings: bool,
    /// Capitals do not matter
    #[arg(short, long)]
    ignore_case: bool,
    /// Only what was said here; may be repeated
    #[arg(long, value_parser = channels(), value_name = "WHO")]
    channel: Vec<Channel>,
    /// Only rollouts that this lets through, as in 'step > 100 and data_source contains "code"'
    #[arg(long, value_name = "FILTER", default_value = "")]
    filter: String,
    /// Only say how many rollouts have it
    #[arg(short, long)]
    count: bool,
    /// Stop after so many rollouts
    #[arg(short, long, value_name = "N")]
    max_count: Option<u64>,
    /// One object a line
    #[arg(long, conflicts_with = "count")]
    json: bool,
}

/// As flags are written: `tool-call`.
fn channels() -> impl TypedValueParser<Value = Channel> {
    PossibleValuesParser::new(Channel::ALL.map(|channel| channel.name().replace('_', "-")))
        .try_map(|name| Channel::named(&name.replace('-', "_")).ok_or("no such channel"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let query = catalog::open(&arguments.places)?;
    let pattern = Pattern {
        text: arguments.pattern.clone(),
        is_regex: !arguments.fixed_strings && has_meaning(&arguments.pattern),
        ignore_case: arguments.ignore_case,
        channels: arguments.channel.clone(),
    };
    let found = Printer::new(&query, arguments)?.search(&query, &pattern)?;
    if arguments.count {
        writeln!(io::stdout(), "{found}")?;
    }
    if found == 0 {
        bail!("no rollout has it: {:?}", arguments.pattern);
    }
    Ok(())
}

/// Whether an expression says more than its letters; plain text is found several times faster.
fn has_meaning(pattern: &str) -> bool {
    pattern.contains(|c: char| r"\.+*?()|[]{}^$#&-~".contains(c))
}

struct Printer<'a> {
    arguments: &'a Arguments,
    connection: rusqlite::Connection,
    progress: ProgressLine,
    out: io::StdoutLock<'static>,
    is_terminal: bool,
    found: u64,
}

impl<'a> Printer<'a> {
    fn new(query: &Query, arguments: &'a Arguments) -> Result<Self> {
        Ok(Self {
            arguments,
            connection: query.catalog().connect()?,
            progress: ProgressLine::new(),
            out: io::stdout().lock(),
            is_terminal: io::stdout().is_terminal(),
            found: 0,
        })
    }

    /// How many rollouts have it.
    fn search(mut self, query: &Query, pattern: &Pattern) -> Result<u64> {
        let mut failed = Ok(());
        let searched = query.search(&self.arguments.filter, std::slice::from_ref(pattern), &mut |found| {
            failed = self.take(found);
            let enough = self.arguments.max_count.is_some_and(|max| self.found >= max);
            if failed.is_err() || enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        failed?;
        let text = if self.arguments.filter.is_empty() { &pattern.text } else { &self.arguments.filter };
        searched.map_err(|error| explain(error, text))?;
        Ok(self.found)
    }

    fn take(&mut self, found: Found) -> Result<()> {
        match found {
            Found::Progress(scanned) => {
                if self.progress.is_due() {
                    self.progress.write_over(&told(&scanned));
                }
                Ok(())
            }
            Found::Hit(hit) => {
                self.found += 1;
                if self.arguments.count { Ok(()) } else { self.print(&hit) }
            }
        }
    }

    fn print(&mut self, hit: &Hit) -> Result<()> {
        self.progress.wipe();
        let mut row = self
            .connection
            .prepare_cached("select id, source_file, line, step, reward from rollouts where row = ?")?;
        let told = row.query_row([hit.row.0], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, Option<i64>>(3)?,
                row.get::<_, Option<f64>>(4)?,
            ))
        });
        let (id, file, line, step, reward) = told.context("a row that was found is gone")?;
        if self.arguments.json {
            let object = json!({
                "id": id, "file": file, "line": line, "step": step, "reward": reward, "message": hit.message,
                "channel": hit.channel.name(), "start": hit.range.start, "end": hit.range.end,
                "hits": hit.count_in_row, "snippet": hit.snippet,
            });
            return Ok(writeln!(self.out, "{object}")?);
        }
        let reward = reward.map_or("none".to_owned(), |reward| format!("{reward:.3}"));
        let step = step.unwrap_or_default();
        let text = self.snippet(hit);
        let who = hit.channel.name();
        Ok(writeln!(self.out, "{file}:{line}: step {step}, reward {reward}, {who}: {text}")?)
    }

    /// On one line; the hit in bold where somebody looks.
    fn snippet(&self, hit: &Hit) -> String {
        let plain = |text: Option<&str>| {
            text.unwrap_or_default().chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
        };
        let (start, end) = (hit.in_snippet.start, hit.in_snippet.end);
        let parts = [hit.snippet.get(..start), hit.snippet.get(start..end), hit.snippet.get(end..)];
        let [before, at, after] = parts.map(plain);
        if self.is_terminal { format!("{before}\x1b[1;31m{at}\x1b[0m{after}") } else { before + &at + &after }
    }
}

fn told(scanned: &Scanned) -> String {
    let share = (scanned.bytes_done * 100).checked_div(scanned.bytes).unwrap_or(100);
    format!("searching: {share}% of {}, {} found", size(scanned.bytes), count(scanned.hits))
}
