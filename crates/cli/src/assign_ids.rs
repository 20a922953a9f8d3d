//! `rollyard assign-ids`: gives every line of a data set an `instance_id`.
//!
//! Two passes: the first reads every line and notes which ids are taken, so that a bad line changes nothing
//! and an id further down is never given out twice; the second writes a new file, which takes the place of
//! the old one in a single step. All other bytes stay as they are.

mod line;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::lines::Lines;
use crate::say;
use crate::terminal::count;
use line::Line;

/// Give every line of a JSONL file without an `instance_id` the next free one
#[derive(Debug, Args)]
#[command(after_help = "\
The ids are TASK_0, TASK_1 and so on, without those that the file has already. Lines that have an id keep it.
A line that is not a JSON object ends the program with its number, and nothing is changed.

Example:
    rollyard assign-ids --input dapo-math-17k.jsonl --task-type math")]
pub(crate) struct Arguments {
    /// The data set, one JSON object a line
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where to put the result [default: in place of the input]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What the ids begin with
    #[arg(long, value_name = "NAME", default_value = "math")]
    task_type: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { input, output, task_type } = arguments;
    let mut ids = Ids::new(task_type);
    let (mut kept, mut missing) = (0, 0);
    for_each_line(input, "reading", |line| {
        match Line::parse(line)? {
            Line::Blank => {}
            Line::Has(id) => {
                ids.take(&id);
                kept += 1;
            }
            Line::Lacks(_) => missing += 1,
        }
        Ok(())
    })?;
    let output = output.as_ref().unwrap_or(input);
    if missing > 0 || output != input {
        replace(output, |file| {
            for_each_line(input, "writing", |line| {
                match Line::parse(line)? {
                    Line::Lacks(gap) => gap.fill(line, &ids.next(), file)?,
                    Line::Blank | Line::Has(_) => file.write_all(line)?,
                }
                Ok(())
            })
        })?;
    }
    say(&format!("gave {} lines an id, {} had one: {}", count(missing), count(kept), output.display()));
    Ok(())
}

/// Hands every line over with its ending; an error gets the number of its line.
fn for_each_line(path: &Path, doing: &'static str, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut lines = Lines::open(path, doing)?;
    while let Some((number, line)) = lines.next()? {
        visit(line).with_context(|| format!("line {number} of {}", path.display()))?;
    }
    Ok(())
}

/// Writes a file beside `path` and puts it in its place once it is complete.
fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
    let cannot = |error: io::Error| anyhow!("cannot write: {error}: {}", path.display());
    // A link stays a link: what it points to is replaced.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".assign-ids-").permissions(PermissionsExt::from_mode(0o666));
    let temporary = builder.tempfile_in(dir).map_err(cannot)?;
    if let Ok(replaced) = std::fs::metadata(&target) {
        temporary.as_file().set_permissions(replaced.permissions()).map_err(cannot)?;
    }
    let mut file = BufWriter::with_capacity(1 << 20, temporary.as_file());
    write(&mut file)?;
    file.flush().map_err(cannot)?;
    drop(file);
    temporary.as_file().sync_all().map_err(cannot)?;
    temporary.persist(&target).map_err(|error| cannot(error.error))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(cannot)
}

/// The ids of one task: which are taken, and which is next.
struct Ids {
    prefix: String,
    taken: BTreeSet<u64>,
    next: u64,
}

impl Ids {
    fn new(task_type: &str) -> Self {
        Self { prefix: format!("{task_type}_"), taken: BTreeSet::new(), next: 0 }
    }

    fn take(&mut self, id: &str) {
        let number = id.strip_prefix(&self.prefix).and_then(|digits| digits.parse::<u64>().ok());
        // Only ids in the shape we give out can be in our way: task_07 is not task_7.
        if let Some(number) = number.filter(|number| format!("{}{number}", self.prefix) == id) {
            self.taken.insert(number);
        }
    }

    fn next(&mut self) -> String {
        while self.taken.contains(&self.next) {
            self.next += 1;
        }
        self.next += 1;
        format!("{}{}", self.prefix, self.next - 1)
    }
}
