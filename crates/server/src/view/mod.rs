//! The viewer's API, under `/api/view`: rollouts that lie in files, found and read.
//!
//! A [`place`] is what a user names; a [`shelf`] keeps the views that are open, each with a catalog that is indexed in
//! the background ([`indexing`]). [`open`] answers what a view is and how far it has come. Its rows are read as
//! [`rows`], one by one as a [`rollout`], together as a [`group`], all [`groups`] as a list; [`figures`] are counted
//! over a [`filter`], [`compare`] sets two views side by side, and [`sql`] asks anything else. What is [`detected`] in
//! a rollout, and the [`series`] that it has for its tokens, come with it. [`search`] and [`tail`] stream. [`browse`]
//! finds places, [`export`] takes rows along, [`bundle`] as a page of its own; [`example`] is a run for who has none.
//! What people and models say of rollouts is kept in [`notes`], and [`saved`] keeps the views that got a name.
//! [`grade`] asks a model. [`samples`] are the calls of the older viewer, for scripts that use them.

mod answer;
mod browse;
mod bundle;
mod compare;
mod detected;
mod example;
mod export;
mod figures;
mod filter;
mod grade;
mod group;
mod groups;
mod indexing;
mod notes;
mod open;
mod place;
mod rollout;
mod rows;
mod samples;
mod saved;
mod search;
mod series;
mod shelf;
mod sidecar;
mod sql;
mod summary;
mod tail;
mod tokens;

pub(crate) use place::is_key;
pub(crate) use shelf::Views;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    let view = OpenApiRouter::new()
        .merge(open::routes())
        .merge(rows::routes())
        .merge(rollout::routes())
        .merge(group::routes())
        .merge(groups::routes())
        .merge(compare::routes())
        .merge(filter::routes())
        .merge(figures::routes())
        .merge(sql::routes())
        .merge(search::routes())
        .merge(tail::routes())
        .merge(browse::routes())
        .merge(export::routes())
        .merge(example::routes())
        .merge(notes::routes())
        .merge(saved::routes())
        .merge(grade::routes());
    OpenApiRouter::new().nest("/view", view).merge(samples::routes())
}
