//! Keeps the generator of one run at work: starts it, starts it again when it crashes, stops it.
//!
//! What is wanted stands in one place and is changed at once; a task per run makes it so. So a start is answered
//! without waiting, two starts cannot cross, and what came last counts. All that happens is noted on the ledger of the
//! run; a run whose state there is `running` is gone on with when the server starts again.

use rollyard_core::ledger::{Command, GeneratorState};
use rollyard_engine::task::Progress;
use rollyard_store::yard::Yard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Generators;
use super::life::{self, End};
use super::log::Log;
use super::work::Work;

const PAUSE_LONGEST: Duration = Duration::from_secs(60);

/// Of what is noted; the rest is in the log.
const TOLD_BYTES_MAX: usize = 2000;

#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) yard: Yard,
    pub(super) log: Arc<Log>,
    wanted: watch::Sender<Wanted>,
    seen: Mutex<Seen>,
    /// Cancelled when the server stops, or the run goes to another node: its state stays as it is.
    leaving: CancellationToken,
    /// True once nothing runs any more.
    over: watch::Sender<bool>,
}

#[derive(Clone, Debug, Default)]
enum Wanted {
    /// Nothing more than is.
    #[default]
    Nothing,
    Work(Arc<Work>),
    Stop,
}

impl Wanted {
    fn is(&self, work: &Arc<Work>) -> bool {
        matches!(self, Self::Work(wanted) if Arc::ptr_eq(wanted, work))
    }
}

/// What can be seen of it from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) work: Option<Arc<Work>>,
    pub(super) pid: Option<u32>,
    pub(super) restarts: u32,
    pub(super) progress: Option<Arc<Progress>>,
    /// Why it crashed last, until it is started for something else.
    pub(super) problem: Option<String>,
}

/// What a start came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    New,
    /// The same work is under way already.
    Running,
    /// Other work was under way, and is stopped.
    Replaced,
}

impl Started {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::New => "started",
            Self::Running => "running",
            Self::Replaced => "replaced",
        }
    }
}

impl Supervisor {
    pub(super) fn new(yard: Yard, stopping: &CancellationToken) -> Self {
        let log = Arc::new(Log::new(yard.run_name().as_str()));
        let (leaving, over) = (stopping.child_token(), watch::Sender::new(false));
        Self { yard, log, wanted: watch::Sender::default(), seen: Mutex::default(), leaving, over }
    }

    /// Ends what runs, to be gone on with elsewhere. Returns when it has ended.
    pub(super) async fn dismiss(&self) {
        self.leaving.cancel();
        let mut over = self.over.subscribe();
        // An error is a sender that is gone, and with it all that could run.
        let _gone = over.wait_for(|is_over| *is_over).await;
    }

    pub(super) fn start(&self, work: Work) -> Started {
        let mut started = Started::New;
        self.wanted.send_if_modified(|wanted| {
            started = match wanted {
                Wanted::Work(known) if known.is_same(&work) => Started::Running,
                Wanted::Work(_) => Started::Replaced,
                Wanted::Nothing | Wanted::Stop => Started::New,
            };
            let is_other = started != Started::Running;
            if is_other {
                *wanted = Wanted::Work(Arc::new(work));
            }
            is_other
        });
        started
    }

    /// Wants it to stop, without waiting for that.
    pub(super) fn ask_to_stop(&self) {
        self.wanted.send_replace(Wanted::Stop);
    }

    /// Returns when it has stopped.
    pub(super) async fn stop(&self) {
        self.ask_to_stop();
        let mut wanted = self.wanted.subscribe();
        // An error is a sender that is gone, and with it all that could run.
        let _gone = wanted.wait_for(|wanted| !matches!(wanted, Wanted::Stop)).await;
    }

    pub(super) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the server stops, or the run goes elsewhere.
    pub(super) async fn supervise(self: Arc<Self>, generators: Arc<Generators>) {
        self.look_after(&generators).await;
        self.over.send_replace(true);
    }

    async fn look_after(&self, generators: &Arc<Generators>) {
        let mut wanted = self.wanted.subscribe();
        while !self.leaving.is_cancelled() {
            let now = wanted.borrow_and_update().clone();
            match now {
                Wanted::Work(work) => {
                    *self.lock() = Seen { work: Some(Arc::clone(&work)), ..Seen::default() };
                    self.carry_out(generators, &work).await;
                    continue;
                }
                Wanted::Stop => {
                    self.note_stopped().await;
                    self.wanted.send_if_modified(|wanted| {
                        let is_done = matches!(wanted, Wanted::Stop);
                        if is_done {
                            *wanted = Wanted::Nothing;
                        }
                        is_done
                    });
                    continue;
                }
                Wanted::Nothing => {}
            }
            tokio::select! {
                _ = wanted.changed() => {}
                () = self.leaving.cancelled() => {}
            }
        }
    }

