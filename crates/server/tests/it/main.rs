//! The server as its clients see it: real sockets, real files, one process.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail on the spot")]

mod api;
mod cluster;
mod faults;
mod gateway;
mod generators;
mod guard;
mod hooks;
mod live;
mod openapi;
mod page;
mod reads;
mod replay;
mod server;
mod session;
mod view;
mod view_figures;
mod view_grade;
mod view_take;
mod view_ways;
mod writes;
