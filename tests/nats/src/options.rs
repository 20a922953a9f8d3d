//! What a server is told, as its configuration file has it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// One server, with JetStream, open to everybody, as nats-server is by default.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the server calls itself. In a cluster the number of the server is added.
    pub name: String,
    pub jetstream: bool,
    pub login: Login,
    /// The largest message in bytes; 1 MB if nothing is said.
    pub max_payload: Option<u64>,
    /// What streams on disk may take in bytes.
    pub max_file_store: Option<u64>,
    pub sync: Sync,
    /// What the servers of a cluster say to each other goes through proxies, which can cut and slow it; whoever
    /// measures wants them to speak directly.
    pub proxied_routes: bool,
    /// Where the folder of its files is made; the system's folder for such if nothing is said.
    pub under: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "nats".to_owned(),
            jetstream: true,
            login: Login::Open,
            max_payload: None,
            max_file_store: None,
            sync: Sync::Default,
            proxied_routes: true,
            under: None,
        }
    }
}

/// Who may connect.
#[derive(Clone, Debug)]
pub enum Login {
    Open,
    User { user: String, password: String },
    Token(String),
}

impl Login {
    /// What stands before the host in a URL.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Self::Open => String::new(),
            Self::User { user, password } => format!("{user}:{password}@"),
            Self::Token(token) => format!("{token}@"),
        }
    }
}

/// When JetStream calls fsync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Every two minutes.
    Default,
    /// Before it acknowledges.
    Always,
}

/// What only one server has.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) client_port: u16,
    pub(crate) monitor_port: u16,
    pub(crate) routes: Option<Routes>,
}

/// A server's links to the others of its cluster.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    pub(crate) listen_port: u16,
    /// Where it finds the others.
    pub(crate) to_ports: Vec<u16>,
}

/// The configuration file.
pub(crate) fn config(options: &Options, place: &Place, store: &Path) -> String {
    let Options { name, jetstream, login, max_payload, max_file_store, sync, .. } = options;
    let mut text = String::new();
    let mut line = |line: &str| {
        writeln!(text, "{line}").expect("a string takes a line");
    };
    line(&format!("server_name: {name:?}"));
    line(&format!("listen: \"127.0.0.1:{}\"", place.client_port));
    line(&format!("http: \"127.0.0.1:{}\"", place.monitor_port));
    if let Some(bytes) = max_payload {
        line(&format!("max_payload: {bytes}"));
    }
    match login {
        Login::Open => {}
        Login::User { user, password } => {
            line(&format!("authorization {{ user: {user:?}, password: {password:?} }}"));
        }
        Login::Token(token) => line(&format!("authorization {{ token: {token:?} }}")),
    }
    if *jetstream {
        line(&format!("jetstream {{\n  store_dir: {:?}", store.display().to_string()));
        if let Some(bytes) = max_file_store {
            line(&format!("  max_file_store: {bytes}"));
        }
        if *sync == Sync::Always {
            line("  sync_interval: always");
        }
        line("}");
    }
    if let Some(routes) = &place.routes {
        let urls: Vec<String> =
            routes.to_ports.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        line(&format!("cluster {{\n  name: yard\n  listen: \"127.0.0.1:{}\"", routes.listen_port));
        line(&format!("  routes: [{}]", urls.join(", ")));
        // Nobody may learn of a way around the proxies: clients hear of no other server, and servers that gossip
        // about each other name a port where nobody listens.
        line("  no_advertise: true\n  advertise: \"127.0.0.1:1\"\n}");
    }
    text
}
