//! Conversations and counts on the terminal.

use anyhow::Result;
use rollyard_core::tokens::Masks;
use std::io::Write;

use super::line::{Compared, Line, Sampled, Source, Turn};
use super::paint::{Paint, visible};
use super::tally::Tally;
use crate::terminal::{count, many};

/// Regions of drift that are shown; the rest is only counted.
const REGIONS: usize = 5;

/// Tokens of a region that are shown.
const REGION_TOKENS: usize = 8;

pub(super) struct Painter<W> {
    out: W,
    paint: Paint,
}

impl<W: Write> Painter<W> {
    pub(super) fn new(out: W, paint: Paint) -> Self {
        Self { out, paint }
    }

    /// One rollout in full.
    pub(super) fn show(&mut self, row: u64, outcome: &Result<Line, String>, masks: &Masks) -> Result<()> {
        match outcome {
            Ok(line) => self.show_line(row, line, masks)?,
            Err(reason) => {
                writeln!(self.out, "{}", self.paint.bold(&format!("row {row}")))?;
                writeln!(self.out, "{}", self.paint.alarm(&visible(reason)))?;
            }
        }
        Ok(writeln!(self.out)?)
    }

    fn show_line(&mut self, row: u64, line: &Line, masks: &Masks) -> Result<()> {
        let name = line.name.as_ref().map(|name| format!(" · {}", visible(name))).unwrap_or_default();
        let source = match line.source {
            Source::Text => "tokens made from its text",
            Source::Sampled(_) => "sampled tokens",
        };
        writeln!(self.out, "{}", self.paint.bold(&format!("row {row}{name} · {source}")))?;
        for turn in &line.turns {
            self.show_heading(line, turn)?;
            self.show_tokens(line, turn, masks)?;
        }
        let (tokens, trained) = (many(line.ids.len(), "token"), count(line.trained() as u64));
        let response = count(rollyard_core::tokens::mask::response_length(&line.mask) as u64);
        let total = format!("{tokens}, {trained} trained, response of {response}");
        writeln!(self.out, "{}", self.paint.bold(&total))?;
        if let Source::Sampled(sampled) = &line.source {
            self.show_sampled(line, sampled, masks)?;
        }
        Ok(())
    }

    fn show_heading(&mut self, line: &Line, turn: &Turn) -> Result<()> {
        let messages = match turn.messages.len() {
            0 => String::new(),
            1 => format!(" · message {}", turn.messages.start),
            _ => format!(" · messages {}–{}", turn.messages.start, turn.messages.end - 1),
        };
        let trained = match line.trained_in(&turn.tokens) {
            0 => String::new(),
            trained => format!(", {} trained", count(trained as u64)),
        };
        let facts = format!("{messages} · {}{trained}", many(turn.tokens.len(), "token"));
        let called = self.paint.bold(&visible(&turn.called));
        Ok(writeln!(self.out, "{}{called}{}", self.paint.dim("── "), self.paint.dim(&facts))?)
    }

