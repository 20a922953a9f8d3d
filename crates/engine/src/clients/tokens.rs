//! A generation in token ids, through interruptions.
//!
//! An interrupted answer is kept and sent back as a longer prompt, with what is left of its budget. So the
//! tokens are those that were sampled, each piece with the version of the weights that sampled it. A connection that
//! breaks in the middle of a stream is such an interruption too.

use std::time::Duration;
use tokio::time::timeout;

use super::HttpEngine;
use super::answer::{End, Flaw, Piece};
use super::ask::{Attempts, Call, Names, Open, Origin};
use super::config::Dialect;
use super::draft::{Draft, SoFar};
use super::http::Wire;
use super::stream::Hearing;
use super::{sglang, vllm};
use crate::generate::{EngineError, GenerationConfig, Listener, ModelResponse, StopReason};

/// Behind the end of an answer nothing is waited for, but a connection that is read to its end can be used again.
const LAST_BYTES_WITHIN: Duration = Duration::from_millis(500);

/// How one request ended.
struct Heard {
    end: End,
    text: Option<String>,
    /// `None` if the tokens are in the draft, or else the version of an answer that has none.
    text_version: Option<i32>,
}

impl HttpEngine {
    /// What is told cannot be taken back, so where an answer may have to be begun anew, or may have no tokens, it is
    /// asked for as a whole.
    pub(super) async fn generate_tokens(
        &self,
        mut names: Names,
        prompt: Vec<i32>,
        gconfig: GenerationConfig,
        session: Option<&str>,
        listener: Option<Listener<'_>>,
    ) -> Result<ModelResponse, EngineError> {
        self.require_tokens()?;
        let model = match self.config.dialect {
            Dialect::Vllm => Some(self.model().await?),
            Dialect::Sglang | Dialect::Openai => None,
        };
        let model = model.as_deref().unwrap_or_default();
        let has_schema = gconfig.json_schema.is_some();
        let streams = listener.is_some() && self.config.exact && !has_schema;
        let wire = if streams { Wire::Stream } else { Wire::Whole };
        let mut draft = Draft::new(prompt, gconfig, listener);
        let mut attempts = Attempts::default();
        let mut stalls = 0;
        loop {
            draft.begin_piece();
            let so_far = draft.so_far();
            let question = |rid: &str| self.question(rid, model, so_far, wire);
            let open =
                self.line.open(Call::Tokens, wire, &mut names, session, &mut attempts, question).await?;
            let heard = if open.answer.is_stream() {
                self.follow(open, &mut draft).await
            } else {
                self.take_whole(open, &mut draft, has_schema).await
            };
            if draft.progressed() {
                attempts.progressed();
                stalls = 0;
            }
            let (heard, origin) = match heard {
                Ok(heard) => heard,
                // All tokens are there, and only their end is missing.
                Err((error, _)) if error.may_pass() && draft.is_full() => {
                    tracing::debug!(%error, "an answer was complete before its connection broke");
                    return Ok(draft.into_response(StopReason::Length, None));
                }
                Err((error, origin)) => {
                    self.line.failed(&mut attempts, &origin, error.into()).await?;
                    continue;
                }
            };
            attempts = Attempts::default();
            match (heard.end, heard.text_version) {
                (End::Done(reason), None) => return Ok(draft.into_response(reason, heard.text)),
                (End::Done(reason), Some(version)) => {
                    return Ok(draft.into_text_only(heard.text, version, reason));
                }
                (End::Cut, _) if draft.is_full() => {
                    return Ok(draft.into_response(StopReason::Length, heard.text));
                }
                (End::Cut, _) if draft.progressed() => {}
                (End::Cut, _) => self.wait_out(&mut stalls, &origin).await?,
            }
        }
    }

    /// An answer that comes at once.
    async fn take_whole(
        &self,
        open: Open,
        draft: &mut Draft<'_>,
        has_schema: bool,
    ) -> Result<(Heard, Origin), (EngineError, Origin)> {
        let reply = open.whole().await?;
        let origin = reply.origin;
        let refuse = |flaw: Flaw| (flaw.at(origin.url()), origin.clone());
        let piece = super::read_answer(self.config.dialect, &reply.bytes, self.config.exact);
        let Piece { tokens, text, end, version } = piece.map_err(refuse)?;
        let version = version.unwrap_or(origin.version);
        // A schema allows whole answers, so half of one cannot be gone on from.
        let is_kept = !(has_schema && end == End::Cut);
        let text_version = tokens.is_none().then_some(version);
        match tokens {
            Some(tokens) if is_kept => draft.push(tokens, version).map_err(refuse)?,
            None if draft.sampled() > 0 => {
                return Err(refuse(Flaw::Bad(
                    "its first answer had token ids, but this one has none".into(),
                )));
            }
            _ => {}
        }
        Ok((Heard { end, text, text_version }, origin))
    }

    /// An answer that comes token by token. What was received of it stays in the draft, however it ends.
    async fn follow(
        &self,
        mut open: Open,
        draft: &mut Draft<'_>,
    ) -> Result<(Heard, Origin), (EngineError, Origin)> {
        let mut hearing = Hearing::new(self.config.dialect);
        let pinned = open.origin.version;
        let end = loop {
            let bytes = match open.answer.next().await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    let reason = "the answer ended in its middle".to_owned();
                    let error = EngineError::Unreachable { reason, url: open.origin.url().to_owned() };
                    return Err((error.clone(), open.ended(Some(&error))));
                }
                Err(error) => return Err((error.clone(), open.ended(Some(&error)))),
            };
            let read = hearing.read(&bytes, |tokens, version| draft.push(tokens, version.unwrap_or(pinned)));
            // Here the server still computes: it is aborted, for `open` is dropped before its end.
            read.map_err(|flaw| (flaw.at(open.origin.url()), open.origin.clone()))?;
            match hearing.end() {
                Some(end) => break end,
                None if hearing.is_done() => {
                    let flaw = Flaw::Bad("no finish reason".into());
                    return Err((flaw.at(open.origin.url()), open.origin.clone()));
                }
                None => {}
            }
        };
        let _closed =
            timeout(LAST_BYTES_WITHIN, async { while let Ok(Some(_)) = open.answer.next().await {} }).await;
        let text = Some(hearing.into_text());
        Ok((Heard { end, text, text_version: None }, open.ended(None)))
    }

    fn require_tokens(&self) -> Result<(), EngineError> {
        if self.config.dialect.speaks_tokens() {
            return Ok(());
        }
        let url = self.config.urls.first().cloned().unwrap_or_default();
        let hint = "send messages, or use an engine that speaks sglang or vllm";
        Err(EngineError::NotExact { what: "token ids in the dialect openai", hint, url })
    }

    fn question(&self, rid: &str, model: &str, so_far: SoFar<'_>, wire: Wire) -> Vec<u8> {
        let SoFar { sequence, sampled, rest } = so_far;
        match self.config.dialect {
            Dialect::Sglang => sglang::question(rid, sequence, rest, wire),
            Dialect::Vllm | Dialect::Openai => vllm::question(rid, model, sequence, sampled, rest, wire),
        }
    }
}