    /// From the start to the end of a piece of work, over all crashes.
    async fn carry_out(&self, generators: &Arc<Generators>, work: &Arc<Work>) {
        let first = self.admitted().await;
        let mut resumes = work.resumes;
        let mut failures: u32 = 0;
        loop {
            let before = self.admitted().await;
            let end = life::live(self, generators, work, resumes, self.until_unwanted(work)).await;
            let now = self.admitted().await;
            let why = match end {
                End::Stopped => return self.note_replaced().await,
                End::Done(told) => {
                    let told = format!("{told}{} rollouts came in meanwhile", now.saturating_sub(first));
                    return self.conclude(work, GeneratorState::Finished, told).await;
                }
                End::Hopeless(why) => {
                    return self.conclude(work, GeneratorState::Failed, self.with_next_step(&why)).await;
                }
                End::Crashed(why) => why,
            };
            // What came in since is progress: whatever happened may not happen again.
            failures = if now > before { 1 } else { failures + 1 };
            self.lock().problem = Some(why.clone());
            if failures > generators.settings.generator_restarts {
                let why = format!("{why}; that was {failures} times in a row without a rollout");
                return self.conclude(work, GeneratorState::Failed, self.with_next_step(&why)).await;
            }
            let pause = pause_after(failures);
            self.note(None, format!("{why}; started again in {} s", pause.as_secs())).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.until_unwanted(work) => return self.note_replaced().await,
            }
            self.lock().restarts += 1;
            resumes = true;
        }
    }

    /// Until something else is wanted than this work, or the server stops.
    fn until_unwanted(&self, work: &Arc<Work>) -> impl Future<Output = ()> + Send + use<> {
        let (mut wanted, leaving) = (self.wanted.subscribe(), self.leaving.clone());
        let work = Arc::clone(work);
        async move {
            tokio::select! {
                _ = wanted.wait_for(|wanted| !wanted.is(&work)) => {}
                () = leaving.cancelled() => {}
            }
        }
    }

    /// The work is over. It stops being wanted before that is noted, so that a start in between begins anew.
    async fn conclude(&self, work: &Arc<Work>, state: GeneratorState, told: String) {
        self.wanted.send_if_modified(|wanted| {
            let is_this = wanted.is(work);
            if is_this {
                *wanted = Wanted::Nothing;
            }
            is_this
        });
        self.note(Some(state), told).await;
    }

    async fn note_replaced(&self) {
        // A server that stops leaves the state as it is: the next one goes on.
        let is_replaced = matches!(*self.wanted.borrow(), Wanted::Work(_)) && !self.leaving.is_cancelled();
        if is_replaced {
            self.note(None, "stopped, because the run was started with something else".to_owned()).await;
        }
    }

    async fn note_stopped(&self) {
        let state = self.yard.ask(|ledger| ledger.generator().map(|known| known.state)).await;
        if matches!(state, Ok(Some(GeneratorState::Running))) {
            self.note(Some(GeneratorState::Stopped), "stopped on request".to_owned()).await;
        }
    }

    /// On the ledger, and in the log.
    pub(super) async fn note(&self, state: Option<GeneratorState>, told: String) {
        let told = shortened(&told);
        self.log.push(&match state {
            Some(state) => format!("generator {}: {told}", state.name()),
            None => format!("generator: {told}"),
        });
        if let Err(error) = self.yard.run(Command::Note { state, told }).await {
            tracing::warn!(run = %self.yard.run_name(), "what happened to the generator is not noted: {error}");
        }
    }

    async fn admitted(&self) -> u64 {
        self.yard.ask(|ledger| ledger.books().admitted).await.unwrap_or_default()
    }

    fn with_next_step(&self, why: &str) -> String {
        let run = self.yard.run_name();
        format!(
            "{why}; mend it, then go on with POST /api/runs/{run}/generator/start or another /start_rollout"
        )
    }
}

/// 1 s, 2 s, 4 s, … 60 s.
fn pause_after(failures: u32) -> Duration {
    let secs = 1u64.checked_shl(failures.saturating_sub(1)).filter(|secs| *secs > 0).unwrap_or(u64::MAX);
    Duration::from_secs(secs).min(PAUSE_LONGEST)
}

/// The beginning and the end of a long text: what happened, and the last line of a traceback.
fn shortened(told: &str) -> String {
    if told.len() <= TOLD_BYTES_MAX {
        return told.to_owned();
    }
    // Of each half so much that the dots fit between them.
    let half = TOLD_BYTES_MAX / 2 - 4;
    let is_between = |at: &usize| told.is_char_boundary(*at);
    let begin = (0..=half).rev().find(is_between).and_then(|end| told.get(..end));
    let end = (told.len() - half..told.len()).find(is_between).and_then(|begin| told.get(begin..));
    format!("{} … {}", begin.unwrap_or_default(), end.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let secs: Vec<u64> = (1..9).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause_after(u32::MAX), PAUSE_LONGEST);
    }

    #[test]
    fn a_long_story_keeps_its_beginning_and_its_end() {
        for text in ["short".to_owned(), format!("begin {} end", "é".repeat(5000))] {
            let told = shortened(&text);
            assert!(told.len() <= TOLD_BYTES_MAX, "{}", told.len());
            assert_eq!(told.get(..5), text.get(..5));
            assert!(told.ends_with(text.get(text.len() - 3..).unwrap()));
        }
    }
}
