//! Starts a server under test and makes sure that it does not outlive the bench, however that ends: a shell stands
//! between, which holds one end of a pipe and kills the server when the other end closes.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::http::Client;

const START_SECS_MAX: u64 = 300;
const READY: &str = "listening on http://";
const NUMBER: &str = "process ";

/// The trap lets an interrupt from the terminal end the wait, too. The server is waited for only here, so its number is
/// not given to another process before.
const GUARD: &str = r#"
trap : INT TERM HUP
"$@" </dev/null &
echo "process $!"
exec >/dev/null 2>&1
read -r signal
kill -s "${signal:-KILL}" $!
wait $!
"#;

/// How a server is started; the same flags go to every contestant.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) program: PathBuf,
    /// What comes before the flags, such as `serve` or a script.
    pub(crate) before: Vec<String>,
    /// What comes after them.
    pub(crate) after: Vec<String>,
}

/// A running server with its data in a folder of its own. Dropping it kills the process, then removes the folder.
#[derive(Debug)]
pub(crate) struct Server {
    recipe: Recipe,
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

impl Server {
    pub(crate) fn start(recipe: &Recipe, under: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(under)?;
        let (process, address) = Process::start(recipe, folder.path())?;
        Ok(Self { recipe: recipe.clone(), process, address, folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// SIGKILL: no goodbye, no flush.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGTERM, and waits until it has ended by itself.
    pub(crate) fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts again on the same data; the time until it says that it listens.
    pub(crate) fn restart(&mut self) -> Result<Duration> {
        self.process.kill();
        let begin = Instant::now();
        (self.process, self.address) = Process::start(&self.recipe, self.folder.path())?;
        Ok(begin.elapsed())
    }

    /// What the latest process wrote to stderr.
    pub(crate) fn log(&self) -> String {
        read_log(self.folder.path())
    }

    /// A field of `GET /buffer/stats`.
    pub(crate) fn stat(&self, name: &str) -> Result<u64> {
        self.stat_at("/buffer/stats", name)
    }

    /// The same of a run.
    pub(crate) fn stat_of(&self, run: &str, name: &str) -> Result<u64> {
        self.stat_at(&format!("/runs/{run}/buffer/stats"), name)
    }

    fn stat_at(&self, path: &str, name: &str) -> Result<u64> {
        let stats = Client::connect(self.address)?.get(path)?;
        // The call answers bare or inside the usual envelope; both are slime.
        let value =
            stats.pointer(&format!("/{name}")).or_else(|| stats.pointer(&format!("/data/meta_info/{name}")));
        let value = value.or_else(|| stats.pointer(&format!("/data/{name}")));
        value.and_then(serde_json::Value::as_u64).with_context(|| format!("no number {name:?} in {stats}"))
    }

    /// Memory that is resident now.
    pub(crate) fn rss_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.id);
        let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().with_context(|| line.to_owned())?;
        Ok(kilobytes * 1024)
    }

    /// CPU time used so far, in the 10 ms steps of `/proc`.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu_of(self.process.id)
    }
}

/// CPU time that a process has used so far.
pub(crate) fn cpu_of(process: u32) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // Fields are counted behind the program's name, which may hold spaces.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

#[derive(Debug)]
struct Process {
    guard: Child,
    pipe: Option<ChildStdin>,
    /// The number of the server itself.
    id: u32,
    /// Reads stdout to its end, so that a talkative server never blocks on a full pipe.
    drain: Option<JoinHandle<()>>,
}

impl Process {
    fn start(recipe: &Recipe, folder: &Path) -> Result<(Self, SocketAddr)> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(&recipe.program);
        command.args(&recipe.before).args(["--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
        command.args(["--group-size", "8", "--group-timeout-seconds", "1000000"]).args(&recipe.after);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log_path(folder))?);
        let mut guard = command.spawn().context("cannot start a shell")?;
        let stdout = guard.stdout.take().context("stdout was asked for")?;
        let pipe = guard.stdin.take();
        let (drain, ready) = drain(stdout);
        let mut process = Self { guard, pipe, id: 0, drain: Some(drain) };
        match ready.recv_timeout(Duration::from_secs(START_SECS_MAX)) {
            Ok((id, address)) => {
                process.id = id;
                Ok((process, address))
            }
            Err(RecvTimeoutError::Timeout) => {
                bail!("no line {READY:?}… within {START_SECS_MAX} s from {command:?}: {}", read_log(folder))
            }
            Err(RecvTimeoutError::Disconnected) => bail!("{command:?} ended early: {}", read_log(folder)),
        }
    }

    fn kill(&mut self) {
        drop(self.pipe.take());
        self.join();
    }

    fn stop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // It fails only when the process is already gone, which is what is wanted.
            let _ = pipe.write_all(b"TERM\n");
        }
        self.join();
    }

    fn join(&mut self) {
        let _ = self.guard.wait();
        if let Some(drain) = self.drain.take() {
            let _ = drain.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn drain(stdout: ChildStdout) -> (JoinHandle<()>, Receiver<(u32, SocketAddr)>) {
    let (tell, ready) = sync_channel(1);
    let drain = std::thread::spawn(move || {
        let (mut id, mut address) = (None, None);
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(number) = line.strip_prefix(NUMBER) {
                id = id.or(number.parse().ok());
            }
            if let Some(rest) = line.strip_prefix(READY) {
                address = address.or(rest.trim_end_matches('/').parse().ok());
            }
            if let (Some(id), Some(address)) = (id, address) {
                let _ = tell.try_send((id, address));
            }
        }
    });
    (drain, ready)
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("stderr.log")
}

fn read_log(folder: &Path) -> String {
    std::fs::read_to_string(log_path(folder)).unwrap_or_default()
}
