//! Runs a program: bytes in, bytes out, within its time and with all that it started.
//!
//! The program leads a process group of its own. When it ends, runs out of time or is no longer waited for, the
//! whole group is killed: a grader that started a server leaves nothing behind.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// How much of what a program says on its standard error is told.
const STDERR_BYTES: usize = 2000;

#[derive(Clone, Debug)]
pub struct Program {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    timeout: Duration,
    output: Keep,
    /// So many at once, over all clones.
    permits: Arc<Semaphore>,
}

/// Which part of a long output is kept. All of it is read, so that the program does not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    First(usize),
    Last(usize),
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    #[error("it cannot be started ({reason}): {program}")]
    NotStarted { reason: String, program: String },
    #[error("it did not end within {secs} s")]
    Timeout { secs: f64 },
    #[error("it ended with {status}{}", said(.stderr))]
    Failed { status: String, stderr: String },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}

impl Program {
    pub fn new(argv: Vec<String>) -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let permits = Arc::new(Semaphore::new(count));
        let timeout = Duration::from_secs(60);
        Self { argv, env: Vec::new(), timeout, output: Keep::Last(1 << 20), permits }
    }

    /// A line for the shell.
    pub fn shell(line: &str) -> Self {
        Self::new(["sh", "-c", line].map(str::to_owned).into())
    }

    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Besides the variables that we have ourselves.
    #[must_use]
    pub fn with_env(self, env: Vec<(String, String)>) -> Self {
        Self { env, ..self }
    }

    /// At most so many at once; the others wait, which does not count as their time.
    #[must_use]
    pub fn with_concurrency(self, count: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(count.max(1))), ..self }
    }

    #[must_use]
    pub fn with_output(self, output: Keep) -> Self {
        Self { output, ..self }
    }

    /// What it writes to its standard output.
    pub async fn run(&self, input: &[u8]) -> Result<String, ProgramError> {
        let _permit = self.permits.acquire().await;
        let mut child = self.start()?;
        let group = Group::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program need not read what it is given.
                let _unread = stdin.write_all(input).await;
            }
        };
        let wait = async {
            let status = child.wait().await;
            // Whatever it left running may hold its output open for ever.
            drop(group);
            status
        };
        let all = async {
            tokio::join!(write, read(stdout, self.output), read(stderr, Keep::Last(STDERR_BYTES)), wait)
        };
        let secs = self.timeout.as_secs_f64();
        let (_, stdout, stderr, status) =
            tokio::time::timeout(self.timeout, all).await.map_err(|_| ProgramError::Timeout { secs })?;
        match status {
            Ok(status) if status.success() => Ok(stdout),
            Ok(status) => {
                Err(ProgramError::Failed { status: status.to_string(), stderr: stderr.trim().to_owned() })
            }
            Err(error) => {
                Err(ProgramError::Failed { status: format!("no status ({error})"), stderr: String::new() })
            }
        }
    }

    fn start(&self) -> Result<Child, ProgramError> {
        let (name, arguments) =
            self.argv.split_first().map_or(("", [].as_slice()), |(name, rest)| (name.as_str(), rest));
        Command::new(OsStr::new(name))
            .args(arguments)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ProgramError::NotStarted {
                reason: error.to_string(),
                program: self.argv.join(" "),
            })
    }
}

/// A program and its descendants, killed when it goes out of scope.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Fails if all of them have ended, which is what is wanted.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

/// All that comes, of which the first or the last part is kept.
async fn read(from: Option<impl AsyncRead + Unpin>, keep: Keep) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut kept = VecDeque::new();
    let mut buffer = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let piece = buffer.get(..count).unwrap_or_default();
        match keep {
            Keep::First(most) => kept.extend(piece.iter().take(most.saturating_sub(kept.len()))),
            Keep::Last(most) => {
                kept.extend(piece);
                kept.drain(..kept.len().saturating_sub(most));
            }
        }
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}
