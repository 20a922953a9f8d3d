//! The problems of a task: a JSONL file, read once.
//!
//! The file stays in memory as it is on disk, with the place and the id of each line beside it; what a line says
//! is read when its turn comes. Whatever is wrong with a line is found before the first rollout is made.

use rollyard_core::wire::item::NAME_BYTES_MAX;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::payload::instance_id;
use crate::episode::Data;
use crate::generate::Message;
use crate::reward::TRUTH_FIELDS;
use crate::workflow::Opening;

#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("the input file cannot be read ({source}): {}", .path.display())]
    Unreadable { source: io::Error, path: PathBuf },
    #[error("the input file has no line: {}", .path.display())]
    Empty { path: PathBuf },
    #[error("line {line} {reason}: {}", .path.display())]
    BadLine { line: usize, reason: String, path: PathBuf },
    #[error(
        "line {line} has no instance_id; `rollyard assign-ids --input {path}` gives one to every line that lacks it",
        path = .path.display()
    )]
    NoId { line: usize, path: PathBuf },
    #[error(
        "lines {first} and {second} have the same instance_id {id:?}, which names one problem: {}", .path.display()
    )]
    Duplicate { id: String, first: usize, second: usize, path: PathBuf },
}

/// The uid of a rollout has the id in it, and is a name as well.
const ID_BYTES_MAX: usize = NAME_BYTES_MAX - ":4294967295:4294967295".len();

/// Every problem of the file.
#[derive(Debug)]
pub(super) struct Input {
    path: PathBuf,
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    id: Box<str>,
    /// Counted from 1.
    number: usize,
    range: Range<usize>,
}

/// One problem, read.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: Box<str>,
    /// The whole line; the reward finds the label in it.
    pub(super) data: Data,
    /// What the engine is asked.
    pub(super) prompt: Vec<Message>,
    /// The fields that are neither the id nor the prompt, as they are written.
    pub(super) rest: BTreeMap<String, Box<RawValue>>,
}

impl Input {
    pub(super) fn read(path: &Path) -> Result<Self, InputError> {
        let bytes = fs::read(path).map_err(|source| unreadable(source, path))?;
        let mut lines: Vec<Line> = Vec::new();
        let mut start = 0;
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let range = start..start + line.len();
            start = range.end + 1;
            if !line.trim_ascii().is_empty() {
                let number = index + 1;
                lines.push(Line { id: check(line, number, path)?, number, range });
            }
        }
        let input = Self { path: path.to_owned(), bytes, lines };
        input.check_names()?;
        Ok(input)
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn id(&self, index: usize) -> Option<&str> {
        self.lines.get(index).map(|line| &*line.id)
    }

    /// The problem at a place that [`Input::len`] counts.
    pub(super) fn instance(&self, index: usize) -> Option<Result<Instance, InputError>> {
        let line = self.lines.get(index)?;
        let bytes = self.bytes.get(line.range.clone()).unwrap_or_default();
        Some(Instance::read(bytes, line).map_err(|reason| bad(line.number, reason, &self.path)))
    }

    fn check_names(&self) -> Result<(), InputError> {
        if self.lines.is_empty() {
            return Err(InputError::Empty { path: self.path.clone() });
        }
        let mut seen: HashMap<&str, usize> = HashMap::with_capacity(self.lines.len());
        for line in &self.lines {
            if let Some(first) = seen.insert(&line.id, line.number) {
                let (id, second, path) = (line.id.to_string(), line.number, self.path.clone());
                return Err(InputError::Duplicate { id, first, second, path });
            }
        }
        Ok(())
    }
}

/// Looks at the first line only: whether this is a file of problems at all.
pub(super) fn check_first(path: &Path) -> Result<(), InputError> {
    let file = File::open(path).map_err(|source| unreadable(source, path))?;
    let lines = BufReader::new(file).split(b'\n').enumerate();
    for (index, line) in lines {
        let line = line.map_err(|source| unreadable(source, path))?;
        if !line.trim_ascii().is_empty() {
            return check(&line, index + 1, path).map(drop);
        }
    }
    Err(InputError::Empty { path: path.to_owned() })
}

impl Instance {
    fn read(line: &[u8], Line { id, .. }: &Line) -> Result<Self, String> {
        let (data, fields) = fields(line)?;
        let opening = Opening::read(&data, None).map_err(|error| error.to_string())?;
        let is_rest = |name: &str| !matches!(name, "instance_id" | "prompt" | "messages");
        let rest = fields.into_iter().filter(|(name, _)| is_rest(name));
        let rest = rest.map(|(name, value)| (name.into_owned(), value.to_owned())).collect();
        Ok(Self { id: id.clone(), rest, prompt: opening.messages, data })
    }
}

type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn fields(line: &[u8]) -> Result<(Data, Fields<'_>), String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("is not UTF-8 ({error})"))?;
    let data = Data::parse(text.trim()).map_err(|error| format!("is {error}"))?;
    let fields = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    Ok((data, fields))
}

/// Its id, if it is a problem that can be asked and scored.
fn check(line: &[u8], number: usize, path: &Path) -> Result<Box<str>, InputError> {
    let bad = |reason: String| bad(number, reason, path);
    let (data, fields) = fields(line).map_err(bad)?;
    let id = match fields.get("instance_id").filter(|id| id.get() != "null") {
        None => return Err(InputError::NoId { line: number, path: path.to_owned() }),
        Some(raw) => {
            let id = serde_json::from_str(raw.get()).ok().and_then(|id| instance_id(&id));
            id.ok_or_else(|| bad(format!("has instance_id {raw}, but it must be a text or a whole number")))?
        }
    };
    if id.len() > ID_BYTES_MAX {
        return Err(bad(format!(
            "has an instance_id of {} bytes, but it may have {ID_BYTES_MAX} at most",
            id.len()
        )));
    }
    let opening = Opening::read(&data, None).map_err(|error| bad(format!("cannot be asked: {error}")))?;
    if opening.messages.is_empty() {
        return Err(bad("has no prompt".into()));
    }
    let is_truth = |raw: &&RawValue| !raw.get().starts_with(['[', '{', 'n']);
    match TRUTH_FIELDS.iter().find_map(|field| Some((field, fields.get(*field)?))) {
        Some((_, raw)) if is_truth(raw) => Ok(id.into()),
        Some((field, raw)) => {
            Err(bad(format!("has {field} {raw}, but it must be a text or a number to be compared with")))
        }
        None => Err(bad("has no label to compare answers with".into())),
    }
}

fn bad(line: usize, reason: String, path: &Path) -> InputError {
    InputError::BadLine { line, reason, path: path.to_owned() }
}

fn unreadable(source: io::Error, path: &Path) -> InputError {
    InputError::Unreadable { source, path: path.to_owned() }
}
