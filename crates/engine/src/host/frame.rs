//! What goes through the pipe between us and a worker process.
//!
//! A frame is the length of its header (u32), the length of its body (u64), both little-endian, the header as
//! JSON, and the body: the bytes of every tensor that the header names, one after the other. JSON and numbers are
//! all there is, so nothing that arrives can run anything.

use rollyard_core::batch::{DType, Tensor, TensorDict};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::episode::{Context, PromptAndCompletion};
use crate::generate::Message;
use crate::returned::Part;
use crate::stats::Recorded;

/// Longer headers than this are no headers: something else wrote into the pipe.
const HEADER_BYTES_MAX: u32 = 256 << 20;

/// What a worker process is told.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Order<'a> {
    Start {
        engine: Option<&'a RawValue>,
        threads: usize,
        sys_path: &'a [String],
    },
    /// Keeps a workflow or a function under a number, for orders that come after.
    Load {
        id: u64,
        handle: u64,
        load: &'a Load,
    },
    Episode {
        id: u64,
        handle: u64,
        data: &'a RawValue,
        context: Told<'a>,
    },
    Call {
        id: u64,
        handle: u64,
        arguments: &'a RawValue,
    },
    Cancel {
        id: u64,
    },
    SetVersion {
        id: u64,
        version: i32,
    },
    Pause {
        id: u64,
    },
    Resume {
        id: u64,
    },
}

impl Order<'_> {
    pub(super) fn frame(&self) -> Vec<u8> {
        let header = serde_json::to_vec(self).expect("an order is made of strings and numbers");
        let header_len = u32::try_from(header.len()).unwrap_or(u32::MAX);
        let mut frame = Vec::with_capacity(12 + header.len());
        frame.extend_from_slice(&header_len.to_le_bytes());
        frame.extend_from_slice(&0u64.to_le_bytes());
        frame.extend_from_slice(&header);
        frame
    }
}

/// User code by its name: worker processes import it themselves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Load {
    /// `module.Class`, made with these arguments.
    Workflow { path: String, kwargs: Map<String, Value> },
    /// `module.Class`, made with these arguments, or `module.function`: called with its data and where it may ask. With
    /// `environment` that is also said in the variables of the process, to one episode at a time; `None` leaves it to
    /// what the function takes.
    Agent { path: String, kwargs: Map<String, Value>, environment: Option<bool> },
    /// `module.function`, of any arguments.
    Function { path: String },
}

/// A context as Python is told it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told<'a> {
    run: &'a str,
    task_id: u64,
    sample_idx: u32,
    attempt: u32,
    is_eval: bool,
    seed: u64,
}

impl<'a> From<&'a Context> for Told<'a> {
    fn from(context: &'a Context) -> Self {
        let Context { run, task_id, sample_idx, attempt, is_eval, seed } = context;
        Self {
            run,
            task_id: *task_id,
            sample_idx: *sample_idx,
            attempt: *attempt,
            is_eval: *is_eval,
            seed: *seed,
        }
    }
}

