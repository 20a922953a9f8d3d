use super::*;
use crate::episode::{Context, Sample, Trajectory, Workflow};
use crate::episode::{Data, EpisodeError};
use crate::generate::{Capabilities, Engine, EngineError, ModelRequest, ModelResponse, Segment};
use crate::group::{Incomplete, Member, Outcome, episode_seed};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// An engine of which only the version is asked.
#[derive(Debug, Default)]
struct Weights(AtomicI32);

impl Engine for Weights {
    fn generate(&self, _: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>> {
        Box::pin(async { Err(EngineError::Closed) })
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { token_ids: true, logprobs: true, versions: true }
    }
    fn version(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }
    fn set_version(&self, version: i32) {
        self.0.store(version, Ordering::Relaxed);
    }
    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A workflow given by what it does with an episode.
struct By<F>(F);

impl<F> fmt::Debug for By<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("By")
    }
}

type Ended = Result<Option<Trajectory>, EpisodeError>;

impl<F, R> Workflow for By<F>
where
    F: Fn(SharedEngine, Context) -> R + Send + Sync,
    R: Future<Output = Ended> + Send + 'static,
{
    fn run_episode<'a>(
        &'a self,
        engine: &'a SharedEngine,
        _: &'a Data,
        context: &'a Context,
    ) -> BoxFuture<'a, Ended> {
        Box::pin((self.0)(Arc::clone(engine), context.clone()))
    }
}

/// One sample whose tokens have this version.
fn sampled(version: i32) -> Trajectory {
    let segments = vec![Segment { tokens: 1, version }];
    Trajectory { samples: vec![Sample { segments, ..Sample::default() }], tensors: None }
}

