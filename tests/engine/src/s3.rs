//! A real S3 server for tests: SeaweedFS, as `make` installs it from PyPI.
//!
//! It checks signatures, so a wrong secret fails as it would anywhere. It starts in a few seconds and keeps its
//! files in a folder that goes with it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names another binary.
const VARIABLE: &str = "ROLLYARD_WEED";

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Ends with its value.
#[derive(Debug)]
pub struct S3Server {
    process: Child,
    port: u16,
    filer_port: u16,
    _folder: TempDir,
}

impl S3Server {
    pub const ACCESS_KEY: &str = "yard";
    pub const SECRET_KEY: &str = "yard-secret";

    /// Started, and with these buckets.
    ///
    /// # Panics
    /// If it cannot be: a test that needs it has to fail, and to say why.
    pub fn start(buckets: &[&str]) -> Self {
        // Ports are free until somebody takes them first.
        let mut server =
            (0..3).find_map(|_| Self::try_start()).expect("SeaweedFS should start within a minute");
        for bucket in buckets {
            let made = server.ask_filer("POST", &format!("/buckets/{bucket}/"), b"");
            assert!(
                made.is_some_and(|answer| answer.starts_with("HTTP/1.1 201")),
                "cannot make bucket {bucket}"
            );
        }
        assert!(server.process.try_wait().expect("a child can be asked").is_none(), "SeaweedFS has ended");
        server
    }

    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder for the server");
        let config = folder.path().join("s3.json");
        let identities = format!(
            r#"{{"identities":[{{"name":"yard","credentials":[{{"accessKey":"{}","secretKey":"{}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}}"#,
            Self::ACCESS_KEY,
            Self::SECRET_KEY
        );
        std::fs::write(&config, identities).expect("the folder takes a file");
        let log = std::fs::File::create(folder.path().join("log")).expect("the folder takes a file");
        let ports = free_ports();
        let mut command = Command::new(weed());
        command.args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=200"]);
        command.args(["-master.volumeSizeLimitMB=64", "-master.telemetry=false"]);
        command.args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
        command.arg(format!("-dir={}", folder.path().display()));
        command.arg(format!("-s3.config={}", config.display()));
        for (name, port) in PORTS.iter().zip(ports) {
            command.arg(format!("-{name}={port}"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().expect("SeaweedFS can be run");
        let [port, filer_port, ..] = ports;
        let mut server = Self { process, port, filer_port, _folder: folder };
        server.is_ready().then_some(server)
    }

    /// Whether a file can be written, and S3 answers.
    fn is_ready(&mut self) -> bool {
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline && matches!(self.process.try_wait(), Ok(None)) {
            let written = self.ask_filer("PUT", "/ready", b"ready");
            if written.is_some_and(|answer| answer.starts_with("HTTP/1.1 201"))
                && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }

    fn ask_filer(&self, method: &str, path: &str, body: &[u8]) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.filer_port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        let mut head = String::new();
        let length = body.len();
        write!(head, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
            .ok()?;
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What a client has to have in its environment.
    pub fn vars(&self) -> Vec<(String, String)> {
        let vars = [
            ("AWS_ACCESS_KEY_ID", Self::ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", Self::SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &self.endpoint()),
        ];
        vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// Ends it without notice, as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

const PORTS: [&str; 8] = [
    "s3.port",
    "filer.port",
    "filer.port.grpc",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
];

/// Held all at once, so that they differ.
fn free_ports() -> [u16; PORTS.len()] {
    let listeners = PORTS.map(|_| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("a listener has an address").port())
}

fn weed() -> PathBuf {
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/weed");
    let weed = std::env::var_os(VARIABLE).map_or(made, PathBuf::from);
    assert!(
        weed.exists(),
        "no S3 server to test with; `make test-rust` installs it, and {VARIABLE} names another: {}",
        weed.display()
    );
    weed
}
