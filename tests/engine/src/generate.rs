//! One generation: the tokens, how long they take, and what interrupts them.

use std::future::pending;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::engine::Engine;
use crate::model::{STOP_TOKEN, Sequence};
use crate::settings::Settings;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) rid: &'a str,
    pub(crate) prompt: &'a [i32],
    pub(crate) seed: u64,
    pub(crate) max: u32,
    pub(crate) min: u32,
    pub(crate) stop_token_ids: &'a [i32],
}

#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) tokens: Vec<i32>,
    pub(crate) end: End,
    /// Of the weights that sampled it.
    pub(crate) version: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Length,
    Abort,
}

impl End {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
        }
    }
}

pub(crate) async fn generate(engine: &Engine, settings: &Settings, question: Question<'_>) -> Generation {
    let mut generation = sample(settings, question);
    let given = wait(engine, settings, question.rid, generation.tokens.len()).await;
    if let Some(given) = given {
        generation.tokens.truncate(given);
        generation.end = End::Abort;
    }
    ended(engine, settings, generation.end, generation.tokens.len());
    generation
}

/// What an end brings about, after so many tokens.
pub(crate) fn ended(engine: &Engine, settings: &Settings, end: End, given: usize) {
    if end != End::Abort {
        return;
    }
    if settings.version_grows_with_aborts {
        engine.settings().version += 1;
    }
    keep_script(engine, settings, given);
}

/// An interrupted generation is gone on with by the next one.
pub(crate) fn keep_script(engine: &Engine, settings: &Settings, given: usize) {
    if let Some(rest) = settings.token_answers.first().and_then(|script| script.get(given..)) {
        engine.settings().token_answers.insert(0, rest.to_vec());
    }
}

pub(crate) fn sample(settings: &Settings, question: Question<'_>) -> Generation {
    if let Some(script) = settings.token_answers.first() {
        return follow_script(settings, script, question.max);
    }
    let mut sequence = Sequence::new(question.prompt, question.seed);
    let mut tokens = Vec::with_capacity(question.max as usize);
    let mut end = End::Length;
    for at in 0..question.max {
        if settings.abort_after == Some(at) {
            end = End::Abort;
            break;
        }
        let may_stop = at + 1 >= question.min;
        let stops = may_stop && sequence.stops(settings.stop_one_in);
        let token = if stops { STOP_TOKEN } else { sequence.next(settings.vocabulary) };
        tokens.push(token);
        if stops || (may_stop && question.stop_token_ids.contains(&token)) {
            end = End::Stop;
            break;
        }
        sequence.push(token);
    }
    Generation { tokens, end, version: settings.version }
}

fn follow_script(settings: &Settings, script: &[i32], max: u32) -> Generation {
    let most = settings.abort_after.map_or(max, |after| after.min(max)) as usize;
    let tokens: Vec<i32> = script.iter().copied().take(most).collect();
    let end = match tokens.len() {
        all if all == script.len() => End::Stop,
        len if len == max as usize => End::Length,
        _ => End::Abort,
    };
    Generation { tokens, end, version: settings.version }
}

/// Lets the time pass that the tokens take. If they are aborted, says how many there were by then.
async fn wait(engine: &Engine, settings: &Settings, rid: &str, tokens: usize) -> Option<usize> {
    let per_token = settings.latency_ms_per_token;
    if settings.latency_ms == 0 && per_token == 0.0 && !settings.hang {
        return None;
    }
    let mut aborts = engine.watch_aborts();
    let since = *aborts.borrow_and_update();
    let began = Instant::now() + Duration::from_millis(settings.latency_ms);
    let done = began + Duration::from_secs_f64(per_token * tokens as f64 / 1000.0);
    let passes = async {
        if settings.hang {
            pending::<()>().await;
        }
        sleep_until(done).await;
    };
    tokio::select! {
        () = passes => None,
        () = aborted(engine, rid, since, &mut aborts) => {
            let passed = Instant::now().saturating_duration_since(began).as_secs_f64() * 1000.0;
            let given = if per_token > 0.0 { (passed / per_token) as usize } else { 0 };
            Some(given.min(tokens))
        }
    }
}

/// Waits until a request is aborted that began when `since` calls to abort had been made.
pub(crate) async fn aborted(engine: &Engine, rid: &str, since: u64, aborts: &mut watch::Receiver<u64>) {
    while !engine.is_aborted(rid, since) {
        if aborts.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}
