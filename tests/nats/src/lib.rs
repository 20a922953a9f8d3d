//! A real NATS to test with, ways to break it, and a judge of what clients saw meanwhile.
//!
//! [`Server`] is one `nats-server` on loopback, [`Cluster`] is several. They can be killed, paused and started
//! again where they were. A [`Proxy`] stands in a link, which can then be cut, frozen or slowed.
//! A [`Node`] is one `rollyard serve`, perhaps with a [`Clock`] of its own. A [`Workload`] writes and reads on
//! several of them and notes what it is told in a [`History`](history::History); [`check`](check::check) says what in it
//! cannot be.

mod binary;
mod process;

mod options;
mod port;

mod monitor;
mod server;

mod proxy;

mod cluster;
mod links;

mod clock;
mod dice;
mod node;

pub mod history;

mod api;
mod ending;
mod workload;

pub mod check;

pub use binary::{find_nats_server, nats_server};
pub use clock::Clock;
pub use cluster::Cluster;
pub use dice::Dice;
pub use links::Links;
pub use node::{Address, Node};
pub use options::{Login, Options, Sync};
pub use proxy::Proxy;
pub use server::Server;
pub use workload::{GROUP_SIZE, Report, Workload};