fn task<F, R>(group_size: u32, episode: F) -> Task
where
    F: Fn(SharedEngine, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Ended> + Send + 'static,
{
    Task {
        id: None,
        data: Arc::new(Data::parse("{}").unwrap()),
        workflow: Arc::new(By(episode)),
        group_size: NonZeroU32::new(group_size).unwrap(),
        accept: None,
        is_eval: false,
    }
}

fn good() -> Task {
    task(1, |engine, _| async move { Ok(Some(sampled(engine.version()))) })
}

fn config(max_concurrent: u32, batch: u32, most: Option<u32>) -> ExecutorConfig {
    ExecutorConfig::new(Pace {
        max_concurrent: NonZeroU32::new(max_concurrent).unwrap(),
        batch: NonZeroU32::new(batch).unwrap(),
        max_head_offpolicyness: most,
    })
}

fn executor(config: ExecutorConfig) -> Executor {
    Executor::new(Arc::new(Weights::default()), config, Vec::new(), Handle::current())
}

fn broken(message: &str) -> EpisodeError {
    EpisodeError::Workflow(message.to_owned())
}

fn balanced(counts: Counts) -> bool {
    let Counts { submitted, enqueued, running, accepted, rejected, failed, .. } = counts;
    submitted == enqueued + running + accepted + rejected + failed
}

/// How each member of a group of four behaves: done, none, broken once, broken always.
fn group_of(members: &'static str, incomplete: Incomplete) -> (Executor, Task) {
    let mut config = config(1, 1, None);
    config.rules.incomplete = incomplete;
    config.rules.attempts = 2;
    let task = task(4, move |engine, context| async move {
        match members.as_bytes().get(context.sample_idx as usize) {
            Some(b'd') => Ok(Some(sampled(engine.version()))),
            Some(b'n') => Ok(None),
            Some(b'o') if context.attempt > 0 => Ok(Some(sampled(engine.version()))),
            Some(_) => Err(broken("no")),
            // In the place of another.
            None => Ok(Some(sampled(engine.version()))),
        }
    });
    (executor(config), task)
}

#[tokio::test(start_paused = true)]
async fn a_group_ends_as_its_members_and_its_policy_say() {
    let accept = |at_least| Incomplete::Accept { at_least };
    // Members, policy -> places of those kept, or why there are none.
    type Case = (&'static str, Incomplete, Result<&'static [u32], &'static str>);
    let cases: [Case; 14] = [
        ("dddd", accept(1), Ok(&[0, 1, 2, 3])),
        ("dnnd", accept(1), Ok(&[0, 3])),
        ("nnnn", accept(1), Err("rejected: the workflow returned nothing for any member")),
        ("doob", accept(1), Ok(&[0, 1, 2])),
        ("dbbb", accept(1), Ok(&[0])),
        ("dbbb", accept(2), Err("failed: only 1 of the 2 members wanted are left: no")),
        (
            "ddnn",
            accept(3),
            Err("rejected: only 2 of the 3 members wanted are left: the workflow returned nothing for 2"),
        ),
        ("bbbb", accept(1), Err("failed: only 0 of the 1 members wanted are left: no")),
        ("bnnn", accept(1), Err("failed: only 0 of the 1 members wanted are left: no")),
        ("dddb", Incomplete::Drop, Err("failed: only 3 of the 4 members wanted are left: no")),
        ("dddn", Incomplete::Drop, Ok(&[0, 1, 2])),
        ("dbdb", Incomplete::Replace, Ok(&[0, 2, 4, 5])),
        ("oooo", Incomplete::Wait, Ok(&[0, 1, 2, 3])),
        ("oodn", Incomplete::Replace, Ok(&[0, 1, 2])),
    ];
    for (members, incomplete, expected) in cases {
        let (executor, task) = group_of(members, incomplete);
        let id = executor.submit(task).unwrap();
        let found = match executor.wait(1, None).await {
            Ok(taken) => Ok(taken[0].trajectories().map(|(place, _)| place).collect::<Vec<_>>()),
            Err(_) => {
                let state = executor.inner.state();
                let Some(Err(status)) = state.verdict(id) else { panic!("{members}") };
                Err(format!("{}: {}", status.name(), status.reason().unwrap()))
            }
        };
        let expected = expected.map(<[u32]>::to_vec).map_err(str::to_owned);
        assert_eq!(found, expected, "{members} {incomplete:?}");
        assert!(balanced(executor.stats().counts));
    }
}

/// Counts how many are alive, also when they are dropped in the middle.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_given_up_leaves_no_sibling_behind() {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut config = config(4, 4, None);
    config.rules.incomplete = Incomplete::Drop;
    config.rules.attempts = 1;
    let executor = executor(config);
    let count = Arc::clone(&alive);
    let task = task(4, move |_, context| {
        let alive = Alive::new(&count);
        async move {
            let _alive = alive;
            if context.sample_idx == 2 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                return Err(broken("no"));
            }
            std::future::pending().await
        }
    });
    let id = executor.submit(task).unwrap();
    let error = executor.wait_for_task(id, None).await.unwrap_err();
    assert!(matches!(error, ExecutorError::TaskFailed { .. }), "{error}");
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_cancelled_stops_at_once() {
    let alive = Arc::new(AtomicUsize::new(0));
    let executor = executor(config(1, 4, None));
    let endless = || {
        let count = Arc::clone(&alive);
        task(2, move |_, _| {
            let alive = Alive::new(&count);
            async move {
                let _alive = alive;
                std::future::pending().await
            }
        })
    };
    let (first, second) = (executor.submit(endless()).unwrap(), executor.submit(endless()).unwrap());
    while alive.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    assert!(executor.cancel(second), "it waits in the queue");
    assert!(executor.cancel(first), "it runs");
    assert!(!executor.cancel(first), "it has ended");
    while alive.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
    let counts = executor.stats().counts;
    assert_eq!((counts.failed, counts.running, counts.enqueued), (2, 0, 0));
    assert!(balanced(counts));
}

#[tokio::test(start_paused = true)]
async fn a_run_in_which_everything_fails_ends_with_the_reasons() {
    let executor = executor(config(4, 4, None));
    let failing = |id: u64| {
        task(1, move |_, _| async move {
            Err(if id.is_multiple_of(3) { broken("out of memory") } else { broken("no route to host") })
        })
    };
    executor.submit_all((0..6).map(failing)).unwrap();
    let error = executor.idle().await.unwrap_err().to_string();
    assert_eq!(error, "all 6 tasks failed: 12 × no route to host; 6 × out of memory");
    let error = executor.wait(1, None).await.unwrap_err().to_string();
    assert!(error.starts_with("all 6 tasks failed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_burn_through_its_prompts_when_nothing_works() {
    let mut config = config(4, 4, None);
    config.failures_in_a_row_max = Some(20);
    config.rules.incomplete = Incomplete::Wait;
    let executor = executor(config);
    executor.submit(good()).unwrap();
    executor.wait(1, None).await.unwrap();
    executor
        .submit_all((0..1000).map(|_| task(1, |_, _| async { Err(broken("no route to host")) })))
        .unwrap();
    let error = executor.idle().await.unwrap_err().to_string();
    let expected = "20 attempts failed one after the other, so the run was stopped: 20 × no route to host";
    assert_eq!(error, expected);
    let counts = executor.stats().counts;
    assert!(balanced(counts) && counts.running == 0, "{counts:?}");
    assert_eq!(executor.submit(good()).unwrap_err().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_panics_or_never_returns_fails_alone() {
    let mut config = config(8, 8, None);
    config.rules.episode_timeout = Some(Duration::from_secs(5));
    config.rules.attempts = 1;
    let executor = executor(config);
    let panics = task(1, |_, _| async { panic!("a bug") });
    let hangs = task(1, |_, _| std::future::pending());
    let ids = executor.submit_all([panics, hangs, good()]).unwrap();
    for (id, expected) in [
        (ids[0], "task 0 failed: only 0 of the 1 members wanted are left: the workflow panicked: a bug"),
        (
            ids[1],
            "task 1 failed: only 0 of the 1 members wanted are left: the episode did not end within 5 s",
        ),
    ] {
        assert_eq!(executor.wait_for_task(id, None).await.unwrap_err().to_string(), expected);
    }
    assert!(executor.wait_for_task(ids[2], None).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_come_any_more_is_not_waited_for() {
    let executor = executor(config(4, 4, None));
    let none = || task(1, |_, _| async { Ok(None) });
    executor.submit_all([good(), none(), none()]).unwrap();
    let error = executor.wait(2, None).await.unwrap_err().to_string();
    let expected =
        "2 results were asked for, but only 1 can still come: 1 accepted, 2 rejected and 0 failed of 3 tasks";
    assert_eq!(error, expected);
    let error = executor.wait(2, Some(Duration::from_secs(3))).await.unwrap_err().to_string();
    assert_eq!(error, "2 results were asked for, but 1 were ready after 3 s: 0 running, 0 enqueued");
    assert_eq!(executor.wait(1, None).await.unwrap().len(), 1);
    let error = executor.wait_for_task(TaskId(77), None).await.unwrap_err().to_string();
    assert_eq!(error, "there is no task 77: it was never submitted, or was taken long ago");
}

#[tokio::test(start_paused = true)]
async fn the_filter_decides_and_its_own_failure_is_one() {
    let executor = executor(config(4, 4, None));
    let with =
        |accept: fn(&Finished) -> Result<bool, String>| Task { accept: Some(Arc::new(accept)), ..good() };
    let tasks = [with(|_| Ok(true)), with(|_| Ok(false)), with(|_| Err("KeyError: 'x'".to_owned()))];
    let taken = executor.rollout_batch(tasks, None).await.unwrap();
    assert_eq!(taken.iter().map(|finished| finished.id.0).collect::<Vec<_>>(), [0]);
    let counts = executor.stats().counts;
    assert_eq!((counts.accepted, counts.rejected, counts.failed), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_paused_executor_begins_nothing() {
    let executor = executor(config(4, 4, None));
    executor.pause();
    executor.submit_all([good(), good()]).unwrap();
    assert!(executor.wait(1, Some(Duration::from_secs(60))).await.is_err());
    let counts = executor.stats().counts;
    assert_eq!((counts.enqueued, counts.running), (2, 0));
    executor.resume();
    assert_eq!(executor.wait(2, None).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn evaluation_does_not_wait_behind_training() {
    let executor = executor(config(4, 1, Some(0)));
    executor.submit_all([good(), good(), good()]).unwrap();
    let eval = executor.submit(Task { is_eval: true, ..good() }).unwrap();
    assert!(executor.wait_for_task(eval, None).await.unwrap().is_some_and(|finished| finished.is_eval));
    assert_eq!(executor.wait(1, None).await.unwrap()[0].id.0, 0);
    // One batch a version: the others wait for the next.
    assert!(executor.wait(1, Some(Duration::from_secs(60))).await.is_err());
    executor.set_version(1);
    assert_eq!(executor.wait(1, None).await.unwrap()[0].id.0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_trainer_that_resumes_is_not_owed_the_batches_of_its_past() {
    let executor = executor(config(100, 2, Some(1)));
    executor.set_version(100);
    executor.submit_all((0..20).map(|_| good())).unwrap();
    assert!(executor.wait(5, Some(Duration::from_secs(60))).await.is_err());
    assert_eq!(executor.stats().counts.accepted, 4, "two batches of two, and not two hundred");
    executor.wait(2, None).await.unwrap();
    // Back to an older checkpoint: what waits is newer than that, and counts.
    executor.set_version(90);
    assert!(executor.wait(5, Some(Duration::from_secs(60))).await.is_err());
    assert_eq!(executor.stats().ready, 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_yard_holds_is_not_begun_again_and_what_it_drops_is() {
    let mut config = config(8, 2, Some(0));
    config.keep = false;
    let executor = executor(config);
    executor.charge(2);
    executor.submit_all((0..4).map(|_| good())).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(executor.stats().counts.accepted, 0);
    executor.charge(-1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(executor.stats().counts.accepted, 1);
    executor.charge(-100);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(executor.stats().counts.accepted, 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_yard_holds_still_counts_after_a_step_that_needed_nothing_new() {
    let mut config = config(8, 2, Some(1));
    config.keep = false;
    let executor = executor(config);
    executor.charge(4);
    executor.submit_all((0..8).map(|_| good())).unwrap();
    executor.set_version(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The step took two of the four; as many may be begun in their place, and no more.
    assert_eq!(executor.stats().counts.accepted, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dynamic_batch_is_what_was_accepted_of_as_many_as_settled() {
    let executor = executor(config(4, 4, Some(0)));
    let mut given = 0;
    let mut next = move || {
        given += 1;
        let none = given % 2 == 0;
        Ok(Some(task(1, move |engine, _| async move { Ok((!none).then(|| sampled(engine.version()))) })))
    };
    for version in 0..5 {
        executor.set_version(version);
        let batch = executor.prepare_batch(&mut next, true, None).await.unwrap();
        assert!((1..=4).contains(&batch.len()), "{}", batch.len());
        assert!(batch.iter().all(|finished| finished.head_version() == version));
    }
    executor.set_version(5);
    let batch = executor.prepare_batch(&mut next, false, None).await.unwrap();
    assert_eq!(batch.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_last_prompts_make_a_smaller_batch() {
    let executor = executor(config(4, 4, Some(0)));
    let mut left = 6;
    let mut next = move || {
        let task = (left > 0).then(good);
        left -= 1;
        Ok(task)
    };
    assert_eq!(executor.prepare_batch(&mut next, false, None).await.unwrap().len(), 4);
    executor.set_version(1);
    assert_eq!(executor.prepare_batch(&mut next, false, None).await.unwrap().len(), 2);
    let error = executor.prepare_batch(&mut next, false, None).await.unwrap_err().to_string();
    assert!(error.contains("only 0 can still come"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_could_never_be_begun_is_refused() {
    let executor = executor(config(2, 4, Some(0)));
    let error = executor.rollout_batch((0..5).map(|_| good()), None).await.unwrap_err().to_string();
    assert!(
        error.starts_with("5 groups were asked for at once, but only 4 more may be begun at version 0"),
        "{error}"
    );
    assert_eq!(executor.stats().counts.submitted, 0);
    assert_eq!(executor.rollout_batch((0..4).map(|_| good()), None).await.unwrap().len(), 4);
    let eval = (0..9).map(|_| Task { is_eval: true, ..good() });
    assert_eq!(executor.rollout_batch(eval, None).await.unwrap().len(), 9);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_never_gets_its_new_weights_does_not_run_for_ever() {
    let executor = executor(config(2, 4, Some(1)));
    executor.set_version(7);
    let mut next = || Ok(Some(task(1, |_, _| async { Ok(Some(sampled(0))) })));
    let error = executor.prepare_batch(&mut next, false, None).await.unwrap_err().to_string();
    assert!(error.starts_with("32 groups one after the other were too old when they ended"), "{error}");
    assert!(error.contains("their tokens are of version 0, and the executor was told 7"), "{error}");
    assert!(balanced(executor.stats().counts));
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_can_be_taken_again() {
    let executor = executor(config(4, 2, Some(0)));
    executor.submit_all([good(), good()]).unwrap();
    let taken = executor.wait(2, None).await.unwrap();
    executor.give_back(taken);
    assert_eq!((executor.stats().ready, executor.stats().capacity), (2, 0));
    let taken = executor.wait(2, None).await.unwrap();
    assert_eq!(taken.iter().map(|finished| finished.id.0).collect::<Vec<_>>(), [0, 1]);
    assert!(balanced(executor.stats().counts));
}

#[tokio::test(start_paused = true)]
async fn stragglers_are_seen_first() {
    let executor = executor(config(4, 4, None));
    let slow = |secs| {
        task(2, move |_, context| async move {
            tokio::time::sleep(Duration::from_secs(if context.sample_idx == 0 { 0 } else { secs })).await;
            Ok(None)
        })
    };
    executor.submit(slow(100)).unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    executor.submit(slow(100)).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let running = executor.running();
    assert_eq!(
        running.iter().map(|task| (task.id.0, task.members_done)).collect::<Vec<_>>(),
        [(0, 1), (1, 1)]
    );
    assert_eq!(running[0].age_secs, 11.0);
    assert_eq!(executor.stats().oldest_running_secs, 11.0);
}

#[derive(Debug, Default)]
struct Written {
    seen: Mutex<Vec<(u64, &'static str)>>,
    full_after: Option<usize>,
}

impl Sink for Written {
    fn put<'a>(&'a self, finished: &'a Finished) -> BoxFuture<'a, Result<(), String>> {
        let mut seen = self.seen.lock().unwrap();
        let full = self.full_after.is_some_and(|most| seen.len() >= most);
        if !full {
            seen.push((finished.id.0, finished.status.name()));
        }
        Box::pin(async move { if full { Err("no space left on device".to_owned()) } else { Ok(()) } })
    }
}

#[tokio::test(start_paused = true)]
async fn sinks_are_told_of_every_task_and_again_if_it_went_stale() {
    let sink = Arc::new(Written::default());
    let engine = Arc::new(Weights::default());
    let mut config = config(1, 2, Some(0));
    config.rules.attempts = 1;
    let executor = Executor::new(engine, config, vec![sink.clone()], Handle::current());
    let none = task(1, |_, _| async { Ok(None) });
    let bad = task(1, |_, _| async { Err(broken("no")) });
    executor.submit_all([none, bad, good(), good()]).unwrap();
    executor.idle().await.unwrap();
    assert_eq!(executor.wait(1, None).await.unwrap()[0].id.0, 2);
    executor.set_version(1);
    while sink.seen.lock().unwrap().len() < 5 {
        tokio::task::yield_now().await;
    }
    let expected = [(0, "rejected"), (1, "failed"), (2, "accepted"), (3, "accepted"), (3, "rejected")];
    assert_eq!(*sink.seen.lock().unwrap(), expected);
    assert_eq!(executor.stats().counts.stale, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_stops_when_what_it_makes_cannot_be_kept() {
    let sink = Arc::new(Written { full_after: Some(2), ..Written::default() });
    let engine = Arc::new(Weights::default());
    let executor = Executor::new(engine, config(1, 2, None), vec![sink], Handle::current());
    executor.submit_all((0..10).map(|_| good())).unwrap();
    let error = executor.idle().await.unwrap_err().to_string();
    assert_eq!(error, "what was made could not be kept, so the run was stopped: no space left on device");
    assert!(balanced(executor.stats().counts));
}

#[test]
fn an_episode_has_its_own_seed_and_the_same_every_time() {
    let seeds: BTreeSet<u64> =
        (0..100).flat_map(|task| (0..8).map(move |sample| episode_seed(7, task, sample))).collect();
    assert_eq!(seeds.len(), 800);
    assert!(seeds.iter().all(|seed| *seed < 1 << 31));
    assert_eq!(episode_seed(7, 3, 2), episode_seed(7, 3, 2));
    assert_ne!(episode_seed(7, 3, 2), episode_seed(8, 3, 2));
}

/// A hundred thousand at once: every step of the way must cost the same for the last as for the first.
#[tokio::test]
async fn a_hundred_thousand_prompts_are_run_and_taken() {
    let executor = executor(config(5_000, 64, None));
    let taken = executor.rollout_batch((0..100_000).map(|_| good()), None).await.unwrap();
    assert_eq!(taken.len(), 100_000);
    executor.submit_all((0..100_000).map(|_| good())).unwrap();
    assert_eq!(executor.wait(100_000, None).await.unwrap().len(), 100_000);
    executor.pause();
    executor.submit_all((0..100_000).map(|_| good())).unwrap();
    executor.close();
    assert!(balanced(executor.stats().counts));
}

#[derive(Clone, Debug)]
struct Scenario {
    batch: u32,
    most: u32,
    max_concurrent: u32,
    group_size: u32,
    /// Milliseconds, by task and member.
    latencies: Vec<u64>,
    /// Milliseconds that the trainer takes for each step.
    steps: Vec<u64>,
    dynamic: bool,
}

prop_compose! {
    fn scenario()(
        batch in 1u32..6, most in 0u32..4, max_concurrent in 1u32..24, group_size in 1u32..4,
        latencies in prop::collection::vec(prop_oneof![4 => 0u64..200, 1 => 500u64..5_000], 1..40),
        steps in prop::collection::vec(0u64..400, 1..30), dynamic in any::<bool>(),
    ) -> Scenario {
        Scenario { batch, most, max_concurrent, group_size, latencies, steps, dynamic }
    }
}

/// A trainer and its executor in virtual time. The weights change in the middle of episodes, whose first token
/// is sampled when they begin and whose last when they end; some are rejected, some fail once.
async fn simulate(scenario: Scenario) -> Result<(), TestCaseError> {
    let Scenario { batch, most, max_concurrent, group_size, latencies, steps, dynamic } = scenario;
    let executor = executor(config(max_concurrent, batch, Some(most)));
    let runs = Arc::new(Mutex::new(std::collections::BTreeMap::<u64, u32>::new()));
    let latencies = Arc::new(latencies);
    let mut submitted = 0u64;
    let mut next = || {
        submitted += 1;
        let (latencies, runs) = (Arc::clone(&latencies), Arc::clone(&runs));
        Ok(Some(task(group_size, move |engine, context| {
            let (latencies, runs) = (Arc::clone(&latencies), Arc::clone(&runs));
            async move {
                let place = context.task_id as usize * 7 + context.sample_idx as usize;
                let head = engine.version();
                tokio::time::sleep(Duration::from_millis(latencies[place % latencies.len()])).await;
                if context.task_id % 11 == 5 && context.attempt == 0 {
                    return Err(broken("once"));
                }
                *runs.lock().unwrap().entry(context.task_id).or_default() += 1;
                let mut trajectory = sampled(head);
                trajectory.samples[0].segments.push(Segment { tokens: 1, version: engine.version() });
                Ok((context.task_id % 5 != 3).then_some(trajectory))
            }
        })))
    };
    let mut seen = BTreeSet::new();
    for (version, step_ms) in steps.iter().enumerate() {
        let version = version as i32;
        executor.set_version(version);
        let taken = executor.prepare_batch(&mut next, dynamic, None).await.unwrap();
        if !dynamic {
            prop_assert_eq!(taken.len(), batch as usize);
        }
        for finished in &taken {
            let behind = version - finished.head_version();
            prop_assert!(behind <= most as i32, "task {} is {behind} versions behind", finished.id);
            prop_assert!(seen.insert(finished.id), "task {} was delivered twice", finished.id);
        }
        let counts = executor.stats().counts;
        prop_assert!(balanced(counts), "{:?}", counts);
        prop_assert!(counts.running <= u64::from(max_concurrent));
        tokio::time::sleep(Duration::from_millis(*step_ms)).await;
    }
    executor.pause();
    let Stats { counts, ready, .. } = executor.stats();
    prop_assert_eq!(counts.submitted, submitted, "a prompt was lost");
    prop_assert_eq!(counts.accepted, (seen.len() + ready) as u64);
    let runs = runs.lock().unwrap();
    let twice: Vec<_> = runs.iter().filter(|(_, episodes)| **episodes > group_size).collect();
    prop_assert!(twice.is_empty(), "run twice: {:?}", twice);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn nothing_stale_is_taken_and_no_prompt_is_lost_or_run_twice(scenario in scenario()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(simulate(scenario))?;
    }
}

#[test]
fn policies_are_read_by_name() {
    for (text, expected) in [
        ("wait", Ok(Incomplete::Wait)),
        ("replace", Ok(Incomplete::Replace)),
        ("drop", Ok(Incomplete::Drop)),
        ("accept", Ok(Incomplete::Accept { at_least: 1 })),
        ("accept:3", Ok(Incomplete::Accept { at_least: 3 })),
        ("accept:0", Err(())),
        ("accept:x", Err(())),
        ("keep", Err(())),
    ] {
        assert_eq!(text.parse::<Incomplete>().map_err(|_| ()), expected, "{text}");
    }
}

#[test]
fn a_member_that_was_cancelled_is_no_failure_of_its_own() {
    let member = |sample_idx, outcome| Member { sample_idx, attempts: 1, elapsed: Duration::ZERO, outcome };
    let members = [member(0, Outcome::Failed(broken("first"))), member(1, Outcome::Cancelled)];
    let status = Finished::judge(&members, 2, Incomplete::Drop);
    let error = "first".to_owned();
    assert_eq!(status, Status::Failed(Reason::Incomplete { left: 0, wanted: 2, error }));
}
