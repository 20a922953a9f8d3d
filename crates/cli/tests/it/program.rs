//! Runs the program: once to its end, or as a server on a free port.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The program in a folder, with nothing from the settings of whoever runs the tests.
pub(crate) fn rollyard(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollyard"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ROLLYARD_")) {
        command.env_remove(name);
    }
    command.current_dir(dir).stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end, which must come soon.
pub(crate) fn run(command: Command) -> Outcome {
    run_within(command, Duration::from_secs(60))
}

pub(crate) fn run_within(mut command: Command, patience: Duration) -> Outcome {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        err.read_to_string(&mut text).unwrap();
        text
    });
    let watch = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        text
    });
    let status = wait(&mut child, patience);
    Outcome { code: status.code(), stdout: watch.join().unwrap(), stderr: reader.join().unwrap() }
}

fn wait(child: &mut Child, patience: Duration) -> std::process::ExitStatus {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the program did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A server on a free port; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Serves `dir/data` with these flags. Its log goes to `dir/log`.
    pub(crate) fn start(dir: &Path, flags: &[&str]) -> Self {
        Self::start_in(dir, flags, &[])
    }

    /// The same, with these variables in its environment.
    pub(crate) fn start_in(dir: &Path, flags: &[&str], variables: &[(String, String)]) -> Self {
        let first = ["serve", "--listen", "127.0.0.1:0", "--data", "data", "--ends-with-parent"];
        Self::run(dir, &[&first, flags].concat(), variables)
    }

    /// Serves the small model with these flags. What it says goes to `dir/log`.
    pub(crate) fn tiny(dir: &Path, flags: &[&str]) -> Self {
        Self::run(dir, &[&["tiny", "serve"], flags].concat(), &[])
    }

    fn run(dir: &Path, arguments: &[&str], variables: &[(String, String)]) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
        let mut command = rollyard(dir);
        command.envs(variables.iter().cloned());
        let mut child = command.args(arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let Some(url) = line.strip_prefix("listening on ") else {
            panic!("{line:?}; {}", std::fs::read_to_string(dir.join("log")).unwrap());
        };
        Self { child, url: url.trim_end().to_owned(), token: None, _stdout: stdout }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to stop and gives back its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        wait(&mut self.child, Duration::from_secs(30)).code()
    }

    pub(crate) fn client(&self) -> Client {
        Client { agent: agent(), url: self.url.clone(), token: self.token.clone() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill().and_then(|()| self.child.wait());
    }
}

pub(crate) fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(30)))
        .proxy(None)
        .build()
        .into()
}

/// A connection to a server that may die.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
}

impl Client {
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        read(request.call().unwrap()).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.try_post(path, &body.to_string()).unwrap()
    }

    /// `None` if no whole answer came.
    pub(crate) fn try_post(&self, path: &str, body: &str) -> Option<(u16, Value)> {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        read(request.send(body).ok()?)
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Option<(u16, Value)> {
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(1 << 30).read_to_string().ok()?;
    Some((status, serde_json::from_str(&text).unwrap()))
}

pub(crate) fn item(uid: &str, instance: &str, reward: f64) -> Value {
    json!({
        "uid": uid,
        "instance_id": instance,
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}],
        "reward": reward,
        "weight_version": 7,
        "extra_info": {},
    })
}
