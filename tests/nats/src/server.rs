//! One `nats-server` on loopback.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

use crate::binary::nats_server;
use crate::monitor;
use crate::options::{Options, Place, config};
use crate::port::free_ports;
use crate::process::Process;

const READY_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Ends with its value, and its files with it.
#[derive(Debug)]
pub struct Server {
    options: Options,
    place: Place,
    process: Process,
    folder: TempDir,
}

impl Server {
    /// Started, and ready for clients.
    ///
    /// # Panics
    /// If it cannot be: a test that needs it has to fail, and to say why.
    pub fn start(options: Options) -> Self {
        let mut log = String::new();
        // Ports are free until somebody takes them first.
        for _ in 0..3 {
            let [client_port, monitor_port] = free_ports();
            let place = Place { client_port, monitor_port, routes: None };
            let started = Self::try_start(options.clone(), place).and_then(|server| {
                server.await_ready()?;
                Ok(server)
            });
            match started {
                Ok(server) => return server,
                Err(said) => log = said,
            }
        }
        panic!("nats-server does not start: {log}")
    }

    /// Running, but perhaps not ready yet. What it said, if it ended.
    pub(crate) fn try_start(options: Options, place: Place) -> Result<Self, String> {
        let folder = match &options.under {
            Some(under) => tempfile::Builder::new().prefix("nats-").tempdir_in(under),
            None => tempfile::tempdir(),
        };
        let folder = folder.map_err(|error| error.to_string())?;
        let text = config(&options, &place, &folder.path().join("store"));
        std::fs::write(folder.path().join("config"), text).map_err(|error| error.to_string())?;
        let process = run(&folder);
        Ok(Self { options, place, process, folder })
    }

    /// The URL for clients, with the login.
    pub fn url(&self) -> String {
        self.url_at(self.place.client_port)
    }

    /// The URL of somebody who stands before it, such as a [`Proxy`](crate::Proxy).
    pub fn url_at(&self, port: u16) -> String {
        format!("nats://{}127.0.0.1:{port}", self.options.login.prefix())
    }

    /// Where clients connect.
    pub fn port(&self) -> u16 {
        self.place.client_port
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The number of its process.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// False after [`kill`](Self::kill) or [`stop`](Self::stop).
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// The folder of its streams.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Ends it without notice.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// Starts it again on the same ports with the same files, and waits until it takes clients.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = run(&self.folder);
        if let Err(said) = self.await_clients() {
            panic!("nats-server does not start again: {said}");
        }
        if self.place.routes.is_none() {
            self.await_ready().unwrap_or_else(|said| panic!("nats-server does not recover: {said}"));
        }
    }

    /// Holds it where it is: connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    pub fn resume(&self) {
        self.process.resume();
    }

    /// An answer of its monitoring port, such as `/jsz`.
    pub fn monitor(&self, path: &str) -> Option<Value> {
        monitor::ask(self.place.monitor_port, path)
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits until it takes clients and has recovered its streams.
    pub(crate) fn await_ready(&self) -> Result<(), String> {
        self.await_clients()?;
        self.wait_until(|server| server.monitor("/healthz").is_some())
    }

    pub(crate) fn await_clients(&self) -> Result<(), String> {
        self.wait_until(Self::takes_clients)
    }

    /// Whether it greets whoever connects.
    fn takes_clients(&self) -> bool {
        let greet = || {
            let stream = TcpStream::connect(("127.0.0.1", self.place.client_port))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line)?;
            std::io::Result::Ok(line)
        };
        // Another server that took the port first has another name.
        greet().is_ok_and(|line| {
            line.starts_with("INFO ") && line.contains(&format!("\"server_name\":{:?}", self.options.name))
        })
    }

    fn wait_until(&self, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            if is_so(self) {
                return Ok(());
            }
            let log = self.log();
            if log.contains("[FTL]") || log.starts_with("nats-server:") {
                return Err(log);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(format!("not ready within {READY_WITHIN:?}: {}", self.log()))
    }
}

fn run(folder: &TempDir) -> Process {
    let (config, log) = (folder.path().join("config"), folder.path().join("log"));
    // A refusal of the last start must not be taken for one of this.
    let _ = std::fs::remove_file(&log);
    Process::start(&nats_server(), &[OsStr::new("-c"), config.as_os_str()], &log)
}
