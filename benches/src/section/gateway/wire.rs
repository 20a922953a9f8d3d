//! One keep-alive connection, read chunk by chunk: when did what arrive?

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct Wire {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// The body, and when each of its chunks arrived.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    pub(super) chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) arrived: Instant,
    /// Where it ends in the body.
    pub(super) end: usize,
}

impl Answer {
    /// The events of a stream, each with when it arrived.
    pub(super) fn events(&self) -> impl Iterator<Item = (Instant, &str)> {
        let mut from = 0;
        let parts = self.chunks.iter().map(move |chunk| {
            let part = self.body.get(from..chunk.end).unwrap_or_default();
            from = chunk.end;
            (chunk.arrived, std::str::from_utf8(part).unwrap_or_default())
        });
        parts.flat_map(|(arrived, part)| {
            let events = part.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
            events.map(move |event| (arrived, event))
        })
    }
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream: BufReader::with_capacity(64 << 10, stream) })
    }

    pub(super) async fn call(&mut self, method: &str, path: &str, key: &str, body: &str) -> Result<Answer> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
        let answer = self.read().await.with_context(|| format!("{method} {path}"))?;
        Ok(answer)
    }

    async fn read(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let status: u16 = line.get(9..12).and_then(|digits| digits.parse().ok()).context("not an answer")?;
        let (mut length, mut chunked) = (None, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line).await?;
            let header = line.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>()?);
            }
            chunked |= header == "transfer-encoding: chunked";
        }
        let mut answer = Answer::default();
        match length {
            Some(length) => {
                answer.body.resize(length, 0);
                self.stream.read_exact(&mut answer.body).await?;
                answer.chunks.push(Chunk { arrived: Instant::now(), end: length });
            }
            None if chunked => self.read_chunks(&mut answer).await?,
            None => bail!("an answer without an end"),
        }
        ensure!(status == 200, "answered {status}: {}", String::from_utf8_lossy(&answer.body));
        Ok(answer)
    }

    async fn read_chunks(&mut self, answer: &mut Answer) -> Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).await?;
            let size =
                usize::from_str_radix(line.trim(), 16).with_context(|| format!("no size: {line:?}"))?;
            let from = answer.body.len();
            answer.body.resize(from + size + 2, 0);
            self.stream.read_exact(answer.body.get_mut(from..).unwrap_or_default()).await?;
            answer.body.truncate(from + size);
            if size == 0 {
                return Ok(());
            }
            answer.chunks.push(Chunk { arrived: Instant::now(), end: answer.body.len() });
        }
    }
}
