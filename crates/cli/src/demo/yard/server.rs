//! The server of the demo: this program once more, as a child that does not outlive us.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::stage::GROUP_SIZE;

pub(super) struct Server {
    child: Child,
    url: String,
    log: PathBuf,
    /// Held open, so that the server can always write to it.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server on this folder and waits until it listens.
    pub(super) fn start(dir: &Path) -> Result<Self> {
        let log = dir.join("server.log");
        let stderr = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--ends-with-parent", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data"])
            .arg(dir.join("yard-data"))
            .args(["--group-size", &GROUP_SIZE.to_string()])
            // A plain slime reader that the crash cut off gets its rollouts again after this.
            .args(["--lease-seconds", "2"])
            // No settings file of the user's takes part.
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("ROLLYARD_"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        // Its own group: Ctrl-C on the terminal is for us, and we end it.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().context("cannot start the server")?;
        let Some(stdout) = child.stdout.take() else { bail!("the server has no output") };
        let mut server = Self { child, url: String::new(), log, _stdout: BufReader::new(stdout) };
        let mut line = String::new();
        server._stdout.read_line(&mut line)?;
        match line.trim().strip_prefix("listening on ") {
            Some(url) => url.clone_into(&mut server.url),
            None => bail!("the server did not start: {}", server.last_words()),
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// As a crash would, without a chance to finish anything.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// In good order.
    pub(super) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}: {}", self.last_words());
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().last().unwrap_or("it left no message").to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone afterwards.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}
