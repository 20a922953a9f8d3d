//! Makes the rollouts that the bench writes: about 10 kB of JSON each, different every time, almost for free.
//!
//! Client and server share the machine, so a request is formatted once. Before each send only three
//! fixed-width fields are overwritten in place: `uid`, `instance_id` and `reward`.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// The size of one item on the wire, give or take the end of a sentence.
pub(crate) const ITEM_BYTES: usize = 10_000;

/// The run of calls that name none.
pub(crate) const DEFAULT_RUN: &str = "default";

const ID_WIDTH: usize = 12;
const REWARD_WIDTH: usize = 4;

/// Hands out item numbers; consecutive numbers fill one instance, then the next.
///
/// A server under test has one sequence per `series`, so no uid is ever used twice on it.
#[derive(Debug)]
pub(crate) struct Sequence {
    series: char,
    next: u64,
    rollouts_per_instance: u64,
}

impl Sequence {
    pub(crate) fn new(series: char, rollouts_per_instance: u64) -> Self {
        assert!(series.is_ascii_lowercase(), "a series is one ASCII letter, got {series:?}");
        Self { series, next: 0, rollouts_per_instance }
    }

    /// How many items were handed out so far.
    pub(crate) fn used(&self) -> u64 {
        self.next
    }
}

/// One HTTP request in one buffer, head and items, ready to be stamped and sent.
#[derive(Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    items: Vec<Offsets>,
}

/// Where the changing fields of an item start inside the buffer.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    uid: usize,
    instance: usize,
    reward: usize,
}

impl Request {
    /// `POST /buffer/write` with one item.
    pub(crate) fn single(to: SocketAddr, run: &str, seed: u64) -> Self {
        let path = match run {
            DEFAULT_RUN => "/buffer/write".to_owned(),
            run => format!("/runs/{run}/buffer/write"),
        };
        Self::with_items(to, &path, "application/json", seed, 1)
    }

    /// The bulk write: `items` lines of NDJSON.
    pub(crate) fn bulk(to: SocketAddr, run: &str, seed: u64, items: usize) -> Self {
        Self::with_items(to, &format!("/api/runs/{run}/rollouts"), "application/x-ndjson", seed, items)
    }

    fn with_items(to: SocketAddr, path: &str, content_type: &str, seed: u64, count: usize) -> Self {
        let mut body = String::with_capacity(count * (ITEM_BYTES + 200));
        let mut text = Text::new(seed);
        let inside: Vec<Offsets> = (0..count).map(|_| push_item(&mut body, &mut text)).collect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let items = inside.iter().map(|offsets| offsets.shifted_by(head.len())).collect();
        Self { bytes: (head + &body).into_bytes(), items }
    }

