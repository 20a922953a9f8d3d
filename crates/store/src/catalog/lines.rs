//! Rows of a file that has one a line, a stretch of the file at a time.
//!
//! A stretch has the lines that *begin* in it, so that stretches can be read apart from each other: it skips the end
//! of a line that began earlier, and reads on beyond its own end for the last one.

use crate::places::{PlaceError, ReadAt};
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// A longer row is counted as bad and not read as a whole: memory is bounded, whatever the data.
pub(crate) const ROW_BYTES_MAX: u64 = 64 << 20;
const MORE_BYTES: u64 = 1 << 20;

/// A line without its end.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub offset: u64,
    pub bytes: &'a [u8],
    /// Its own, which is more than `bytes` if it is too long to be read.
    pub length: u64,
    /// Line ends between the beginning of the stretch and this line.
    pub nth: u64,
    pub is_ended: bool,
}

/// What a stretch came to.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    pub line_ends: u64,
    /// After the last line that has its end, if there is any.
    pub end: Option<u64>,
    /// What was read, for whoever wants to look at it once more.
    pub read: (u64, Bytes),
}

/// Where lines are to be looked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub stretch: Range<u64>,
    /// A line begins where the stretch does.
    pub is_first: bool,
    /// Of the file, when it was looked at.
    pub file_end: u64,
}

pub(crate) fn lines(
    file: &dyn ReadAt,
    ask: &Ask,
    mut each: impl FnMut(Line<'_>),
) -> Result<Stretch, PlaceError> {
    let begin = if ask.is_first { ask.stretch.start } else { ask.stretch.start - 1 };
    let bytes = exactly(file, begin..ask.stretch.end)?;
    let mut stretch = Stretch { read: (begin, bytes.clone()), ..Stretch::default() };
    let mut rest: &[u8] = &bytes;
    if !ask.is_first {
        let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(stretch) };
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    while !rest.is_empty() {
        let offset = ask.stretch.end - rest.len() as u64;
        let Some(end) = memchr::memchr(b'\n', rest) else {
            last(file, ask, offset, rest, &mut stretch, each)?;
            return Ok(stretch);
        };
        let line = rest.get(..end).unwrap_or_default();
        each(Line::new(offset, line, line.len() as u64, stretch.line_ends, true));
        rest = rest.get(end + 1..).unwrap_or_default();
        stretch.line_ends += 1;
        stretch.end = Some(offset + end as u64 + 1);
    }
    Ok(stretch)
}

/// The line that goes on beyond the stretch.
fn last(
    file: &dyn ReadAt,
    ask: &Ask,
    offset: u64,
    front: &[u8],
    stretch: &mut Stretch,
    mut each: impl FnMut(Line<'_>),
) -> Result<(), PlaceError> {
    let mut line = BytesMut::from(front);
    let mut at = ask.stretch.end;
    let mut is_ended = false;
    while at < ask.file_end && !is_ended {
        let more = exactly(file, at..ask.file_end.min(at + MORE_BYTES))?;
        let end = memchr::memchr(b'\n', &more);
        is_ended = end.is_some();
        let part = more.get(..end.unwrap_or(more.len())).unwrap_or_default();
        if line.len() as u64 <= ROW_BYTES_MAX {
            line.extend_from_slice(part);
        }
        at += part.len() as u64;
    }
    each(Line::new(offset, &line, at - offset, stretch.line_ends, is_ended));
    if is_ended {
        stretch.line_ends += 1;
        stretch.end = Some(at + 1);
    }
    Ok(())
}

impl<'a> Line<'a> {
    fn new(offset: u64, bytes: &'a [u8], length: u64, nth: u64, is_ended: bool) -> Self {
        match bytes.strip_suffix(b"\r") {
            Some(bytes) if length == bytes.len() as u64 + 1 => {
                Self { offset, bytes, length: length - 1, nth, is_ended }
            }
            _ => Self { offset, bytes, length, nth, is_ended },
        }
    }

    pub(crate) fn is_blank(&self) -> bool {
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        bytes.iter().all(u8::is_ascii_whitespace)
    }

    pub(crate) fn is_too_long(&self) -> bool {
        self.length > ROW_BYTES_MAX
    }
}

/// A file that is shorter than it was has been replaced, and what was read of it means nothing.
fn exactly(file: &dyn ReadAt, range: Range<u64>) -> Result<Bytes, PlaceError> {
    let wanted = range.end - range.start;
    let bytes = file.read_at(range)?;
    if bytes.len() as u64 == wanted {
        return Ok(bytes);
    }
    Err(PlaceError::Changed { place: "this file".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Memory(Vec<u8>);

    impl ReadAt for Memory {
        fn read_at(&self, range: Range<u64>) -> Result<Bytes, PlaceError> {
            let end = (range.end as usize).min(self.0.len());
            Ok(Bytes::copy_from_slice(&self.0[(range.start as usize).min(end)..end]))
        }

        fn size_bytes(&self) -> u64 {
            self.0.len() as u64
        }
    }

    #[test]
    fn every_line_is_in_one_stretch_wherever_the_cuts_are() {
        let text = b"ab\n\ncdefgh\r\ni\n\n\njklmnop\nhalf";
        let file = Memory(text.to_vec());
        let expected: Vec<_> =
            [(0, "ab"), (3, ""), (4, "cdefgh"), (12, "i"), (14, ""), (15, ""), (16, "jklmnop"), (24, "half")]
                .map(|(offset, line)| (offset, line.to_owned()))
                .to_vec();
        let file_end = text.len() as u64;
        for size in 1..=file_end {
            let (mut got, mut line_ends, mut end) = (Vec::new(), 0, 0);
            for start in (0..file_end).step_by(size as usize) {
                let ask = Ask { stretch: start..file_end.min(start + size), is_first: start == 0, file_end };
                let stretch = lines(&file, &ask, |line| {
                    assert_eq!(line.is_ended, line.bytes != b"half");
                    assert_eq!(line_ends + line.nth, got.len() as u64);
                    got.push((line.offset, String::from_utf8(line.bytes.to_vec()).unwrap()));
                })
                .unwrap();
                line_ends += stretch.line_ends;
                end = stretch.end.unwrap_or(end);
            }
            assert_eq!((&got, line_ends, end), (&expected, 7, 24), "stretches of {size}");
        }
    }
}
