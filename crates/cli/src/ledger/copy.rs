//! `rollyard ledger copy`: takes runs from a data folder to NATS, or back, and proves that they are the same.

use anyhow::{Context, Result, bail};
use clap::Args;
use rollyard_core::ids::RunName;
use rollyard_store::log::copy::{
    Copied, CopyError, DataFolder, Doing, Progress, StreamSource, StreamTarget, copy,
};
use rollyard_store::log::jetstream::Connection;
use rollyard_store::log::{LogError, copy};
use std::io::{self, Write};
use std::path::Path;

use super::check::table;
use super::place::{LogArguments, Place};
use crate::terminal::{ProgressLine, count, many, size};

/// Copy runs from a data folder to NATS JetStream, or back, and verify every byte
#[derive(Debug, Args)]
#[command(after_help = "\
No server may use either place meanwhile. Records keep their numbers; rollouts that nothing needs any more stay \
behind. The source is left as it is. A copy that is interrupted leaves nothing that a server would take for a run; \
begin it again. Ends with code 1 if anything differs.

Example:
    rollyard ledger copy --from ./yard-data --to nats://127.0.0.1:4222 --run default
    rollyard ledger copy --from nats://127.0.0.1:4222 --to ./back")]
pub(super) struct Arguments {
    /// A data folder, or nats://host:4222 (several with commas between them)
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// The same; a folder that is not there is made
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Copies of each run that the NATS servers are to keep, 1 to 5
    #[arg(long, value_name = "N", default_value_t = 1, env = "ROLLYARD_LOG_REPLICAS", hide_env = true)]
    log_replicas: usize,
}

pub(super) fn run(arguments: &Arguments, log: &LogArguments, run: Option<&str>) -> Result<()> {
    let (from, to) = (Place::parse(&arguments.from)?, Place::parse(&arguments.to)?);
    let run = run.map(RunName::try_from).transpose()?;
    refuse_same(&from, &to, log)?;
    let from = From::open(&from, log)?;
    let runs = match run {
        Some(run) => vec![run],
        None => from.runs()?,
    };
    if runs.is_empty() {
        bail!("there is no run: {}", arguments_told(&arguments.from));
    }
    let to = To::open(&to, log, arguments.log_replicas)?;
    // All are looked at before the first is copied: it may take long until the last.
    for run in &runs {
        from.check(run)?;
        to.check(run)?;
    }
    for run in &runs {
        let copied = one(run, &from, &to).with_context(|| format!("run {run} was not copied"))?;
        tell(run, &copied)?;
    }
    Ok(())
}

fn arguments_told(place: &str) -> String {
    Place::parse(place).map_or_else(|_| place.to_owned(), |place| place.told())
}

fn refuse_same(from: &Place, to: &Place, log: &LogArguments) -> Result<()> {
    let is_same = match (from, to) {
        (Place::Folder(from), Place::Folder(to)) => {
            from == to || from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to))
        }
        (Place::Servers(from), Place::Servers(to)) => from == to,
        _ => false,
    };
    if is_same {
        bail!("--from and --to are the same place: {}", to.told());
    }
    if matches!((from, to), (Place::Servers(_), Place::Servers(_))) && log.has_bucket() {
        bail!(
            "both servers would keep their rollouts under the same names in the bucket; copy to a data folder first, \
             and from there to {}",
            to.told()
        );
    }
    Ok(())
}

/// Where runs come from.
enum From {
    Folder(DataFolder),
    Servers(Connection),
}

/// Where they go.
enum To {
    Folder(DataFolder),
    Servers(Connection),
}

impl From {
    fn open(place: &Place, log: &LogArguments) -> Result<Self> {
        match place {
            Place::Folder(path) if !path.join("runs").is_dir() => {
                bail!("there are no runs; this is not the data folder of a server: {}", path.display())
            }
            Place::Folder(path) => Ok(Self::Folder(in_peace(path, DataFolder::open)?)),
            Place::Servers(servers) => Ok(Self::Servers(log.connect(servers, 1)?)),
        }
    }

