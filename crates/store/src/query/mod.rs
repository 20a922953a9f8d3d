//! Questions to a catalog: filters, sorted pages, facets, curves, SQL and text search.
//!
//! [`filter`] is the language that people type; it becomes SQL with bound parameters, or runs over `columns` in
//! memory, and both give the same rows. `choice` has which rows and in which order, `page`, `facets`, `steps`,
//! `groups` and `histogram` what is shown of them, and `compare` sets two catalogs side by side. `sql` runs what users write themselves, read-only, and `answer`
//! holds what it gave. `search` goes through the bodies.

#[cfg(test)]
mod agree;
mod answer;
mod choice;
mod columns;
mod compare;
mod error;
mod facets;
pub mod filter;
mod groups;
mod histogram;
mod kept;
mod page;
mod search;
mod sql;
mod steps;
mod suggest;
mod sum;

pub use answer::Answer;
pub use choice::{Choice, Sort};
pub use compare::{COMPARE_SORTS, Compared, Pair, Side};
pub use error::{Mistake, QueryError};
pub use facets::{Facet, FacetValue};
pub use filter::{Completion, Suggestion, SuggestionKind};
pub use groups::{GROUP_SORTS, Group, Groups};
pub use histogram::{Bin, Histogram};
pub use page::Page;
pub use search::{Found, Hit, Pattern, Scanned, Wanted};
pub use sql::OnRow;
pub use steps::StepPoint;

use crate::catalog::Catalog;
use kept::Shared;
use std::sync::Arc;

/// A catalog that is asked again and again: what was loaded once stays in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct Query {
    catalog: Catalog,
    shared: Arc<Shared>,
}

impl Query {
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog, shared: Arc::default() }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}
