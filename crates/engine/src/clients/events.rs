//! Takes server-sent events out of bytes that are cut anywhere.
//!
//! Of an event only its data counts here. Lines end as the standard allows, by `\n`, `\r\n` or `\r`; comments and other
//! fields are passed over; data of several lines is joined by `\n`.

use memchr::memchr2;

use super::answer::Flaw;

/// More than any answer has, and less than memory.
const EVENT_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct EventReader {
    /// The beginning of a line whose end is still to come.
    line: Vec<u8>,
    /// Of the event whose end is still to come.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was `\r`: a `\n` that follows belongs to it.
    after_return: bool,
}

impl EventReader {
    /// Tells the data of every event that ends in these bytes.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        mut tell: impl FnMut(&[u8]) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(at) = memchr2(b'\n', b'\r', bytes) {
            let (head, rest) = bytes.split_at(at);
            if self.line.is_empty() {
                self.take(head, &mut tell)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(head);
                self.take(&line, &mut tell)?;
                line.clear();
                self.line = line;
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.check_room(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take(&mut self, line: &[u8], tell: &mut impl FnMut(&[u8]) -> Result<(), Flaw>) -> Result<(), Flaw> {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                tell(&self.data)?;
                self.data.clear();
            }
            return Ok(());
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return Ok(()),
        };
        self.check_room(value.len())?;
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn check_room(&self, more: usize) -> Result<(), Flaw> {
        if self.line.len() + self.data.len() + more > EVENT_BYTES_MAX {
            return Err(Flaw::Bad(format!("an event of more than {EVENT_BYTES_MAX} bytes")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            let told = reader.read(piece, |data| {
                events.push(String::from_utf8_lossy(data).into_owned());
                Ok(())
            });
            told.unwrap();
        }
        events
    }

    #[test]
    fn events_are_read_as_the_standard_has_them() {
        for (bytes, events) in [
            ("data: one\n\ndata: two\n\n", &["one", "two"][..]),
            ("data:one\r\n\r\ndata:  two\r\n\r\n", &["one", " two"]),
            ("data: one\r\rdata: two\r\r", &["one", "two"]),
            (": ping\n\nevent: x\nid: 7\ndata: one\n: in between\nretry: 5\n\n", &["one"]),
            ("data: one\ndata: two\n\n", &["one\ntwo"]),
            ("data\n\ndata:\n\n\n\n", &["", ""]),
            ("database: no\n\n", &[]),
            ("data: one\n\ndata: without an end\n", &["one"]),
            ("", &[]),
        ] {
            assert_eq!(read(&[bytes.as_bytes()]), events, "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn wherever_the_bytes_are_cut_the_events_are_the_same(
            lines in proptest::collection::vec(
                ("(data|data:|data: |:|id: )?[a-z{}\"ä:]{0,6}", "\n|\r\n|\r|\n\n|\r\n\r\n"),
                0..30,
            ),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes: String = lines.into_iter().flat_map(|(line, end)| [line, end]).collect();
            let bytes = bytes.as_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
