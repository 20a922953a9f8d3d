//! What a log on JetStream needs to be told.

use super::super::error::LogError;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where the streams of a yard are, and how new ones are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `nats://host:4222`, or several with commas between them; `user:password@` and `token@` are understood.
    pub servers: String,
    /// A file of credentials, as `nsc` makes it.
    pub credentials: Option<PathBuf>,
    /// Several yards can share the servers. Letters, digits and `-`.
    pub yard: String,
    /// Copies of a stream that is made, 1 to 5.
    pub replicas: usize,
    /// A stream that has grown to this refuses what comes, instead of dropping what it has.
    pub max_bytes: Option<u64>,
    pub blobs: Blobs,
    /// Payloads up to this size lie in the stream itself.
    pub inline_max: usize,
    /// Payloads are given back segment by segment, each of about this size.
    pub segment_bytes: u64,
    /// Bundles of all runs that are kept in memory for those who read them soon.
    pub cache_bytes: usize,
    /// How long to go on trying when the servers do not answer.
    pub patience: Duration,
}

/// Who keeps the payloads that are too large for a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Blobs {
    /// The object store of the same servers.
    #[default]
    JetStream,
    /// `s3://bucket/prefix`, or `gs://`, `az://`.
    Bucket(String),
}

/// A place where no blobs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not `jetstream`, nor a bucket like s3://bucket/prefix")]
pub struct BadBlobs;

impl FromStr for Blobs {
    type Err = BadBlobs;

    fn from_str(place: &str) -> Result<Self, BadBlobs> {
        match place.split_once("://") {
            None if place == "jetstream" => Ok(Self::JetStream),
            Some(("s3" | "gs" | "az", bucket)) if !bucket.is_empty() => Ok(Self::Bucket(place.to_owned())),
            _ => Err(BadBlobs),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: "nats://127.0.0.1:4222".to_owned(),
            credentials: None,
            yard: "rollyard".to_owned(),
            replicas: 1,
            max_bytes: None,
            blobs: Blobs::default(),
            inline_max: 64 << 10,
            segment_bytes: 64 << 20,
            cache_bytes: 256 << 20,
            patience: Duration::from_secs(10),
        }
    }
}

impl Settings {
    pub fn new(servers: impl Into<String>) -> Self {
        Self { servers: servers.into(), ..Self::default() }
    }

    /// Whether these are addresses of NATS servers, with commas between them.
    pub fn are_servers(servers: &str) -> bool {
        servers.split(',').all(|server| {
            let rest = server.trim().strip_prefix("nats://").or_else(|| server.trim().strip_prefix("tls://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
        })
    }

    /// Refuses what no server would take, with the setting's name and value.
    pub fn check(&self) -> Result<(), LogError> {
        let wrong = |what: String| Err(LogError::Server { servers: self.servers_told(), cause: what });
        if !(1..=5).contains(&self.replicas) {
            return wrong(format!("replicas is {}, but must be 1 to 5", self.replicas));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.yard.is_empty() || !self.yard.chars().all(is_plain) {
            return wrong(format!("the yard's name is {:?}, but must be letters, digits and '-'", self.yard));
        }
        Ok(())
    }

    /// The servers without passwords, for messages.
    pub fn servers_told(&self) -> String {
        let without_secret = |server: &str| match server.split_once("://") {
            Some((scheme, rest)) => {
                format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host))
            }
            None => server.rsplit_once('@').map_or(server, |(_, host)| host).to_owned(),
        };
        self.servers.split(',').map(|server| without_secret(server.trim())).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_do_not_tell_passwords() {
        let settings = Settings::new("nats://u:p@a:4222, tls://secret@b:4222,c");
        assert_eq!(settings.servers_told(), "nats://a:4222,tls://b:4222,c");
    }

    #[test]
    fn servers_and_buckets_are_told_from_other_places() {
        for (servers, are) in [
            ("nats://a:4222", true),
            ("nats://u:p@a:4222, tls://b", true),
            ("nats://", false),
            ("nats://a/b", false),
            ("a:4222", false),
            ("http://a:4222", false),
            ("nats://a,", false),
        ] {
            assert_eq!(Settings::are_servers(servers), are, "{servers}");
        }
        assert_eq!("jetstream".parse(), Ok(Blobs::JetStream));
        assert_eq!("s3://b/p".parse(), Ok(Blobs::Bucket("s3://b/p".to_owned())));
        for wrong in ["", "s3://", "file:///x", "http://b"] {
            assert_eq!(wrong.parse::<Blobs>(), Err(BadBlobs), "{wrong}");
        }
    }

    #[test]
    fn values_that_no_server_takes_are_named() {
        let wrong = Settings { replicas: 6, ..Settings::default() }.check().unwrap_err().to_string();
        assert!(wrong.contains("replicas is 6"), "{wrong}");
        let wrong =
            Settings { yard: "a_b".to_owned(), ..Settings::default() }.check().unwrap_err().to_string();
        assert!(wrong.contains("\"a_b\""), "{wrong}");
    }
}
