//! Questions to a catalog: filters, sorted pages, facets, curves, SQL and text search.
//!
//! `filter` is the language that people type; it becomes SQL with bound parameters, or runs over `columns` in
//! memory, and both give the same rows. `sql` runs what users write themselves, read-only. `search` goes
//! through the bodies.

mod answer;

pub use answer::Answer;

use crate::catalog::{Catalog, CatalogError, RowNo};
use serde_json::Value;
use std::ops::ControlFlow;
use std::ops::Range;

/// A mistake in what the user typed, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    pub message: String,
    /// Bytes of the text it is about.
    pub at: Range<usize>,
    /// What could stand there instead: fields, operators.
    pub expected: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Mistake(#[from] Mistake),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("{0}")]
    Sql(String),
    #[error("cancelled")]
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    pub field: String,
    pub descending: bool,
}

/// Which rows, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choice {
    /// In the filter language; empty for all.
    pub filter: String,
    pub sort: Vec<Sort>,
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Rows that the filter lets through.
    pub total: u64,
    pub columns: Vec<String>,
    pub rows: Vec<(RowNo, Vec<Value>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FacetValue {
    pub value: Value,
    pub count: u64,
}

#[derive(Clone, Debug)]
pub struct Facet {
    pub field: String,
    /// The most frequent first.
    pub values: Vec<FacetValue>,
    /// Different values, if there are more than are given.
    pub distinct: u64,
    /// Of numbers.
    pub range: Option<(f64, f64)>,
}

/// One point of the curves.
#[derive(Clone, Debug, Default)]
pub struct StepPoint {
    pub step: i64,
    /// The series it belongs to, when asked by source or env.
    pub series: Option<String>,
    pub n: u64,
    pub n_prompts: u64,
    pub n_groups: u64,
    pub reward_mean: Option<f64>,
    pub reward_std: Option<f64>,
    pub reward_min: Option<f64>,
    pub reward_max: Option<f64>,
    /// Share of groups with at least one reward above the threshold.
    pub pass_at_k: Option<f64>,
    pub response_chars_mean: Option<f64>,
    pub tokens_mean: Option<f64>,
    pub truncated: u64,
    pub dead_groups: u64,
    pub lag_mean: Option<f64>,
}

/// A catalog that is asked again and again: what was loaded once stays in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct Query {
    catalog: Catalog,
}

impl Query {
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Checks a filter without running it.
    pub fn check(&self, filter: &str) -> Result<(), QueryError> {
        let _ = filter;
        unimplemented!()
    }

    /// Rows `range` of the choice, with these columns (names of columns, dotted names of extras, `id`, `source_file`).
    pub fn page(&self, choice: &Choice, columns: &[String], range: Range<u64>) -> Result<Page, QueryError> {
        let _ = (choice, columns, range);
        unimplemented!()
    }

    /// Row numbers of the whole choice, in order.
    pub fn rows(&self, choice: &Choice) -> Result<std::sync::Arc<Vec<RowNo>>, QueryError> {
        let _ = choice;
        unimplemented!()
    }

    pub fn facets(
        &self,
        filter: &str,
        fields: &[String],
        values_max: usize,
    ) -> Result<Vec<Facet>, QueryError> {
        let _ = (filter, fields, values_max);
        unimplemented!()
    }

    /// The curves of a filter, by step and, if asked, by the values of one field.
    pub fn steps(
        &self,
        filter: &str,
        series: Option<&str>,
        pass_above: f64,
    ) -> Result<Vec<StepPoint>, QueryError> {
        let _ = (filter, series, pass_above);
        unimplemented!()
    }

    /// Read-only SQL over `rollouts`. `on_row` gets the names first with the first row.
    pub fn sql(
        &self,
        sql: &str,
        on_row: &mut dyn FnMut(&[String], &[Value]) -> ControlFlow<()>,
    ) -> Result<Vec<String>, QueryError> {
        let _ = (sql, on_row);
        unimplemented!()
    }
}

/// Text to look for in bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub is_regex: bool,
    pub ignore_case: bool,
    /// Empty for all.
    pub channels: Vec<crate::records::Channel>,
}

/// A place where a pattern was found. `range` counts characters (Unicode scalar values) in the piece's message
/// text of that channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub row: RowNo,
    pub message: usize,
    pub channel: crate::records::Channel,
    pub range: Range<usize>,
    /// Some text around it, and where the hit stands in it (bytes).
    pub snippet: String,
    pub in_snippet: Range<usize>,
    /// Hits in this row; only the first is told in detail.
    pub count_in_row: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub rows_done: u64,
    pub rows: u64,
    pub bytes_done: u64,
    pub bytes: u64,
    pub hits: u64,
}

#[derive(Clone, Debug)]
pub enum Found {
    Hit(Hit),
    Progress(Scanned),
}

impl Query {
    /// Looks through the bodies of a choice, in file order, on all cores. Stops when `on_found` says so.
    pub fn search(
        &self,
        filter: &str,
        patterns: &[Pattern],
        on_found: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<Scanned, QueryError> {
        let _ = (filter, patterns, on_found);
        unimplemented!()
    }
}