    /// The text of a turn's tokens, trained ones marked.
    fn show_tokens(&mut self, line: &Line, turn: &Turn, masks: &Masks) -> Result<()> {
        let mut ends_line = true;
        for (span, trained) in line.mask.spans() {
            let (from, to) = (span.start.max(turn.tokens.start), span.end.min(turn.tokens.end));
            if from >= to {
                continue;
            }
            let text = masks.tokenizer.encoder().decode(line.ids.get(from..to).unwrap_or_default(), false)?;
            let text = visible(&text);
            let text = if trained { self.paint.trained(&text) } else { text };
            ends_line = text.ends_with('\n');
            write!(self.out, "{text}")?;
        }
        if !ends_line {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn show_sampled(&mut self, line: &Line, sampled: &Sampled, masks: &Masks) -> Result<()> {
        if sampled.unknown > 0 {
            writeln!(self.out, "{}", self.paint.alarm(&unknown(sampled.unknown)))?;
        }
        match &sampled.compared {
            Ok(compared) => self.show_drift(line, compared, masks),
            Err(reason) => Ok(writeln!(self.out, "its text cannot be compared: {}", visible(reason))?),
        }
    }

    fn show_drift(&mut self, line: &Line, compared: &Compared, masks: &Masks) -> Result<()> {
        let Compared { drift, rendered } = compared;
        if drift.is_none() {
            return Ok(writeln!(self.out, "no drift: its text gives the same tokens")?);
        }
        let said = format!(
            "drift: {} that its text would not give, in {}",
            many(drift.sampled_tokens(), "token"),
            many(drift.regions.len(), "place"),
        );
        writeln!(self.out, "{}", self.paint.alarm(&said))?;
        for region in drift.regions.iter().take(REGIONS) {
            let sampled = line.ids.get(region.sampled.clone()).unwrap_or_default();
            let given = rendered.get(region.rendered.clone()).unwrap_or_default();
            let at = count(region.sampled.start as u64);
            writeln!(self.out, "    at token {at}: sampled {}", excerpt(sampled, masks))?;
            writeln!(self.out, "    {:1$}the text gives {2}", "", at.len() + 11, excerpt(given, masks))?;
        }
        if let Some(more) = drift.regions.len().checked_sub(REGIONS).filter(|more| *more > 0) {
            writeln!(self.out, "    and in {}", many(more, "more place"))?;
        }
        Ok(())
    }

    /// What the file comes to.
    pub(super) fn finish(&mut self, tally: &Tally, masks: &Masks, mask: &str) -> Result<()> {
        let rollouts = many(usize::try_from(tally.rollouts()).unwrap_or(usize::MAX), "rollout");
        let (tokens, trained) = (count(tally.tokens), count(tally.trained));
        let share = 100.0 * tally.trained as f64 / tally.tokens.max(1) as f64;
        let total = format!("{rollouts}: {tokens} tokens, {trained} trained ({share:.1}%)");
        writeln!(self.out, "{}", self.paint.bold(&total))?;
        let (longest, response) = (count(tally.longest), count(tally.longest_response));
        writeln!(self.out, "longest rollout {longest} tokens, longest response {response}")?;
        if tally.sampled > 0 {
            let (sampled, drifted) = (count(tally.sampled), count(tally.drifted));
            let by = count(tally.drifted_tokens);
            writeln!(
                self.out,
                "{sampled} with sampled tokens: {drifted} drifted from the text, by {by} tokens"
            )?;
        }
        if tally.text > 0 {
            let text = count(tally.text);
            writeln!(
                self.out,
                "{text} tokenised from text (mask {mask}): not proven to be what was sampled"
            )?;
        }
        if tally.untrained > 0 {
            writeln!(self.out, "{} without a trained token", count(tally.untrained))?;
        }
        self.show_wrong(tally)?;
        Ok(writeln!(
            self.out,
            "{}",
            self.paint.dim(&format!("encoder: {}", masks.tokenizer.encoder().path()))
        )?)
    }

    fn show_wrong(&mut self, tally: &Tally) -> Result<()> {
        if tally.unknown > 0 {
            let tokens = usize::try_from(tally.unknown).unwrap_or(usize::MAX);
            writeln!(self.out, "{}", self.paint.alarm(&unknown(tokens)))?;
        }
        if tally.incomparable > 0 {
            let line = format!("{} whose text could not be compared", count(tally.incomparable));
            writeln!(self.out, "{}", self.paint.alarm(&line))?;
        }
        if tally.failed > 0 {
            let line = format!("{} could not be read or masked", count(tally.failed));
            writeln!(self.out, "{}", self.paint.alarm(&line))?;
        }
        for (row, reason) in &tally.reasons {
            writeln!(self.out, "    row {row}: {}", visible(reason))?;
        }
        if tally.unnamed() > 0 {
            writeln!(self.out, "    and {} more", count(tally.unnamed()))?;
        }
        Ok(())
    }
}

fn unknown(tokens: usize) -> String {
    format!("{} not in this model's vocabulary: did another model sample them?", many(tokens, "token"))
}

/// The beginning of a region: its text and its ids.
fn excerpt(ids: &[u32], masks: &Masks) -> String {
    if ids.is_empty() {
        return "nothing".to_owned();
    }
    let shown = ids.get(..REGION_TOKENS.min(ids.len())).unwrap_or_default();
    let text = masks.tokenizer.encoder().decode(shown, false).unwrap_or_default();
    match ids.len() - shown.len() {
        0 => format!("{text:?} {shown:?}"),
        more => format!("{text:?} {shown:?} and {} more", count(more as u64)),
    }
}
