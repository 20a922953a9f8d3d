//! What can be seen of a run's generator.

use rollyard_core::ledger::Ledger;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Generators;
use super::supervisor::Seen;

/// The generator of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct GeneratorAnswer {
    /// `running`, `finished`, `failed` or `stopped`; `external` if its rollouts come from outside.
    pub(crate) state: &'static str,
    pub(crate) task_type: String,
    /// `file`, `built_in` or `external`; null if nobody makes rollouts of this task any more.
    pub(crate) kind: Option<&'static str>,
    file: Option<String>,
    /// Of its process, while there is one.
    pub(crate) pid: Option<u32>,
    /// When it came into this state, in milliseconds since 1970.
    since_ms: Option<u64>,
    /// How often it was started again since.
    pub(crate) restarts: u32,
    /// What was noted of it last.
    pub(crate) told: Option<String>,
    /// Of a built-in task: its rollouts in numbers.
    #[schema(value_type = Option<Object>)]
    pub(crate) progress: Option<Value>,
    /// The functions of its file that are used in place of our own rules.
    hooks: Vec<&'static str>,
    /// Why it crashed last, or what is wrong with its file.
    pub(crate) problem: Option<String>,
    /// The last lines that it printed; left out where all runs are listed.
    pub(crate) log: Vec<String>,
}

/// What the ledger says of it.
#[derive(Debug)]
pub(crate) struct Noted {
    state: Option<(&'static str, u64, String)>,
    task_type: Option<String>,
}

impl Noted {
    pub(crate) fn of(ledger: &Ledger) -> Self {
        let state = ledger.generator().map(|known| (known.state.name(), known.at.0, known.told.to_string()));
        let start: Option<Map<String, Value>> =
            ledger.start().and_then(|start| serde_json::from_str(start).ok());
        let started = start.as_ref().and_then(|start| start.get("task_type")?.as_str());
        // A run that was never started may still leave its groups to a generator's hooks.
        let config = ledger.config();
        let hooked = config.is_hooked().then_some(config.task_type.as_str());
        Self { state, task_type: started.or(hooked).map(str::to_owned) }
    }
}

impl Generators {
    /// `None` if the run was never started.
    pub(crate) fn describe(&self, run: &str, noted: Noted) -> Option<GeneratorAnswer> {
        let supervisor = self.supervisor(run);
        let Seen { work, pid, restarts, progress, problem } =
            supervisor.as_ref().map(|known| known.seen()).unwrap_or_default();
        let task_type = work.as_ref().map(|work| work.task_type.clone()).or(noted.task_type)?;
        // The work that was last done here, or what a start would do now.
        let maker = match &work {
            Some(work) => Some(work.maker.clone()),
            None => self.maker(&task_type),
        };
        let file = maker.as_ref().and_then(|maker| maker.file());
        let external = || ("external", None, None);
        let (state, since_ms, told) =
            noted.state.map_or_else(external, |(state, at, told)| (state, Some(at), Some(told)));
        let of_file = |path: &std::path::Path| {
            let problems = self.problems();
            problems.into_iter().find(|problem| problem.file == path).map(|problem| problem.problem)
        };
        Some(GeneratorAnswer {
            state,
            task_type,
            kind: maker.as_ref().map(|maker| maker.kind()),
            file: file.map(|known| known.file.display().to_string()),
            pid,
            since_ms,
            restarts,
            told,
            progress: progress.and_then(|progress| serde_json::to_value(progress.counts()).ok()),
            hooks: file.map(|known| known.hooks.iter().map(|hook| hook.name()).collect()).unwrap_or_default(),
            problem: problem.or_else(|| of_file(&file?.file)),
            log: supervisor.map(|known| known.log.lines()).unwrap_or_default(),
        })
    }
}
