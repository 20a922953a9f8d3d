//! The catalog in memory, one column at a time.
//!
//! SQLite needs longer to look at a million rows than a reader waits for a key (`docs/decisions/010-columns.md`).
//! So the columns that filters, sorting and charts ask for are kept here: [`table`] loads them and keeps up with
//! the catalog, [`of_group`] makes those that depend on the other rows of a group, [`plan`] binds a filter to them, [`mask`] runs it, [`order`] sorts what is left.

pub(crate) mod column;
pub(crate) mod cores;
pub(crate) mod mask;
pub(crate) mod of_group;
pub(crate) mod order;
pub(crate) mod plan;
pub(crate) mod table;
pub(crate) mod words;

pub(crate) use column::Column;
pub(crate) use plan::{is_possible, plan, sources};
pub(crate) use table::Table;