    /// Gives every item the next number of the sequence.
    pub(crate) fn stamp(&mut self, sequence: &mut Sequence) {
        for offsets in &self.items {
            let number = sequence.next;
            sequence.next += 1;
            put_id(&mut self.bytes, offsets.uid, sequence.series, number);
            put_id(
                &mut self.bytes,
                offsets.instance,
                sequence.series,
                number / sequence.rollouts_per_instance,
            );
            // Coprime steps: neighbours differ, so no group has equal rewards and is dropped for that.
            let [whole, tenths, hundredths] = digit_bytes(number * 37 % 101);
            put(&mut self.bytes, offsets.reward, [whole, b'.', tenths, hundredths]);
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }

    /// The items alone, without the HTTP head: what a bare append writes.
    pub(crate) fn body(&self) -> &[u8] {
        let head_end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n");
        head_end.and_then(|end| self.bytes.get(end + 4..)).expect("every request has a head")
    }
}

impl Offsets {
    fn shifted_by(self, bytes: usize) -> Self {
        Self { uid: self.uid + bytes, instance: self.instance + bytes, reward: self.reward + bytes }
    }
}

fn put_id(bytes: &mut [u8], at: usize, series: char, number: u64) {
    let mut id = [0; ID_WIDTH];
    let digits = digit_bytes::<{ ID_WIDTH - 1 }>(number);
    for (slot, byte) in id.iter_mut().zip(std::iter::once(series as u8).chain(digits)) {
        *slot = byte;
    }
    put(bytes, at, id);
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    let field = bytes.get_mut(at..at + N).expect("offsets were recorded when the buffer was built");
    field.copy_from_slice(&value);
}

fn digit_bytes<const N: usize>(mut number: u64) -> [u8; N] {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Appends one item and a newline; the changing fields are blank until stamped.
fn push_item(body: &mut String, text: &mut Text) -> Offsets {
    let start = body.len();
    body.push_str(r#"{"uid":""#);
    let uid = body.len();
    let _ = write!(body, r#"{:0ID_WIDTH$}","instance_id":""#, 0);
    let instance = body.len();
    let _ = write!(body, r#"{:0ID_WIDTH$}","messages":[{{"role":"system","content":""#, 0);
    text.fill(body, 300);
    body.push_str(r#""},{"role":"user","content":""#);
    text.fill(body, 1_200);
    body.push_str(r#""},{"role":"assistant","content":""#);
    let tail_bytes = 160;
    let so_far = body.len() - start;
    text.fill(body, ITEM_BYTES - tail_bytes - so_far);
    body.push_str(r#""}],"reward":"#);
    let reward = body.len();
    let _ = write!(body, "{:.*}", REWARD_WIDTH - 2, 0.0);
    let _ = writeln!(
        body,
        r#","extra_info":{{"finish_reason":"stop","weight_version":{},"data_source":"math","difficulty":{}}}}}"#,
        text.below(100),
        text.below(10),
    );
    Offsets { uid, instance, reward }
}

/// Prose of a model at work: words by a skewed choice, numbers, symbols, escapes and some non-ASCII.
struct Text {
    state: u64,
}

impl Text {
    fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// Xorshift: the bench needs variety it can repeat, not randomness.
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit
    }

    fn fill(&mut self, out: &mut String, bytes: usize) {
        let end = out.len() + bytes;
        while out.len() < end {
            match self.below(24) {
                0 => drop(write!(out, "{} ", self.below(100_000))),
                1 => drop(write!(out, "x_{} = {}/{} ", self.below(10), self.below(99), self.below(99) + 1)),
                2 => out.push_str(r"\n\nStep: "),
                3 => out.push_str(r#"\"so\" "#),
                4 => out.push_str("≤ π²·√2 "),
                5 => drop(write!(out, "`f{:x}(` ", self.next() as u32)),
                _ => {
                    // The product of two draws favours the front of the list, as language does.
                    let words = WORDS.len() as u64;
                    let rank = self.below(words) * self.below(words) / words;
                    out.push_str(WORDS.get(rank as usize).copied().unwrap_or("the"));
                    out.push(' ');
                }
            }
        }
    }
}

const WORDS: [&str; 96] = [
    "the",
    "we",
    "of",
    "is",
    "that",
    "to",
    "a",
    "and",
    "so",
    "then",
    "if",
    "this",
    "let",
    "for",
    "in",
    "which",
    "have",
    "can",
    "value",
    "number",
    "now",
    "be",
    "as",
    "with",
    "from",
    "need",
    "equation",
    "sum",
    "answer",
    "each",
    "both",
    "case",
    "first",
    "second",
    "because",
    "therefore",
    "wait",
    "check",
    "again",
    "compute",
    "square",
    "root",
    "integer",
    "prime",
    "factor",
    "divide",
    "multiply",
    "subtract",
    "remainder",
    "modulo",
    "function",
    "derivative",
    "integral",
    "limit",
    "bound",
    "upper",
    "lower",
    "triangle",
    "angle",
    "circle",
    "radius",
    "probability",
    "expected",
    "variance",
    "random",
    "choose",
    "permutation",
    "combination",
    "induction",
    "hypothesis",
    "assume",
    "contradiction",
    "proof",
    "matrix",
    "vector",
    "determinant",
    "eigenvalue",
    "linear",
    "polynomial",
    "coefficient",
    "degree",
    "substitute",
    "simplify",
    "expand",
    "rearrange",
    "alternatively",
    "however",
    "actually",
    "perhaps",
    "mistake",
    "correct",
    "verify",
    "final",
    "boxed",
    "conclude",
    "hence",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::HashSet;

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 8889))
    }

    fn lines(request: &Request) -> Vec<Value> {
        let body = std::str::from_utf8(request.body()).unwrap();
        body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn stamped_items_are_json_with_their_own_uid_and_a_varied_reward() {
        let mut sequence = Sequence::new('h', 8);
        let mut request = Request::bulk(address(), DEFAULT_RUN, 7, 16);
        request.stamp(&mut sequence);
        request.stamp(&mut sequence);
        let items = lines(&request);
        assert_eq!(items.len(), 16);
        assert_eq!(items[0]["uid"], "h00000000016");
        assert_eq!(items[0]["instance_id"], "h00000000002");
        assert_eq!(items[15]["instance_id"], "h00000000003");
        let rewards: HashSet<String> = items.iter().map(|item| item["reward"].to_string()).collect();
        assert_eq!(rewards.len(), 16);
        assert!(items.iter().all(|item| (0.0..=1.0).contains(&item["reward"].as_f64().unwrap())));
        assert_eq!(sequence.used(), 32);
    }

    #[test]
    fn an_item_is_ten_kilobytes_of_text_that_differs_by_seed() {
        let one = Request::single(address(), DEFAULT_RUN, 1);
        let other = Request::single(address(), DEFAULT_RUN, 2);
        assert_ne!(one.body(), other.body());
        for request in [one, other] {
            let off = request.body().len().abs_diff(ITEM_BYTES);
            assert!(off < 100, "{} bytes", request.body().len());
        }
    }

    #[test]
    fn content_length_is_the_length_of_the_body() {
        let request = Request::bulk(address(), DEFAULT_RUN, 3, 4);
        let head = String::from_utf8_lossy(request.bytes());
        assert!(head.contains(&format!("Content-Length: {}\r\n", request.body().len())));
    }
}