/// What a worker process says.
#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    pub id: u64,
    pub answer: Answer,
    /// What user code recorded since the last reply.
    #[serde(default)]
    pub stats: Recorded,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Done,
    Value(Box<RawValue>),
    Returned(Returned),
    Raised(Raised),
    /// The workflow returned something that no trajectory can be made of.
    WrongType {
        found: String,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Returned {
    /// Whose arrays they were: numpy's, torch's or JAX's.
    pub arrays: String,
    pub parts: Vec<WirePart>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WirePart {
    pub tensors: Option<Vec<WireTensor>>,
    pub reward: Option<f64>,
    #[serde(default)]
    pub messages: Vec<Message>,
    pub text: Option<(String, String)>,
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// From the body, when it was read.
    #[serde(skip)]
    pub read: Option<TensorDict>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireTensor {
    key: String,
    dtype: String,
    shape: Vec<usize>,
}

impl From<WirePart> for Part {
    fn from(part: WirePart) -> Self {
        let text = part.text.map(|(prompt, completion)| PromptAndCompletion { prompt, completion });
        Self { tensors: part.read, reward: part.reward, messages: part.messages, text, extra: part.extra }
    }
}

/// An exception of user code.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Raised {
    /// Type and message, and the line that raised it.
    pub told: String,
    /// Whether another attempt may go better.
    pub may_pass: bool,
    /// It did not end in time, in the worker's own judgement.
    #[serde(default)]
    pub timed_out: bool,
}

/// The next reply; `None` at the end of the pipe.
pub(super) async fn read(pipe: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Reply>> {
    let header_len = match pipe.read_u32_le().await {
        Ok(len) => len,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    if header_len > HEADER_BYTES_MAX {
        return Err(invalid(format!("a header of {header_len} bytes")));
    }
    let body_len = pipe.read_u64_le().await?;
    let mut header = vec![0; header_len as usize];
    pipe.read_exact(&mut header).await?;
    let mut reply: Reply = serde_json::from_slice(&header).map_err(|error| invalid(error.to_string()))?;
    let mut left = body_len;
    if let Answer::Returned(returned) = &mut reply.answer {
        for part in &mut returned.parts {
            part.read = match part.tensors.take() {
                Some(tensors) => Some(read_tensors(pipe, tensors, &mut left).await?),
                None => None,
            };
        }
    }
    if left == 0 { Ok(Some(reply)) } else { Err(invalid(format!("{left} bytes that no tensor asks for"))) }
}

async fn read_tensors(
    pipe: &mut (impl AsyncRead + Unpin),
    tensors: Vec<WireTensor>,
    left: &mut u64,
) -> io::Result<TensorDict> {
    let mut dict = TensorDict::new();
    for WireTensor { key, dtype, shape } in tensors {
        let dtype = DType::named(&dtype).ok_or_else(|| invalid(format!("{key:?} is of type {dtype}")))?;
        // Asked before memory is: a shape is only a claim.
        let size =
            shape.iter().try_fold(dtype.size_bytes() as u64, |size, dim| size.checked_mul(*dim as u64));
        let after = size.and_then(|size| left.checked_sub(size));
        *left =
            after.ok_or_else(|| invalid(format!("{key:?} of shape {shape:?} is larger than its frame")))?;
        let mut tensor = Tensor::zeros(dtype, &shape);
        pipe.read_exact(tensor.bytes_mut()).await?;
        dict.insert(key, tensor);
    }
    Ok(dict)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a worker process wrote what is no reply: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(header: &str, body: &[u8]) -> Vec<u8> {
        let mut frame = (header.len() as u32).to_le_bytes().to_vec();
        frame.extend((body.len() as u64).to_le_bytes());
        frame.extend(header.as_bytes());
        frame.extend(body);
        frame
    }

    async fn read_all(bytes: &[u8]) -> Result<Vec<Reply>, String> {
        let mut pipe = bytes;
        let mut replies = Vec::new();
        while let Some(reply) = read(&mut pipe).await.map_err(|error| error.to_string())? {
            replies.push(reply);
        }
        Ok(replies)
    }

    const RETURNED: &str = r#"{"id":3,"answer":{"returned":{"arrays":"numpy","parts":[{"reward":null,"text":null,
        "tensors":[{"key":"a","dtype":"int32","shape":[1,2]},{"key":"b","dtype":"float32","shape":[1]}]}]}}}"#;

    #[tokio::test]
    async fn tensors_are_read_from_the_body_in_their_order() {
        let body: Vec<u8> = [7i32.to_ne_bytes(), 8i32.to_ne_bytes(), 0.5f32.to_ne_bytes()].concat();
        let mut bytes = frame(RETURNED, &body);
        bytes.extend(frame(
            r#"{"id":4,"answer":"done","stats":{"s":{"n":{"count":1,"sum":2,"min":2,"max":2}}}}"#,
            b"",
        ));
        let replies = read_all(&bytes).await.unwrap();
        let [Reply { id: 3, answer: Answer::Returned(returned), .. }, Reply { id: 4, stats, .. }] =
            replies.as_slice()
        else {
            panic!("{replies:?}")
        };
        let tensors = returned.parts[0].read.as_ref().unwrap();
        assert_eq!(tensors["a"].values::<i32>().unwrap(), [7, 8]);
        assert_eq!(tensors["b"].values::<f32>().unwrap(), [0.5]);
        assert_eq!(stats["s"]["n"].sum, 2.0);
    }

    #[tokio::test]
    async fn what_is_no_reply_is_an_error_and_takes_no_memory() {
        let huge = RETURNED.replace("[1,2]", "[4000000000,4000000000]");
        let large = RETURNED.replace("[1,2]", "[1,2000000000]");
        let cases: [(Vec<u8>, &str); 6] = [
            (frame("Hello from print()", b""), "expected value"),
            (b"Hello from a library that writes where it should not".to_vec(), "a header of"),
            (frame(&huge, &[0; 12]), "is larger than its frame"),
            (frame(&large, &[0; 12]), "is larger than its frame"),
            (frame(RETURNED, &[0; 13]), "1 bytes that no tensor asks for"),
            (frame(RETURNED, &[0; 12])[..60].to_vec(), "eof"),
        ];
        for (bytes, told) in cases {
            let error = read_all(&bytes).await.unwrap_err();
            assert!(error.contains(told), "{error} does not say {told}");
        }
    }
}
