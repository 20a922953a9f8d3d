//! Where in the text the `{% generation %}` blocks printed.
//!
//! At the top level and in loops, what has been written so far is where a block begins: the writer counts, the
//! block asks. Inside a macro or a set block the output is collected and placed later, so there the block's text
//! carries markers, characters that no input of this render contains, which are taken out again at the end.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use minijinja::value::{Object, ObjectRepr, from_args};
use minijinja::{Error, State, Value};

/// What the writer and the blocks of one render share.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    written: AtomicUsize,
    spans: Mutex<Vec<Range<usize>>>,
    depth: AtomicUsize,
    markers: Option<(char, char)>,
}

impl Tracker {
    pub(super) fn counting() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn marking(markers: (char, char)) -> Arc<Self> {
        Arc::new(Self { markers: Some(markers), ..Self::default() })
    }

    /// The text without markers, and the spans in order.
    pub(super) fn finish(&self, text: String) -> (String, Vec<Range<usize>>) {
        let Some((open, close)) = self.markers else {
            let spans = self.spans.lock().map(|mut spans| std::mem::take(&mut *spans)).unwrap_or_default();
            return (text, spans);
        };
        let mut plain = String::with_capacity(text.len());
        let mut spans = Vec::new();
        let mut start = 0;
        for c in text.chars() {
            if c == open {
                start = plain.len();
            } else if c == close {
                spans.push(start..plain.len());
            } else {
                plain.push(c);
            }
        }
        (plain, spans)
    }
}

impl Object for Tracker {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (opens,): (bool,) = from_args(args)?;
        let depth = if opens {
            self.depth.fetch_add(1, Ordering::Relaxed)
        } else {
            self.depth.fetch_sub(1, Ordering::Relaxed).saturating_sub(1)
        };
        // A block within a block adds nothing to the outer one's span.
        if depth > 0 {
            return Ok(Value::from(""));
        }
        if let Some((open, close)) = self.markers {
            return Ok(Value::from(if opens { open } else { close }.to_string()));
        }
        let written = self.written.load(Ordering::Relaxed);
        if let Ok(mut spans) = self.spans.lock() {
            match spans.last_mut() {
                Some(span) if !opens => span.end = written,
                _ => spans.push(written..written),
            }
        }
        Ok(Value::from(""))
    }
}

/// Two private-use characters that occur nowhere in the given texts, neither as such nor as a `repr` writes them.
pub(super) fn unused_markers(texts: &[String]) -> Option<(char, char)> {
    let is_free = |c: &char| {
        let escaped = format!("\\U{:08x}", u32::from(*c));
        !texts.iter().any(|text| text.contains(*c) || text.contains(&escaped))
    };
    let mut free = ('\u{f0000}'..='\u{f1fff}').filter(is_free);
    Some((free.next()?, free.next()?))
}

/// Collects the text, counts it for the tracker, and stops a template that prints without end.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    pub(super) limit: usize,
    pub(super) tracker: Option<Arc<Tracker>>,
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::Error::other(format!("the text grew beyond {} bytes", self.limit)));
        }
        self.bytes.extend_from_slice(bytes);
        if let Some(tracker) = &self.tracker {
            tracker.written.store(self.bytes.len(), Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
