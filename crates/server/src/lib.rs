//! Listens: the buffer calls that slime's clients speak, and Rollyard's own API beside them.
//!
//! A request passes the [`guard`] (token or [`session`], host, origin), reaches a handler in [`slime`] or [`api`], which asks
//! the yard of its run, opened by [`runs`]. What a read hands out travels through [`deliver`], which acks or
//! returns the lease by what [`connection`] saw of the reader. [`generators`] are what the server runs by itself to
//! have rollouts made, and [`gate`] is where agents ask. In a [`cluster`] a request goes to the node that owns its run. [`view`] answers whoever looks at rollouts that lie in files, [`live`] whoever
//! watches the yard at work, on the [`page`] that comes with the server. [`serve`] is the loop around all of it.

pub mod cluster;
pub mod runs;
pub mod settings;

mod admit;
mod api;
mod app;
mod body;
mod columns;
mod connection;
mod deliver;
mod error;
mod gate;
mod generators;
mod guard;
mod live;
mod metrics;
mod page;
mod serve;
mod session;
mod slime;
mod start;
mod view;

pub use app::App;
pub use cluster::{Cluster, ClusterSettings, JoinError};
pub use gate::{GateError, GateSettings};
pub use runs::{RunError, Runs};
pub use serve::serve;
pub use settings::{CompressAnswers, Grader, Settings};
