//! What every dialect can ask for, made into questions for the engine.

use rollyard_engine::generate::GenerationConfig;

use super::refusal::Refusal;
use crate::engine::{Ask, WhenCut};

/// The questions of one request, in order. Their answers are told by their place in it.
pub(super) type Asks = Vec<Ask>;

/// As many alternatives as the engine tells.
const TOPS_MAX: usize = 20;
/// Answers to one request.
const ASKS_MAX: usize = 1024;

/// What a request comes down to.
#[derive(Debug)]
pub(super) struct Wish {
    /// Each with the name of its request.
    pub(super) prompts: Vec<(String, Vec<i32>)>,
    /// Answers to each prompt.
    pub(super) n: usize,
    pub(super) sampling: GenerationConfig,
    pub(super) ignore_eos: bool,
    /// How many of the likeliest tokens are told.
    pub(super) tops: usize,
}

impl Wish {
    /// All answers to the first prompt, then all to the second.
    pub(super) fn asks(self) -> Result<Asks, Refusal> {
        let Self { prompts, n, sampling, ignore_eos, tops } = self;
        let most = ASKS_MAX / prompts.len().max(1);
        if n == 0 || n > most {
            return Err(Refusal::wrong("n", n, &format!("between 1 and {most}")));
        }
        let each = |(rid, prompt)| {
            let ask = Ask {
                rid,
                prompt,
                sampling: sampling.clone(),
                nth: 0,
                tops,
                ignore_eos,
                when_cut: WhenCut::Answer,
            };
            (0..n as u64).map(move |nth| Ask { nth, ..ask.clone() })
        };
        Ok(prompts.into_iter().flat_map(each).collect())
    }
}

/// How many of the likeliest tokens are told.
pub(super) fn check_tops(field: &str, count: usize) -> Result<usize, Refusal> {
    match count <= TOPS_MAX {
        true => Ok(count),
        false => Err(Refusal::wrong(field, count, &format!("at most {TOPS_MAX}"))),
    }
}

/// All tokens: -1, as SGLang and vLLM write it.
pub(super) fn read_top_k(given: Option<i64>) -> Result<Option<u32>, Refusal> {
    match given {
        None | Some(-1) => Ok(None),
        Some(count) => match u32::try_from(count) {
            Ok(some) if some > 0 => Ok(Some(some)),
            _ => Err(Refusal::wrong("top_k", count, "at least 1, or -1 for all tokens")),
        },
    }
}
