//! The process that runs a generator's `run_rollout`: started with the payload, followed line by line, ended whole.
//!
//! It leads a process group of its own, so that the workers it starts end with it, whatever they are doing.

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::host::interpreter;
use crate::lines::{LastLines, Printed, follow};

/// Between asking a process to end and ending it.
const GRACE: Duration = Duration::from_secs(5);

/// Its pipes are followed so long after its end: somebody else may hold them open.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
#[error(
    "Python cannot be started ({reason}); name the interpreter with --python or ROLLYARD_PYTHON: {}",
    .python.display()
)]
pub struct NotStarted {
    pub reason: String,
    pub python: PathBuf,
}

/// A generator at work. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Group,
    followers: Vec<JoinHandle<()>>,
    writer: JoinHandle<()>,
    last: LastLines,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// What it printed last.
    pub last_lines: Vec<String>,
}

impl Exit {
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// `exit code 1`, `signal 9 (killed)`.
    pub fn how(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}{}", signal_name(signal)),
            (None, None) => "no exit code".to_owned(),
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        2 => " (interrupted)",
        6 => " (aborted)",
        9 => " (killed; if nobody did it, the machine ran out of memory)",
        11 => " (segmentation fault)",
        15 => " (terminated)",
        _ => "",
    }
}

impl Process {
    /// `python -m rollyard.generator.child run FILE`, with the payload on its standard input.
    pub fn start(
        python: Option<&Path>,
        file: &Path,
        payload: Vec<u8>,
        printed: Printed,
    ) -> Result<Self, NotStarted> {
        let python = interpreter(python);
        let mut command = Command::new(&python);
        command.args(["-u", "-m", "rollyard.generator.child", "run"]).arg(file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| NotStarted { reason: error.to_string(), python })?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let last = LastLines::default();
        let mut followers = Vec::with_capacity(2);
        if let Some(output) = child.stdout.take() {
            followers.push(tokio::spawn(follow(output, printed.clone(), last.clone())));
        }
        if let Some(errors) = child.stderr.take() {
            followers.push(tokio::spawn(follow(errors, printed, last.clone())));
        }
        let input = child.stdin.take();
        let writer = tokio::spawn(async move {
            if let Some(mut input) = input {
                // One that does not read it has died, or will tell.
                let _unread = input.write_all(&payload).await;
            }
        });
        Ok(Self { child, group, followers, writer, last })
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end; once `stop` is done, it is asked to end, and then made to.
    pub async fn wait(mut self, stop: impl Future<Output = ()>) -> Exit {
        let status = tokio::select! {
            status = self.child.wait() => status,
            () = stop => {
                self.group.signal(Signal::TERM);
                match timeout(GRACE, self.child.wait()).await {
                    Ok(status) => status,
                    Err(_) => {
                        self.group.signal(Signal::KILL);
                        self.child.wait().await
                    }
                }
            }
        };
        // Its workers, if it left any.
        self.group.signal(Signal::KILL);
        self.writer.abort();
        for follower in &mut self.followers {
            if timeout(LAST_WORDS_WITHIN, &mut *follower).await.is_err() {
                follower.abort();
            }
        }
        let status = status.ok();
        Exit {
            code: status.as_ref().and_then(ExitStatus::code),
            signal: status.as_ref().and_then(ExitStatusExt::signal),
            last_lines: self.last.all(),
        }
    }
}

/// The process and what it started; killed when nobody looks after it any more.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Fails if all of them have ended, which is what is wanted.
            let _gone = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
