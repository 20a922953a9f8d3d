//! Reads a file of prompts. A line that is none is named, and does not stop the others.

use anyhow::{Result, bail};
use rollyard_engine::episode::Data;
use rollyard_engine::workflow::Opening;
use std::path::Path;
use std::sync::Arc;

use crate::lines::Lines;

#[derive(Debug)]
pub(super) struct Prompt {
    /// Its line, counted from 0: the same every time, whatever else is in the file.
    pub(super) number: u64,
    pub(super) data: Arc<Data>,
}

#[derive(Debug)]
pub(super) struct Prompts {
    pub(super) good: Vec<Prompt>,
    /// Lines, counted from 1, and what is wrong with them.
    pub(super) bad: Vec<(u64, String)>,
}

impl Prompts {
    /// `for_built_in` says that a prompt must have what the built-in workflows need.
    pub(super) fn read(path: &Path, limit: Option<usize>, for_built_in: bool) -> Result<Self> {
        let mut lines = Lines::open(path, "reading prompts")?;
        let mut prompts = Self { good: Vec::new(), bad: Vec::new() };
        while let Some((number, line)) = lines.next()?
            && limit.is_none_or(|limit| prompts.good.len() < limit)
        {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match parse(line, for_built_in) {
                Ok(data) => prompts.good.push(Prompt { number: number - 1, data: Arc::new(data) }),
                Err(reason) => prompts.bad.push((number, reason)),
            }
        }
        drop(lines);
        match (prompts.good.is_empty(), prompts.bad.first()) {
            (true, Some((line, reason))) => {
                bail!("no line is a prompt; line {line}: {reason}: {}", path.display())
            }
            (true, None) => bail!("there are no prompts in the file: {}", path.display()),
            (false, _) => Ok(prompts),
        }
    }
}

fn parse(line: &[u8], for_built_in: bool) -> Result<Data, String> {
    let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let data = Data::parse(text).map_err(|error| error.to_string())?;
    if for_built_in {
        Opening::read(&data, None).map_err(|error| error.to_string())?;
    }
    // What was read on the way is read again when its turn comes: until then only the text is kept.
    Ok(Data::parse(text).unwrap_or(data))
}
