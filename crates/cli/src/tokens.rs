//! `rollyard tokens`: a conversation as the trainer sees it, token by token.
//!
//! Shows one or a few rollouts of a file in full, with the tokens that are trained on in colour, and counts
//! the whole file: tokens, trained tokens, rollouts that cannot be masked, and where sampled tokens are not
//! those that the text would give.

mod line;
mod paint;
mod show;
mod tally;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rollyard_core::tokens::Masks;
use rollyard_core::tokens::mask::MaskRules;
use rollyard_engine::workflow::local_time;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use crate::lines::Lines;
use crate::model;
use line::Reader;
use paint::Paint;
use show::Painter;
use tally::Tally;

/// Lines that are read at once by all threads come to about this.
const BATCH_BYTES: usize = 4 << 20;

/// Show conversations as tokens, with those that are trained on in colour
#[derive(Debug, Args)]
#[command(after_help = "\
A line of FILE is a rollout: an object with `messages`, and `tools` where it had any. Where it carries the
tokens that were sampled (`tokens` with `response_length` or `loss_mask`, `prompt_tokens` and `response_tokens`,
or `turns`), those are shown, and compared with the tokens that its text would give.
Lines that cannot be read or masked are counted, and named with their reason.
For a long conversation: rollyard tokens MODEL_DIR FILE --color always | less -R

Example:
    rollyard tokens Qwen2.5-7B-Instruct rollouts.jsonl --mask qwen --row 3")]
pub(crate) struct Arguments {
    /// The model's folder, with tokenizer.json and tokenizer_config.json
    #[arg(value_name = "MODEL_DIR")]
    model: PathBuf,
    /// Rollouts or conversations, one JSON object a line
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How the trained tokens are found: auto, distill_qwen, qwen, qwen3 or qwen3_5
    #[arg(long, value_name = "TYPE", default_value = "auto", value_parser = known_mask)]
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
    let reader = Reader {
        masks: Masks { tokenizer: Arc::new(model::load(&arguments.model)?), rule },
        now: local_time(),
    };
    let mut lines = Lines::open(&arguments.file, "reading")?;
    let mut painter = Painter::new(io::stdout().lock(), Paint { in_color: arguments.color.is_on() });
    let mut tally = Tally::default();
    let mut wanted: BTreeSet<u64> = arguments.rows.iter().copied().filter(|row| *row > 0).collect();
    loop {
        let texts = next_texts(&mut lines)?;
        if texts.is_empty() {
            break;
        }
        for ((row, _), outcome) in texts.iter().zip(reader.read_all(&texts, &arguments.rows)) {
            tally.count(*row, &outcome);
            if wanted.remove(row) {
                lines.wipe_progress();
                painter.show(*row, &outcome, &reader.masks)?;
            }
        }
    }
    drop(lines);
    if tally.rollouts() == 0 {
        bail!("there are no rollouts in the file: {}", arguments.file.display());
    }
    painter.finish(&tally, &reader.masks, &arguments.mask)?;
    check(&tally, &wanted).with_context(|| format!("in {}", arguments.file.display()))
}

/// Whether there was something to show, and all of what was asked for.
fn check(tally: &Tally, missing: &BTreeSet<u64>) -> Result<()> {
    if let (true, Some((row, reason))) = (tally.failed == tally.rollouts(), tally.reasons.first()) {
        bail!("no rollout could be read or masked; row {row}: {reason}");
    }
    match missing.first() {
        None => Ok(()),
        Some(row) if *row < tally.last_row => bail!("row {row} is a blank line"),
        Some(row) => bail!("there is no row {row}; the last is {}", tally.last_row),
    }
}

/// As many lines as are read at once, without the blank ones; none at the end.
fn next_texts(lines: &mut Lines) -> Result<Vec<(u64, String)>> {
    let (mut texts, mut size_bytes) = (Vec::new(), 0);
    while size_bytes < BATCH_BYTES
        && let Some((row, line)) = lines.next()?
    {
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        if !text.is_empty() {
            size_bytes += text.len();
            texts.push((row, text));
        }
    }
    Ok(texts)
}

fn known_mask(name: &str) -> Result<String, String> {
    let known = MaskRules::default().get(name);
    known.map(|_| name.to_owned()).map_err(|error| error.to_string())
}
