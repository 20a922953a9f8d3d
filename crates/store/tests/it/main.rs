//! The log and the files of rollouts under use and under abuse: one binary, so that it links once.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod archive;
mod archiving;
mod catalog;
mod conformance;
mod copy;
mod example;
mod fates;
mod faults;
mod faulty;
mod fixture;
mod jetstream;
mod jetstream_faults;
mod model;
mod places;
mod places_s3;
mod query;
mod query_figures;
mod random_work;
mod records;
mod rollout_columns;
mod rollout_files;
mod rollout_samples;
mod support;
mod yard;