    fn runs(&self) -> Result<Vec<RunName>> {
        Ok(match self {
            Self::Folder(folder) => folder.runs()?,
            Self::Servers(connection) => connection.runs()?,
        })
    }

    fn check(&self, run: &RunName) -> Result<()> {
        let known = || -> Result<String> {
            let names: Vec<String> = self.runs()?.iter().map(RunName::to_string).collect();
            Ok(format!("known are: {}", names.join(", ")))
        };
        let found = match self {
            Self::Folder(folder) => folder.source(run).map(drop),
            Self::Servers(connection) => StreamSource::open(connection, run).map(drop),
        };
        match found {
            Err(error @ CopyError::NoRun { .. }) => Err(error).context(known()?),
            other => Ok(other?),
        }
    }
}

impl To {
    fn open(place: &Place, log: &LogArguments, replicas: usize) -> Result<Self> {
        Ok(match place {
            Place::Folder(path) => Self::Folder(in_peace(path, DataFolder::open_or_make)?),
            Place::Servers(servers) => Self::Servers(log.connect(servers, replicas)?),
        })
    }

    fn check(&self, run: &RunName) -> Result<()> {
        use copy::Target;
        let checked = match self {
            Self::Folder(folder) => folder.target(run).check(),
            Self::Servers(connection) => StreamTarget::new(connection, run).check(),
        };
        Ok(checked?)
    }
}

/// A folder without a server.
fn in_peace(path: &Path, open: impl Fn(&Path) -> Result<DataFolder, LogError>) -> Result<DataFolder> {
    open(path).map_err(|error| match error {
        LogError::Locked { .. } => {
            anyhow::Error::new(error).context("a server uses the folder; stop it first")
        }
        error => error.into(),
    })
}

fn one(run: &RunName, from: &From, to: &To) -> Result<Copied, CopyError> {
    match from {
        From::Folder(folder) => into(run, &folder.source(run)?, to),
        From::Servers(connection) => into(run, &StreamSource::open(connection, run)?, to),
    }
}

fn into(run: &RunName, source: &impl copy::Source, to: &To) -> Result<Copied, CopyError> {
    let mut line = ProgressLine::new();
    let mut watch = |progress: Progress| {
        if line.is_due() {
            line.write_over(&in_words(run, &progress));
        }
    };
    match to {
        To::Folder(folder) => copy(run, source, &mut folder.target(run), &mut watch),
        To::Servers(connection) => copy(run, source, &mut StreamTarget::new(connection, run), &mut watch),
    }
}

fn in_words(run: &RunName, progress: &Progress) -> String {
    let doing = match progress.doing {
        Doing::Reading => "reading",
        Doing::Copying => "copying",
        Doing::Verifying => "verifying",
    };
    let of = |total: u64| if total > 0 { format!(" of {}", count(total)) } else { String::new() };
    let records =
        format!("{doing} run {run}: record {}{}", count(progress.records), of(progress.records_total));
    match progress.payload_bytes_total {
        0 => records,
        total => format!("{records}, {} of {} of rollouts", size(progress.payload_bytes), size(total)),
    }
}

fn tell(run: &RunName, copied: &Copied) -> Result<()> {
    let mut out = io::stdout();
    let bytes = copied.body_bytes + copied.payload_bytes;
    let secs = copied.copying.as_secs_f64().max(1e-3);
    write!(out, "{}", table(&copied.books))?;
    writeln!(
        out,
        "run {run}: {} records ({}) and {} ({}) copied in {secs:.1} s, {}/s",
        count(copied.records),
        size(copied.body_bytes),
        many(copied.payloads as usize, "rollout"),
        size(copied.payload_bytes),
        size((bytes as f64 / secs) as u64),
    )?;
    let whole = copied.whole.as_secs_f64();
    writeln!(
        out,
        "run {run}: read back and compared, every byte the same, every rollout accounted for ({whole:.1} s in all)"
    )?;
    Ok(())
}
