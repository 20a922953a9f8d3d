//! Conversations and counts on the terminal.

use anyhow::Result;
use rollyard_core::tokens::{Drift, Masks};
use std::io::Write;

use super::line::{Compared, Line, Source};
use super::tally::Tally;
use crate::terminal::{count, many};

/// Regions of drift that are shown; the rest is only counted.
const REGIONS: usize = 5;

pub(super) struct Painter<W> {
    out: W,
    in_color: bool,
}

impl<W: Write> Painter<W> {
    pub(super) fn new(out: W, in_color: bool) -> Self {
        Self { out, in_color }
    }

    /// One rollout in full.
    pub(super) fn show(&mut self, number: u64, outcome: &Result<Line, String>, masks: &Masks) -> Result<()> {
        match outcome {
            Ok(line) => self.show_line(number, line, masks),
            Err(reason) => Ok(writeln!(self.out, "{}\n{reason}\n", self.bold(&format!("row {number}")))?),
        }
    }

    fn show_line(&mut self, number: u64, line: &Line, masks: &Masks) -> Result<()> {
        let name = line.name.as_ref().map(|name| format!(" · {name}")).unwrap_or_default();
        let source = match line.source {
            Source::Text => "tokens made from its text",
            Source::Sampled(_) => "sampled tokens",
        };
        writeln!(self.out, "{}", self.bold(&format!("row {number}{name} · {source}")))?;
        let ends = line.turns.iter().skip(1).map(|(start, _)| *start).chain([line.ids.len()]);
        for ((start, called), end) in line.turns.iter().zip(ends) {
            let trained = overlap(line, *start, end);
            let trained =
                if trained > 0 { format!(", {} trained", count(trained as u64)) } else { String::new() };
            let tokens = many(end - start, "token");
            writeln!(self.out, "{}", self.dim(&format!("── {called} · {tokens}{trained}")))?;
            self.show_tokens(line, *start, end, masks)?;
        }
        let (tokens, trained) = (count(line.ids.len() as u64), count(line.trained() as u64));
        let response = count(rollyard_core::tokens::mask::response_length(&line.mask) as u64);
        writeln!(
            self.out,
            "{}",
            self.bold(&format!("{tokens} tokens, {trained} trained, response {response}"))
        )?;
        if let Source::Sampled(compared) = &line.source {
            match compared {
                Ok(compared) => self.show_drift(line, compared, masks)?,
                Err(reason) => writeln!(self.out, "its text cannot be compared: {reason}")?,
            }
        }
        Ok(writeln!(self.out)?)
    }

    /// The text of these tokens, trained ones marked.
    fn show_tokens(&mut self, line: &Line, start: usize, end: usize, masks: &Masks) -> Result<()> {
        let mut ends_line = true;
        for (span, trained) in line.mask.spans() {
            let (from, to) = (span.start.max(start), span.end.min(end));
            if from >= to {
                continue;
            }
            let text = masks.tokenizer.encoder().decode(line.ids.get(from..to).unwrap_or_default(), false)?;
            let text = visible(&text);
            ends_line = text.ends_with('\n');
            let text = if trained { self.trained(&text) } else { text };
            write!(self.out, "{text}")?;
        }
        if !ends_line {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn show_drift(&mut self, line: &Line, compared: &Compared, masks: &Masks) -> Result<()> {
        let Compared { drift, rendered } = compared;
        if drift.is_none() {
            return Ok(writeln!(self.out, "no drift: its text gives the same tokens")?);
        }
        writeln!(self.out, "{}", self.alarm(&drift_line(drift)))?;
        for region in drift.regions.iter().take(REGIONS) {
            let text = |ids: &[u32]| masks.tokenizer.encoder().decode(ids, false).unwrap_or_default();
            let sampled = line.ids.get(region.sampled.clone()).unwrap_or_default();
            let given = rendered.get(region.rendered.clone()).unwrap_or_default();
            writeln!(
                self.out,
                "    at token {}: sampled {:?} {sampled:?}, text gives {:?} {given:?}",
                count(region.sampled.start as u64),
                text(sampled),
                text(given),
            )?;
        }
        if let Some(more) = drift.regions.len().checked_sub(REGIONS).filter(|more| *more > 0) {
            writeln!(self.out, "    and {} more", count(more as u64))?;
        }
        Ok(())
    }

    /// What the file comes to.
    pub(super) fn finish(&mut self, tally: &Tally, masks: &Masks, mask: &str) -> Result<()> {
        writeln!(
            self.out,
            "{}: {} tokens, {} trained (mask {mask}), longest {}, longest response {}",
            many(usize::try_from(tally.lines()).unwrap_or(usize::MAX), "rollout"),
            count(tally.tokens),
            count(tally.trained),
            count(tally.longest),
            count(tally.longest_response),
        )?;
        if tally.sampled > 0 {
            let line = format!(
                "{} carry sampled tokens: {} drifted from their text, by {} tokens{}",
                count(tally.sampled),
                count(tally.drifted),
                count(tally.drifted_tokens),
                incomparable(tally.incomparable),
            );
            writeln!(self.out, "{line}")?;
        }
        if tally.text > 0 {
            writeln!(
                self.out,
                "{} were tokenised from text: not proven to be what was sampled",
                count(tally.text)
            )?;
        }
        if tally.untrained > 0 {
            writeln!(self.out, "{} train nothing", count(tally.untrained))?;
        }
        if tally.failed > 0 {
            writeln!(
                self.out,
                "{}",
                self.alarm(&format!("{} could not be read or masked", count(tally.failed)))
            )?;
        }
        for (number, reason) in &tally.reasons {
            writeln!(self.out, "    line {number}: {reason}")?;
        }
        Ok(writeln!(self.out, "{}", self.dim(&format!("encoder: {}", masks.tokenizer.encoder().path())))?)
    }

    /// In colour line by line, so that a pager keeps it; without colour in brackets.
    fn trained(&self, text: &str) -> String {
        if !self.in_color {
            return format!("⟦{text}⟧");
        }
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| if line.is_empty() { String::new() } else { format!("\x1b[32m{line}\x1b[0m") })
            .collect();
        lines.join("\n")
    }

    fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.styled("2", text)
    }

    fn alarm(&self, text: &str) -> String {
        self.styled("31", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.in_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn drift_line(drift: &Drift) -> String {
    format!(
        "drift: {} of the sampled tokens are not what its text gives, in {}",
        count(drift.sampled_tokens() as u64),
        many(drift.regions.len(), "place"),
    )
}

fn incomparable(number: u64) -> String {
    if number == 0 { String::new() } else { format!(" ({} could not be compared)", count(number)) }
}

fn overlap(line: &Line, start: usize, end: usize) -> usize {
    let spans = line.mask.spans().filter(|(_, on)| *on);
    spans.map(|(span, _)| span.end.min(end).saturating_sub(span.start.max(start))).sum()
}

/// Text a rollout cannot use to paint on our terminal.
fn visible(text: &str) -> String {
    text.chars()
        .map(|symbol| match symbol {
            '\n' | '\t' => symbol,
            '\u{7f}' => '\u{2421}',
            // The pictures of the control characters stand in their order.
            control if control < ' ' => char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}'),
            // Controls of the second table begin sequences on some terminals.
            '\u{80}'..='\u{9f}' => '\u{fffd}',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_cannot_paint_on_the_terminal() {
        assert_eq!(visible("a\x1b[31mb\tc\nd\u{7f}\u{9b}"), "a␛[31mb\tc\nd␡\u{fffd}");
    }
}
