//! A course on a server of its own, from its folder to its outcome.

use anyhow::{Context, Result};
use rollyard_tiny::learn::{Course, Outcome, Plan, Site, StepReport, WarmUp, warm_up};
use rollyard_tiny::model::Weights;
use rollyard_tiny::train::Student;
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;

use super::RUN;
use super::folder::Folder;
use super::host::Host;

/// Who hears how it goes. An error of theirs stops the course.
pub(in crate::demo) trait Watch {
    fn warm_up(&mut self, _: WarmUp) {}

    /// The policy of a warm-up that was done before, if there is one.
    fn warmed(&self) -> Option<Weights> {
        None
    }

    /// The policy as a warm-up left it.
    fn keep(&mut self, _: &Weights) {}

    /// The same, examined, before the first step.
    fn warm(&mut self, _: &StepReport) -> Result<()> {
        Ok(())
    }

    fn resumed(&mut self, _version: u64, _curve: &[StepReport]) -> Result<()> {
        Ok(())
    }

    fn step(&mut self, report: &StepReport) -> Result<()>;
}

#[derive(Debug)]
pub(in crate::demo) struct Session {
    plan: Plan,
    folder: Folder,
    host: Host,
}

impl Session {
    pub(in crate::demo) async fn start(plan: Plan, folder: Folder, listen: SocketAddr) -> Result<Self> {
        let host = Host::start(listen, &folder).await?;
        Ok(Self { plan, folder, host })
    }

    /// The viewer on the rollouts of this course.
    pub(in crate::demo) fn page(&self) -> String {
        self.host.page()
    }

    /// Until version `steps`, or until told to stop; `None` if that was before the first.
    pub(in crate::demo) async fn play(
        self,
        steps: u64,
        stop: &CancellationToken,
        watch: &mut dyn Watch,
    ) -> Result<Option<Outcome>> {
        let played = self.course(steps, stop, watch).await;
        // Whatever happened, what was written is kept.
        let stopped = self.host.stop().await;
        let outcome =
            played.with_context(|| format!("what was done is kept in {}", self.folder.path().display()))?;
        stopped?;
        Ok(outcome)
    }

    async fn course(
        &self,
        steps: u64,
        stop: &CancellationToken,
        watch: &mut dyn Watch,
    ) -> Result<Option<Outcome>> {
        let plan = &self.plan;
        let site = Site {
            url: self.host.url(),
            run: RUN.to_owned(),
            checkpoint: self.folder.checkpoint(),
            warm: self.folder.warm(),
        };
        let warming = |tokenizer: &_| {
            if let Some(weights) = watch.warmed() {
                return Ok(Some(weights));
            }
            let weights = warm_up(plan, tokenizer, Student::on_all_cores(), |step| {
                watch.warm_up(step);
                !stop.is_cancelled()
            });
            weights.inspect(|weights| weights.iter().for_each(|weights| watch.keep(weights)))
        };
        let Some(course) = Course::open(plan.clone(), site, warming).await? else { return Ok(None) };
        let mut log = self.folder.log_from(course.version())?;
        if log.is_empty() {
            let report = StepReport { held_out: Some(course.examine().await?), ..StepReport::default() };
            log.push(&report)?;
            watch.warm(&report)?;
        } else {
            watch.resumed(course.version(), log.curve())?;
        }
        let mut failed = None;
        let outcome = course.run(steps, stop, |report| {
            if let Err(error) = log.push(report).and_then(|()| watch.step(report)) {
                failed.get_or_insert(error);
                stop.cancel();
            }
        });
        let outcome = outcome.await?;
        failed.map_or(Ok(Some(outcome)), Err)
    }
}
