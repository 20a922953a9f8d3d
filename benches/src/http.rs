//! As much HTTP/1.1 as a load generator needs: is the answer complete, and was it a 200?

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// A keep-alive connection for one call at a time; its buffer is reused, so a large answer costs no page faults.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    stream: TcpStream,
    received: Vec<u8>,
}

/// A complete answer, still in the client's buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Bytes of head and body together.
    pub(crate) total_bytes: usize,
    framing: Framing,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Framing {
    Sized { body_start: usize },
    Chunked { body_start: usize },
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Self { address, stream, received: Vec::new() })
    }

    /// Sends the request and reads the whole answer, without looking inside.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let request = request(self.address, method, path, body);
        self.stream.write_all(request.as_bytes())?;
        self.finish().with_context(|| format!("{method} {path}"))
    }

    /// The body of a 200 as JSON.
    pub(crate) fn json(&self, answer: &Answer) -> Result<Value> {
        let body = answer.body(&self.received)?;
        ensure!(answer.status == 200, "answered {}: {}", answer.status, excerpt(&body));
        serde_json::from_slice(&body).with_context(|| format!("the answer is not JSON: {}", excerpt(&body)))
    }

    /// The body of an answer, whatever its status.
    pub(crate) fn body(&self, answer: &Answer) -> Result<Vec<u8>> {
        answer.body(&self.received)
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Value> {
        let answer = self.call("GET", path, "")?;
        self.json(&answer).with_context(|| format!("GET {path}"))
    }

    fn finish(&mut self) -> Result<Answer> {
        // Kept at its largest size ever, so that only the first large answer pays for fresh pages.
        let mut filled = 0;
        loop {
            if self.received.len() - filled < 64 << 10 {
                self.received.resize(self.received.len() + (1 << 20), 0);
            }
            let space = self.received.get_mut(filled..).unwrap_or_default();
            let count = self.stream.read(space)?;
            ensure!(count > 0, "the server closed the connection after {filled} bytes of an answer");
            filled += count;
            if let Some(answer) = Answer::parse(self.received.get(..filled).unwrap_or_default())? {
                return Ok(answer);
            }
        }
    }
}

/// A request head and body; for the calls whose cost does not matter.
pub(crate) fn request(to: SocketAddr, method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl Answer {
    /// `None` until all of it has arrived.
    pub(crate) fn parse(received: &[u8]) -> Result<Option<Self>> {
        let Some(head_end) = received.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let (head, body) = received.split_at(head_end + 4);
        let head = std::str::from_utf8(head).context("an answer head that is not text")?;
        let body_start = head.len();
        let status = head.get(9..12).and_then(|digits| digits.parse().ok());
        let status = status.with_context(|| format!("not an HTTP/1.1 answer: {head:?}"))?;
        let (total_bytes, framing) = if let Some(length) = header(head, "content-length") {
            let length: usize = length.parse().with_context(|| format!("content-length {length:?}"))?;
            (body_start + length, Framing::Sized { body_start })
        } else if header(head, "transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            // Only the end is looked at here: walking all chunks after every read would be quadratic.
            let complete = body == b"0\r\n\r\n" || body.ends_with(b"\r\n0\r\n\r\n");
            (if complete { received.len() } else { usize::MAX }, Framing::Chunked { body_start })
        } else {
            bail!("an answer with neither content-length nor chunks: {head:?}");
        };
        Ok((received.len() >= total_bytes).then_some(Self { status, total_bytes, framing }))
    }

    pub(crate) fn body(&self, received: &[u8]) -> Result<Vec<u8>> {
        match self.framing {
            Framing::Sized { body_start } => {
                Ok(received.get(body_start..self.total_bytes).unwrap_or_default().to_vec())
            }
            Framing::Chunked { body_start } => {
                joined_chunks(received.get(body_start..self.total_bytes).unwrap_or_default())
            }
        }
    }
}

fn header<'head>(head: &'head str, name: &str) -> Option<&'head str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn joined_chunks(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::with_capacity(rest.len());
    while let Some(line_end) = rest.windows(2).position(|window| window == b"\r\n") {
        let (line, after) = rest.split_at(line_end);
        let size = std::str::from_utf8(line)?.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).with_context(|| format!("chunk size {size:?}"))?;
        if size == 0 {
            return Ok(body);
        }
        let chunk = after.get(2..2 + size).context("a chunk that ends early")?;
        body.extend_from_slice(chunk);
        rest = after.get(2 + size + 2..).context("a chunk without its line end")?;
    }
    bail!("chunks without an end");
}

/// Enough of a body to recognise what went wrong.
pub(crate) fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body.get(..300).unwrap_or(body)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_none_until_its_last_byte_is_there() {
        for whole in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..],
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=1\r\nllo\r\n0\r\n\r\n",
        ] {
            for end in 0..whole.len() {
                assert_eq!(Answer::parse(&whole[..end]).unwrap(), None, "{end} of {} bytes", whole.len());
            }
            let answer = Answer::parse(whole).unwrap().unwrap();
            assert_eq!((answer.status, answer.total_bytes), (200, whole.len()));
            assert_eq!(answer.body(whole).unwrap(), b"hello");
        }
    }

    #[test]
    fn a_status_other_than_200_is_read_as_it_is() {
        let answer = Answer::parse(b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n").unwrap().unwrap();
        assert_eq!(answer.status, 429);
    }
}
