//! `rollyard tokens`: a conversation as the trainer sees it, token by token.
//!
//! Shows one or a few rollouts of a file in full, with the tokens that are trained on in colour, and counts
//! the whole file: tokens, trained tokens, rollouts that cannot be masked, and where sampled tokens are not
//! those that the text would give.

mod line;
mod show;
mod tally;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use rollyard_core::tokens::mask::MaskRules;
use rollyard_core::tokens::template::CivilTime;
use rollyard_core::tokens::{Masks, Tokenizer};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::terminal::ProgressLine;
use line::Line;
use show::Painter;
use tally::Tally;

/// Show conversations as tokens, with those that are trained on in colour
#[derive(Debug, Args)]
#[command(after_help = "\
A line of FILE is a rollout: an object with `messages`, and `tools` where it had any. Where it carries the
tokens that were sampled (`tokens` with `response_length` or `loss_mask`, `prompt_tokens` and `response_tokens`,
or `turns`), those are shown, and compared with the tokens that its text would give.
Lines that cannot be read or masked are counted, and named with their reason.

Example:
    rollyard tokens Qwen2.5-7B-Instruct rollouts.jsonl --mask qwen --row 3")]
pub(crate) struct Arguments {
    /// The model's folder, with tokenizer.json and tokenizer_config.json
    #[arg(value_name = "MODEL_DIR")]
    model: PathBuf,
    /// Rollouts or conversations, one JSON object a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How the trained tokens are found: auto, qwen, qwen3, qwen3_5 or distill_qwen
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    mask: String,
    /// A line to show in full, counted from 1; can be given again, 0 shows none
    #[arg(long = "row", value_name = "N", default_value = "1")]
    rows: Vec<u64>,
    /// Whether trained tokens are coloured or put in ⟦brackets⟧ [default: colours on a terminal]
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, hide_default_value = true)]
    color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let rule = MaskRules::default().get(&arguments.mask)?;
    let now = now();
    let masks = Masks { tokenizer: Arc::new(load(&arguments.model)?), rule };
    let mut painter = Painter::new(io::stdout().lock(), arguments.color.is_on());
    let mut tally = Tally::default();
    let mut shown = 0;
    for_each_line(&arguments.file, |number, text| {
        let outcome = Line::read(text, &masks, now);
        let is_wanted = arguments.rows.contains(&number);
        tally.count(number, &outcome);
        if is_wanted {
            shown += 1;
            painter.show(number, &outcome, &masks)?;
        }
        Ok(())
    })?;
    if tally.lines() == 0 {
        bail!("there are no rollouts in it: {}", arguments.file.display());
    }
    painter.finish(&tally, &masks, &arguments.mask)?;
    let wanted: Vec<u64> = arguments.rows.iter().copied().filter(|row| *row > 0).collect();
    if shown < wanted.len() {
        bail!("rows {wanted:?} were asked for, but the file has {} lines", tally.lines());
    }
    Ok(())
}

fn load(dir: &Path) -> Result<Tokenizer> {
    let folder = rollyard_store::model_folder::read(dir)?;
    Tokenizer::new(&folder.tokenizer, folder.files()).with_context(|| format!("in {}", dir.display()))
}

/// The local time, for templates that print it.
fn now() -> CivilTime {
    let now = jiff::Zoned::now();
    let small = |number: i8| number.unsigned_abs();
    CivilTime {
        year: i32::from(now.year()),
        month: small(now.month()),
        day: small(now.day()),
        hour: small(now.hour()),
        minute: small(now.minute()),
        second: small(now.second()),
        microsecond: u32::from(now.microsecond().unsigned_abs()),
    }
}

/// Hands every line that is not blank over with its number.
fn for_each_line(path: &Path, mut visit: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
    let cannot = |error: io::Error| anyhow!("cannot read: {error}: {}", path.display());
    let file = File::open(path).map_err(cannot)?;
    let total = file.metadata().map_err(cannot)?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut progress = ProgressLine::new();
    let (mut line, mut number, mut done) = (Vec::new(), 0_u64, 0_u64);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(cannot)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        done += read as u64;
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            visit(number, text.trim())?;
        }
        progress.show("reading", done, total);
    }
}
