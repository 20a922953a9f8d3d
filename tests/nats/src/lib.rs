//! A real NATS to test with, and ways to break it.
//!
//! [`Server`] is one `nats-server` on loopback, [`Cluster`] is several. They can be killed, paused and started
//! again where they were. A [`Proxy`] stands in a link, which can then be cut, frozen or slowed.

mod binary;
mod process;

mod options;
mod port;

mod monitor;
mod server;

mod proxy;

mod cluster;
mod links;

pub use binary::{find_nats_server, nats_server};
pub use cluster::Cluster;
pub use links::Links;
pub use options::{Login, Options, Sync};
pub use proxy::Proxy;
pub use server::Server;
