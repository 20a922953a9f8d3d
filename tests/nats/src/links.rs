//! The way of one client to every server of a cluster.

use crate::proxy::Proxy;
use crate::server::Server;
use std::time::Duration;

/// One proxy before each server: whoever is given these URLs can be cut off alone.
#[derive(Debug)]
pub struct Links {
    proxies: Vec<Proxy>,
    urls: Vec<String>,
}

impl Links {
    pub fn to(servers: &[Server]) -> Self {
        let proxies: Vec<Proxy> = servers.iter().map(|server| Proxy::start(server.port())).collect();
        let urls = servers.iter().zip(&proxies).map(|(server, proxy)| server.url_at(proxy.port())).collect();
        Self { proxies, urls }
    }

    /// Comma separated.
    pub fn urls(&self) -> String {
        self.urls.join(",")
    }

    /// In the order of the servers.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    pub fn cut(&self) {
        self.proxies.iter().for_each(Proxy::cut);
    }

    pub fn freeze(&self) {
        self.proxies.iter().for_each(Proxy::freeze);
    }

    pub fn slow(&self, delay: Duration, bytes_per_sec: u64) {
        self.proxies.iter().for_each(|proxy| proxy.slow(delay, bytes_per_sec));
    }

    pub fn heal(&self) {
        self.proxies.iter().for_each(Proxy::heal);
    }
}
