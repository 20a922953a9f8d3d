//! Rollyard's own API, under `/api`.
//!
//! One file per noun: [`runs`], [`generators`], [`rollouts`], [`leases`], [`steps`], [`replay`], [`events`], [`nodes`].

mod events;
mod generators;
mod leases;
mod nodes;
mod replay;
mod rollouts;
mod runs;
mod steps;
mod uploads;

pub(crate) use runs::{ArchiveAnswer, BooksAnswer};

use utoipa_axum::router::OpenApiRouter;

use crate::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(runs::routes())
        .merge(generators::routes())
        .merge(rollouts::routes())
        .merge(uploads::routes())
        .merge(leases::routes())
        .merge(steps::routes())
        .merge(replay::routes())
        .merge(events::routes())
        .merge(nodes::routes())
}
