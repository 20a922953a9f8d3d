//! What a process prints, line by line.
//!
//! User code prints what it likes, whole tensors on one line included. A line is handed on with its beginning only,
//! and the last few are remembered: they are mostly why a process died.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// More of a line than this is left out.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Lines that are remembered, to be told when the process dies.
const LAST_LINES: usize = 12;

/// Whoever is told each line.
#[derive(Clone)]
pub struct Printed(Arc<dyn Fn(&str) + Send + Sync>);

impl Printed {
    pub fn new(told: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    /// To our own standard error.
    pub fn to_stderr() -> Self {
        Self::new(|line| {
            let _nobody_reads = writeln!(io::stderr(), "{line}");
        })
    }

    pub fn tell(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Printed")
    }
}

/// The last lines of a process; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.push_back(line.to_owned());
        while last.len() > LAST_LINES {
            last.pop_front();
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Hands on every line until the other end is closed. Empty lines say nothing and are left out.
pub(crate) async fn follow(from: impl AsyncRead + Unpin, printed: Printed, last: LastLines) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(piece) = from.fill_buf().await {
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let text = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
        line.extend(text.iter().take(LINE_BYTES_MAX.saturating_sub(line.len())));
        let used = end.map_or(piece.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            hand_on(&line, &printed, &last);
            line.clear();
        }
    }
    hand_on(&line, &printed, &last);
}

fn hand_on(line: &[u8], printed: &Printed, last: &LastLines) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if !text.is_empty() {
        printed.tell(text);
        last.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_line_is_handed_on_once_and_long_ones_are_cut() {
        let long = "x".repeat(LINE_BYTES_MAX + 5);
        let text = format!("one\n\n{long}\ntwo\r\nthe end");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (to, last) = (heard.clone(), LastLines::default());
        let printed = Printed::new(move |line| to.lock().unwrap().push(line.to_owned()));
        follow(text.as_bytes(), printed, last.clone()).await;
        let expected = ["one", &long[..LINE_BYTES_MAX], "two", "the end"];
        assert_eq!(*heard.lock().unwrap(), expected);
        assert_eq!(last.all(), expected);
    }

    #[tokio::test]
    async fn only_the_last_lines_are_remembered() {
        let text: String = (0..100).map(|n| format!("{n}\n")).collect();
        let last = LastLines::default();
        follow(text.as_bytes(), Printed::new(|_| ()), last.clone()).await;
        assert_eq!(last.all(), (88..100).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}
