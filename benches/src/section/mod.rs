//! One file per section of the bench, in the order in which `all` runs them.

pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod build;
pub(crate) mod cluster;
pub(crate) mod connections;
pub(crate) mod episodes;
pub(crate) mod gateway;
pub(crate) mod memory;
pub(crate) mod tiny;
pub(crate) mod writes;
