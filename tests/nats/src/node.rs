//! One `rollyard serve` among others.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

use crate::clock::Clock;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Killed when dropped, and its files go with it.
#[derive(Debug)]
pub struct Node {
    name: String,
    program: PathBuf,
    flags: Vec<String>,
    clock: Option<Clock>,
    folder: TempDir,
    child: Child,
    address: Address,
}

impl Node {
    /// Serves with these flags, beside those for its place, and is ready.
    ///
    /// # Panics
    /// If it does not start: with what it said.
    pub fn start(program: &Path, name: &str, flags: &[&str]) -> Self {
        Self::start_at(program, name, flags, None)
    }

    /// With a clock of its own.
    ///
    /// # Panics
    /// If it does not start: with what it said.
    pub fn start_at(program: &Path, name: &str, flags: &[&str], clock: Option<Clock>) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the node");
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (child, url) = run(program, &flags, clock.as_ref(), folder.path());
        let address = Address(Arc::new(Mutex::new(url)));
        Self { name: name.to_owned(), program: program.to_owned(), flags, clock, folder, child, address }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, also after it was started again elsewhere.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    pub fn clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }

    /// Ends it without notice.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with the same files and flags, and waits until it listens, on another port.
    ///
    /// # Panics
    /// If it does not start: with what it said.
    pub fn restart(&mut self) {
        self.kill();
        let (child, url) = run(&self.program, &self.flags, self.clock.as_ref(), self.folder.path());
        self.child = child;
        *self.address.0.lock().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// Holds it where it is: connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // It is our child and has not been waited for: the number is still its own.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// The folder that it was told to keep its data in.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The URL of a node, which changes when it is started again.
#[derive(Clone, Debug)]
pub struct Address(Arc<Mutex<String>>);

impl Address {
    pub fn url(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn run(program: &Path, flags: &[String], clock: Option<&Clock>, folder: &Path) -> (Child, String) {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
    let mut command = Command::new(program);
    // Nothing from the settings of whoever runs the tests.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("ROLLYARD_")) {
            command.env_remove(name);
        }
    }
    command.envs(clock.map(Clock::vars).unwrap_or_default());
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(log.expect("the folder takes a file"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data", "--ends-with-parent"]).args(flags);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}: {}", program.display()));
    let stdout = child.stdout.take().expect("it was asked for");
    let (sender, receiver) = channel();
    // Reads to the end, so that the node is never told that nobody listens.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let line = receiver.recv_timeout(READY_WITHIN).unwrap_or_default();
    let Some(url) = line.strip_prefix("listening on ") else {
        let _ = child.kill().and_then(|()| child.wait());
        let said = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        panic!("a node does not start: {line:?} {said}");
    };
    (child, url.to_owned())
}
