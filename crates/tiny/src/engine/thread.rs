//! The thread that owns the model: takes texts in, reads on in all of them, samples, lets them go.

use rollyard_core::tokens::Tokenizer;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::EngineSettings;
use super::ask::{AskError, Ended, WhenCut};
use super::desk::{Desk, Job, Note, Picked};
use super::model::Model;
use super::sampling::Picker;
use super::text::Text;
use crate::model::{DecoderError, Feed, SlotId};

#[derive(Debug)]
pub(super) struct Sampling {
    model: Model,
    /// Of the model's weights.
    version: i32,
    desk: Arc<Desk>,
    tokenizer: Arc<Tokenizer>,
    settings: EngineSettings,
    eos: Vec<i32>,
    texts: Vec<Text>,
    paused: bool,
    picker: Picker,
}

/// However the thread ends, nobody waits for it any longer.
struct Closing(Arc<Desk>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Sampling {
    pub(super) fn new(
        model: Model,
        version: i32,
        desk: Arc<Desk>,
        tokenizer: Arc<Tokenizer>,
        settings: EngineSettings,
    ) -> Self {
        let eos = tokenizer.config().special.get("eos_token");
        let eos = eos.and_then(|token| tokenizer.encoder().token_to_id(token));
        let eos = eos.and_then(|id| i32::try_from(id).ok()).into_iter().collect();
        let (texts, picker) = (Vec::new(), Picker::default());
        Self { model, version, desk, tokenizer, settings, eos, texts, paused: false, picker }
    }

    pub(super) fn run(mut self) {
        let _closing = Closing(Arc::clone(&self.desk));
        while self.take_in() {
            self.step();
            self.let_go();
        }
    }

    /// Waits until there is something to sample. False when nobody will ask any more.
    fn take_in(&mut self) -> bool {
        loop {
            let free =
                if self.paused { 0 } else { self.settings.texts_max.max(1).saturating_sub(self.texts.len()) };
            let idle = self.paused || self.texts.is_empty();
            let Some(Picked { notes, jobs }) = self.desk.pick(free, idle) else { return false };
            for text in self.texts.iter_mut().filter(|text| text.is_cancelled()) {
                text.outcome = Some(Ok(Ended::Cut));
            }
            // Before the notes, which concern all that is asked so far.
            jobs.into_iter().for_each(|job| self.admit(job));
            notes.into_iter().for_each(|note| self.heed(note));
            self.let_go();
            if !self.paused && !self.texts.is_empty() {
                return true;
            }
        }
    }

    fn admit(&mut self, job: Job) {
        let decoder = self.model.decoder_mut();
        let mut text = Text::new(job, decoder.begin(), &self.eos, decoder.context());
        // An answer of no tokens is complete from the beginning.
        text.outcome = text.end(&self.tokenizer).map(Ok);
        self.texts.push(text);
    }

    fn heed(&mut self, note: Note) {
        match note {
            Note::Update { weights, version, done } => {
                let taken = self.model.take(weights);
                if taken.is_ok() {
                    self.version = version;
                    self.desk.counters.version.store(version, Ordering::Release);
                    for text in &mut self.texts {
                        text.forget();
                        // Without a token there is nothing that the old weights said.
                        if text.sampled() > 0 {
                            interrupt(text);
                        }
                    }
                }
                // Before anybody hears of the new version, what the old one said is on its way.
                self.let_go();
                let _gone = done.send(taken);
            }
            Note::Pause { done } => {
                self.pause(true);
                self.texts.iter_mut().for_each(interrupt);
                self.answer_waiting(|ask| ask.when_cut == WhenCut::Answer);
                self.let_go();
                let _gone = done.send(());
            }
            Note::Resume { done } => {
                self.pause(false);
                let _gone = done.send(());
            }
            Note::Abort { rid, done } => {
                let meant = |name: &str| rid.as_deref().is_none_or(|rid| rid == name);
                let mut count = self.answer_waiting(|ask| meant(&ask.rid));
                for text in self.texts.iter_mut().filter(|text| meant(&text.rid)) {
                    count += usize::from(text.outcome.is_none());
                    text.outcome.get_or_insert(Ok(Ended::Cut));
                }
                self.let_go();
                let _gone = done.send(count);
            }
        }
    }

    fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.desk.counters.paused.store(paused, Ordering::Relaxed);
    }

    /// Requests that have not begun end without a token.
    fn answer_waiting(&mut self, meant: impl Fn(&super::Ask) -> bool) -> usize {
        let jobs = self.desk.withdraw(meant);
        let count = jobs.len();
        for job in jobs {
            let mut text = Text::new(job, SlotId(usize::MAX), &[], 0);
            text.outcome = Some(Ok(Ended::Cut));
            text.finish();
        }
        count
    }

    /// One token for every text, but for new ones that would take too long to read beside the others.
    fn step(&mut self) {
        let mut budget = self.settings.prefill_tokens_max.max(1);
        let mut any = false;
        for text in &mut self.texts {
            let tokens = text.unread().len();
            text.steps = tokens <= 1 || tokens <= budget || !any;
            if text.steps && tokens > 1 {
                budget = budget.saturating_sub(tokens);
                any = true;
            }
        }
        let stepping = self.texts.iter().filter(|text| text.steps);
        let feeds: Vec<Feed<'_>> =
            stepping.map(|text| Feed { slot: text.slot, tokens: text.unread() }).collect();
        let logits = forward(&mut self.model, &feeds);
        let vocabulary = self.model.decoder().vocabulary();
        match logits {
            Ok(logits) => {
                let rows = logits.chunks_exact(vocabulary);
                for (text, row) in self.texts.iter_mut().filter(|text| text.steps).zip(rows) {
                    text.grow(row, self.version, &mut self.picker, &self.tokenizer);
                }
            }
            Err(error) => {
                tracing::warn!(%error, texts = feeds.len(), "the model failed; each text is tried alone");
                self.step_alone();
            }
        }
        let sampled =
            self.texts.iter().filter(|text| text.steps && !matches!(text.outcome, Some(Err(_)))).count();
        self.desk.counters.sampled.fetch_add(sampled as u64, Ordering::Relaxed);
    }

    /// Finds out which text the model fails on, so that only that one does. What the model knew of them may be
    /// anything by now, so each begins anew.
    fn step_alone(&mut self) {
        for text in self.texts.iter_mut().filter(|text| text.steps) {
            self.model.decoder_mut().end(text.slot);
            text.slot = self.model.decoder_mut().begin();
            text.forget();
            match forward(&mut self.model, &[Feed { slot: text.slot, tokens: text.unread() }]) {
                Ok(logits) => text.grow(&logits, self.version, &mut self.picker, &self.tokenizer),
                Err(error) => text.outcome = Some(Err(failed(error))),
            }
        }
    }

    /// Answers what is complete, and frees its place.
    fn let_go(&mut self) {
        for text in self.texts.extract_if(.., |text| text.outcome.is_some()) {
            self.model.decoder_mut().end(text.slot);
            text.finish();
        }
        self.desk.counters.running.store(self.texts.len(), Ordering::Relaxed);
    }
}

fn interrupt(text: &mut Text) {
    match text.when_cut {
        WhenCut::GoOn => text.cut(),
        WhenCut::Answer => {
            text.outcome.get_or_insert(Ok(Ended::Cut));
        }
    }
}

fn forward(model: &mut Model, feeds: &[Feed<'_>]) -> Result<Vec<f32>, DecoderError> {
    let decoder = model.decoder_mut();
    let logits = decoder.forward(feeds)?;
    let want = feeds.len() * decoder.vocabulary();
    match logits.len() == want {
        true => Ok(logits),
        false => Err(DecoderError::Model(format!("it gave {} logits instead of {want}", logits.len()))),
    }
}

fn failed(error: DecoderError) -> AskError {
    match error {
        DecoderError::Model(reason) => AskError::Failed(reason),
        other => AskError::bad("prompt", other.to_string()),
    }
}
