//! One life of a generator, from its start to its end.

use rollyard_core::ledger::{Command, GeneratorState};
use rollyard_engine::generator::Generator;
use rollyard_engine::generator::process::{Exit, Process};
use rollyard_engine::lines::Printed;
use rollyard_engine::task::{MathTask, Progress, StartPayload, Summary, TaskError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::Generators;
use super::payload::{fill_in_buffer_url, skip_finished};
use super::shelf::YardShelf;
use super::supervisor::Supervisor;
use super::work::{Maker, Work};
use crate::settings::Settings;

/// How often a built-in task tells the log how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// A task that was asked to stop writes what it has finished, and is ended if that takes longer.
const STOP_WITHIN: Duration = Duration::from_secs(8);

pub(super) enum End {
    /// It made everything; with what there is to say about it.
    Done(String),
    /// Another try may go better.
    Crashed(String),
    /// No try will.
    Hopeless(String),
    Stopped,
}

pub(super) async fn live(
    supervisor: &Supervisor,
    generators: &Generators,
    work: &Work,
    resumes: bool,
    stop: impl Future<Output = ()> + Send,
) -> End {
    match &work.maker {
        // A file that was mended since is used as it is now.
        Maker::File(known) => {
            let generator = generators.find(&work.task_type).unwrap_or_else(|| Arc::clone(known));
            live_as_process(supervisor, generators, &generator, work, resumes, stop).await
        }
        Maker::BuiltIn => live_as_task(supervisor, &generators.settings, work, stop).await,
        Maker::External => End::Hopeless("its rollouts come from outside".to_owned()),
    }
}

async fn live_as_process(
    supervisor: &Supervisor,
    generators: &Generators,
    generator: &Generator,
    work: &Work,
    resumes: bool,
    stop: impl Future<Output = ()> + Send,
) -> End {
    let (yard, log) = (&supervisor.yard, Arc::clone(&supervisor.log));
    let mut payload = work.payload.clone();
    fill_in_buffer_url(&mut payload, &generators.own_url(yard.run_name()));
    if matches!(yard.ask(|ledger| ledger.generator().is_some()).await, Ok(true)) {
        // A generator gives its rollouts new names, so what the last one had of a group cannot be completed.
        if let Err(error) = yard.run(Command::DropOpen).await {
            return End::Crashed(format!("its unfinished groups could not be taken out: {error}"));
        }
    }
    if resumes {
        match skip_finished(&mut payload, yard).await {
            Ok(0) => {}
            Ok(count) => log.push(&format!("generator: {count} groups are finished and are not made again")),
            Err(why) => log.push(&format!("generator: what is finished may be made again: {why}")),
        }
    }
    let payload = serde_json::Value::Object(payload).to_string().into_bytes();
    let printed = Printed::new(move |line| log.push(line));
    let python = generators.settings.python.as_deref();
    let process = match Process::start(python, &generator.file, payload, printed) {
        Ok(process) => process,
        Err(error) => return End::Crashed(error.to_string()),
    };
    let pid = process.pid();
    supervisor.lock().pid = pid;
    let told = format!("runs as process {}: {}", pid.unwrap_or_default(), generator.file.display());
    supervisor.note(Some(GeneratorState::Running), told).await;
    let mut was_stopped = false;
    let exit = process
        .wait(async {
            stop.await;
            was_stopped = true;
        })
        .await;
    supervisor.lock().pid = None;
    match exit {
        _ if was_stopped => End::Stopped,
        exit if exit.is_success() => End::Done(String::new()),
        exit => End::Crashed(crash(pid, &exit)),
    }
}

fn crash(pid: Option<u32>, exit: &Exit) -> String {
    let said = match exit.last_lines.as_slice() {
        [] => ", and said nothing".to_owned(),
        lines => format!(": {}", lines.join("\n")),
    };
    format!("process {} ended with {}{said}", pid.unwrap_or_default(), exit.how())
}

async fn live_as_task(
    supervisor: &Supervisor,
    settings: &Settings,
    work: &Work,
    stop: impl Future<Output = ()> + Send,
) -> End {
    let mut payload = match StartPayload::parse(&work.payload) {
        Ok(payload) => payload,
        Err(error) => return End::Hopeless(error.to_string()),
    };
    // The payload may be from before a restart, with other folders.
    if !settings.may_read(&payload.input_file) {
        let file = payload.input_file.display();
        return End::Hopeless(format!("it may not be read; name its folder with --root DIR: {file}"));
    }
    if let Some(path) = payload.tokenizer_path.take_if(|path| !settings.may_read(path)) {
        let path = path.display();
        supervisor.log.push(&format!(
            "generator: rollouts are text only, because tokenizer_path may not be read; name its folder with --root DIR: \
             {path}"
        ));
    }
    let task = match tokio::task::spawn_blocking(move || MathTask::prepare(payload)).await {
        Ok(Ok(task)) => task,
        Ok(Err(error)) => return End::Hopeless(error.to_string()),
        Err(error) => return End::Crashed(panicked(error)),
    };
    let progress = Arc::new(Progress::default());
    supervisor.lock().progress = Some(Arc::clone(&progress));
    let told = format!("the built-in task {} runs in the server", work.task_type);
    supervisor.note(Some(GeneratorState::Running), told).await;

    let cancel = CancellationToken::new();
    // Work of its own task: a panic is a crash of the generator, not of whoever looks after it.
    let shelf = Arc::new(YardShelf(supervisor.yard.clone()));
    let mut running = tokio::spawn(task.run(shelf, Arc::clone(&progress), cancel.clone()));
    tokio::pin!(stop);
    let mut told = String::new();
    loop {
        tokio::select! {
            ended = &mut running => return judge(ended),
            () = &mut stop => {
                cancel.cancel();
                if tokio::time::timeout(STOP_WITHIN, &mut running).await.is_err() {
                    running.abort();
                }
                return End::Stopped;
            }
            () = tokio::time::sleep(TOLD_EVERY) => {
                let line = progress.line();
                if line != told {
                    supervisor.log.push(&line);
                    told = line;
                }
            }
        }
    }
}

fn judge(ended: Result<Result<Summary, TaskError>, JoinError>) -> End {
    match ended {
        Ok(Ok(Summary { stopped: true, .. })) => End::Stopped,
        Ok(Ok(Summary { counts, .. })) => End::Done(format!("{}; ", counts.line())),
        Ok(Err(error @ TaskError::Payload(_))) => End::Hopeless(error.to_string()),
        Ok(Err(error)) => End::Crashed(error.to_string()),
        Err(error) => End::Crashed(panicked(error)),
    }
}

fn panicked(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was cancelled".to_owned() };
    let said =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", said.unwrap_or("without a message"))
}
