//! Several servers with JetStream, and proxies in the links between them.

use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::links::Links;
use crate::options::{Options, Place, Routes};
use crate::port::free_ports;
use crate::proxy::Proxy;
use crate::server::Server;

/// A server that lost its leader waits four to nine seconds before it wants to be one.
const LEADER_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends with its value.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
    routes: Vec<Route>,
}

/// The way from one server to another. Either of the two may have connected first.
#[derive(Debug)]
struct Route {
    from: usize,
    to: usize,
    proxy: Proxy,
}

impl Cluster {
    /// Started, with a leader, and all servers in step.
    ///
    /// # Panics
    /// If they cannot be.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &Options::default())
    }

    /// With these options for every server; the names get numbers from 1.
    ///
    /// # Panics
    /// If they cannot be started.
    pub fn start_with(count: usize, options: &Options) -> Self {
        Self::try_start_with(count, options).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same.
    ///
    /// # Errors
    /// What the servers said, if they cannot be started.
    pub fn try_start_with(count: usize, options: &Options) -> Result<Self, String> {
        let mut log = String::new();
        // Ports are free until somebody takes them first.
        for _ in 0..3 {
            match Self::try_start(count, options) {
                Ok(cluster) => return Ok(cluster),
                Err(said) => log = said,
            }
        }
        Err(format!("{count} NATS servers do not start: {log}"))
    }

    fn try_start(count: usize, options: &Options) -> Result<Self, String> {
        let ports: Vec<[u16; 3]> = (0..count).map(|_| free_ports()).collect();
        let mut routes = Vec::new();
        for from in (0..count).filter(|_| options.proxied_routes) {
            for (to, [_, _, port]) in ports.iter().enumerate().filter(|(to, _)| *to != from) {
                routes.push(Route { from, to, proxy: Proxy::start(*port) });
            }
        }
        let mut servers = Vec::new();
        for (no, &[client_port, monitor_port, listen_port]) in ports.iter().enumerate() {
            let mine = routes.iter().filter(|route| route.from == no).map(|route| route.proxy.port());
            let others = ports.iter().map(|[_, _, port]| *port).filter(|port| *port != listen_port);
            let to_ports = if options.proxied_routes { mine.collect() } else { others.collect() };
            let place = Place { client_port, monitor_port, routes: Some(Routes { listen_port, to_ports }) };
            let options = Options { name: format!("{}{}", options.name, no + 1), ..options.clone() };
            servers.push(Server::try_start(options, place)?);
        }
        for server in &servers {
            server.await_clients()?;
        }
        let cluster = Self { servers, routes };
        cluster.await_leader()?;
        for server in &cluster.servers {
            server.await_ready()?;
        }
        Ok(cluster)
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub fn servers_mut(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// Of all servers, comma separated.
    pub fn urls(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(Server::url).collect();
        urls.join(",")
    }

    /// Ways to all servers, for somebody who is to be cut off from them.
    pub fn links(&self) -> Links {
        Links::to(&self.servers)
    }

    /// The server that decides where streams are, as the others see it.
    pub fn leader(&self) -> Option<usize> {
        self.agreed(|server| {
            let answer = server.monitor("/jsz")?;
            answer.get("meta_cluster")?.get("leader")?.as_str().map(str::to_owned)
        })
    }

    /// The names of all streams.
    pub fn streams(&self) -> BTreeSet<String> {
        self.servers.iter().flat_map(streams).map(|(name, _)| name).collect()
    }

    /// The server that leads a stream.
    pub fn stream_leader(&self, stream: &str) -> Option<usize> {
        self.agreed(|server| streams(server).into_iter().find(|(name, _)| name == stream)?.1)
    }

    /// The number of the server that more than half of the servers name and that is running.
    fn agreed(&self, name: impl Fn(&Server) -> Option<String>) -> Option<usize> {
        let names: Vec<String> =
            self.servers.iter().filter(|server| server.is_running()).filter_map(name).collect();
        let running = |server: &Server| {
            let votes = names.iter().filter(|name| *name == server.name()).count();
            server.is_running() && votes * 2 > self.servers.len()
        };
        self.servers.iter().position(running)
    }

    /// Waits for a leader.
    ///
    /// # Errors
    /// What the servers said, if there is none.
    pub fn await_leader(&self) -> Result<usize, String> {
        let deadline = Instant::now() + LEADER_WITHIN;
        while Instant::now() < deadline {
            if let Some(leader) = self.leader() {
                return Ok(leader);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let logs: Vec<String> = self.servers.iter().map(Server::log).collect();
        Err(format!("no leader within {LEADER_WITHIN:?}: {}", logs.join("\n")))
    }

    /// Waits until every server has what the others have.
    ///
    /// # Errors
    /// What a server said that does not get there.
    pub fn await_healthy(&self) -> Result<(), String> {
        self.servers.iter().try_for_each(Server::await_ready)
    }

    /// The links between one server and all others.
    fn routes_of(&self, no: usize) -> impl Iterator<Item = &Proxy> {
        let mine = self.routes.iter().filter(move |route| route.from == no || route.to == no);
        mine.map(|route| &route.proxy)
    }

    /// Closes the links between one server and all others. Clients still reach it.
    pub fn cut_off(&self, no: usize) {
        self.routes_of(no).for_each(Proxy::cut);
    }

    /// Lets nothing through between one server and all others, while the links seem open.
    pub fn freeze_out(&self, no: usize) {
        self.routes_of(no).for_each(Proxy::freeze);
    }

    /// Slows the links between all servers.
    pub fn slow(&self, delay: Duration, bytes_per_sec: u64) {
        self.routes.iter().for_each(|route| route.proxy.slow(delay, bytes_per_sec));
    }

    /// All links between servers as they were.
    pub fn heal(&self) {
        self.routes.iter().for_each(|route| route.proxy.heal());
    }
}

/// The streams that a server has, and who leads each as far as it knows.
fn streams(server: &Server) -> Vec<(String, Option<String>)> {
    let answer = server.monitor("/jsz?accounts=true&streams=true").unwrap_or_default();
    let accounts = answer.get("account_details").and_then(Value::as_array).into_iter().flatten();
    let details = accounts.filter_map(|account| account.get("stream_detail")?.as_array()).flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = |detail: &Value| {
        let leader = detail.get("cluster").and_then(|cluster| cluster.get("leader").and_then(text));
        Some((detail.get("name").and_then(text)?, leader))
    };
    details.filter_map(read).collect()
}
