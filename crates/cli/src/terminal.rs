//! Talking to the person at the terminal: a line that is written over, numbers made readable.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How often the line is written over.
const REDRAW_EVERY: Duration = Duration::from_millis(100);

/// A line on stderr; nothing where stderr is not a terminal. It is wiped in the end.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_terminal: bool,
    drawn_at: Option<Instant>,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), drawn_at: None }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows the share that is done, if it is time to.
    pub(crate) fn show(&mut self, what: &str, done: u64, total: u64) {
        if total > 0 && self.is_due() {
            self.write_over(&format!("{what}: {}% of {}", done * 100 / total, size(total)));
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.is_terminal && self.drawn_at.is_none_or(|drawn_at| drawn_at.elapsed() >= REDRAW_EVERY)
    }

    pub(crate) fn write_over(&mut self, line: &str) {
        if self.is_terminal {
            self.drawn_at = Some(Instant::now());
            // A line that breaks cannot be written over.
            put(&line.chars().take(columns(io::stderr()) - 1).collect::<String>());
        }
    }

    pub(crate) fn wipe(&mut self) {
        if self.drawn_at.take().is_some() {
            put("");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.wipe();
    }
}

fn put(line: &str) {
    let mut stderr = io::stderr();
    // A line that cannot be shown is not worth failing for.
    let _nobody_looks = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Columns of the terminal that stdout is.
pub(crate) fn width() -> usize {
    columns(io::stdout())
}

fn columns(terminal: impl AsFd) -> usize {
    rustix::termios::tcgetwinsize(terminal).map_or(80, |size| usize::from(size.ws_col).max(40))
}

/// Columns under headings; the first is text and begins left, the others end right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| match column {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let mut size = bytes as f64;
    for unit in UNITS {
        if size < 999.5 {
            return if unit == "B" { format!("{size} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1000.0;
    }
    format!("{size:.1} TB")
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 lease`, `2 leases`.
pub(crate) fn many(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, counted, sized) in [
            (0, "0", "0 B"),
            (999, "999", "999 B"),
            (1_000, "1,000", "1.0 kB"),
            (12_345, "12,345", "12.3 kB"),
            (999_999, "999,999", "1.0 MB"),
            (1_234_567_890, "1,234,567,890", "1.2 GB"),
            (9_870_000_000_000, "9,870,000,000,000", "9.9 TB"),
        ] {
            assert_eq!((count(number).as_str(), size(number).as_str()), (counted, sized));
        }
    }
}
