//! The settings of a node among many, once they are picked.

use rollyard_server::cluster::NodeName;
use rollyard_store::log::jetstream;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::SettingsError;
use super::resolve::{Origin, Picked};

/// What `rollyard serve` is told about the nodes that share its runs.
#[derive(Clone, Debug)]
pub(crate) struct ClusterServing {
    pub(crate) log: jetstream::Settings,
    /// The one in the data folder, if left out.
    pub(crate) node: Option<NodeName>,
    /// Without a slash at the end; the address that is listened on, if left out.
    pub(crate) advertise: Option<String>,
}

const NEED_LOG: [&str; 7] =
    ["log_replicas", "log_yard", "log_credentials", "log_max_bytes", "blobs", "node", "advertise"];

impl Picked {
    pub(super) fn cluster(&self, listen: SocketAddr) -> Result<Option<ClusterServing>, SettingsError> {
        let servers: Vec<String> = self
            .list("log")?
            .iter()
            .flat_map(|servers| servers.split(','))
            .map(|server| server.trim().to_owned())
            .collect();
        if servers.is_empty() {
            // Somebody who names a node believes that there are many.
            let stray =
                NEED_LOG.into_iter().map(|name| self.get(name)).find(|given| given.origin == Origin::Flag);
            return stray.map_or(Ok(None), |given| {
                Err(SettingsError::NeedsLog {
                    name: given.setting.name.to_owned(),
                    value: given.value.to_string(),
                    origin: given.origin_name(),
                })
            });
        }
        if !jetstream::Settings::are_servers(&servers.join(",")) {
            let told = jetstream::Settings::new(servers.join(",")).servers_told();
            return Err(SettingsError::Invalid {
                name: "log".to_owned(),
                value: format!("{told:?}"),
                expected: "NATS servers, like nats://host:4222 or tls://host:4222, with commas between them"
                    .to_owned(),
                origin: self.get("log").origin_name(),
            });
        }
        if self.optional_text("archive")?.is_some() {
            return Err(SettingsError::ArchiveWithLog);
        }
        let replicas = self.count("log_replicas")?;
        if !(1..=5).contains(&replicas) {
            return Err(self.get("log_replicas").invalid("from 1 to 5"));
        }
        let yard = self.text("log_yard")?;
        if yard.is_empty() || !yard.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(self.get("log_yard").invalid("letters, digits and '-'"));
        }
        let credentials = self.optional_text("log_credentials")?.map(PathBuf::from);
        if credentials.as_ref().is_some_and(|path| !path.is_file()) {
            return Err(self.get("log_credentials").invalid("a file that can be read"));
        }
        let max_bytes =
            if self.is_given("log_max_bytes") { Some(self.size("log_max_bytes")? as u64) } else { None };
        Ok(Some(ClusterServing {
            log: jetstream::Settings {
                credentials,
                yard,
                replicas: replicas as usize,
                max_bytes,
                blobs: self.blobs()?,
                ..jetstream::Settings::new(servers.join(","))
            },
            node: self.node()?,
            advertise: self.advertise(listen)?,
        }))
    }

    fn blobs(&self) -> Result<jetstream::Blobs, SettingsError> {
        let place = self.text("blobs")?.parse();
        place.map_err(|_| self.get("blobs").invalid("\"jetstream\", or a bucket like s3://bucket/prefix"))
    }

    fn node(&self) -> Result<Option<NodeName>, SettingsError> {
        let Some(name) = self.optional_text("node")? else { return Ok(None) };
        let parsed = NodeName::try_from(name.as_str());
        parsed.map(Some).map_err(|_| self.get("node").invalid("1 to 64 letters, digits, '-', '_' and '.'"))
    }

    fn advertise(&self, listen: SocketAddr) -> Result<Option<String>, SettingsError> {
        let Some(url) = self.optional_text("advertise")? else {
            return if listen.ip().is_unspecified() {
                Err(SettingsError::NeedsAdvertise { listen })
            } else {
                Ok(None)
            };
        };
        let wrong =
            || self.get("advertise").invalid("a URL that other nodes can reach, like http://10.0.0.7:8889");
        let url = url.trim_end_matches('/').to_owned();
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).ok_or_else(wrong)?;
        let host = host_of(rest).ok_or_else(wrong)?;
        let is_anywhere = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if is_anywhere { Err(wrong()) } else { Ok(Some(url)) }
    }
}

/// The host of `host:port`, if it is one: a URL of a node has no path and no login.
pub(crate) fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)),
    };
    (is_port && is_host).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_host_and_maybe_a_port() {
        for (authority, host) in [
            ("10.0.0.7:8889", Some("10.0.0.7")),
            ("gpu-17.rack", Some("gpu-17.rack")),
            ("[::1]:8889", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("", None),
            (":8889", None),
            ("host:0", None),
            ("host:99999", None),
            ("u:p@host", None),
            ("host/path", None),
            ("a b", None),
        ] {
            assert_eq!(host_of(authority), host, "{authority}");
        }
    }
}
