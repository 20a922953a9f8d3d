//! Help with the filter language: whether a text is one, and what could come next.

use axum::Json;
use rollyard_store::query::SuggestionKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Params, blocking};
use super::shelf::OfView;
use crate::App;
use crate::error::{ApiError, ErrorAnswer};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(check)).routes(routes!(complete))
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct CheckAsked {
    filter: String,
}

#[derive(Serialize, ToSchema)]
struct CheckAnswer {
    /// Always true: a filter that does not parse is an error, with `at` and `expected`.
    ok: bool,
}

/// Whether a filter parses, without running it.
#[utoipa::path(get, path = "/{view}/check", tag = "view", params(("view" = String, Path), CheckAsked),
    responses((status = 200, body = CheckAnswer), (status = 400, body = ErrorAnswer)))]
async fn check(
    OfView(view): OfView,
    Params(asked): Params<CheckAsked>,
) -> Result<Json<CheckAnswer>, ApiError> {
    blocking(move || {
        view.query.check(&asked.filter)?;
        Ok(Json(CheckAnswer { ok: true }))
    })
    .await
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct CompleteAsked {
    filter: String,
    /// Bytes before the cursor; the end if left out.
    at: Option<usize>,
}

#[derive(Serialize, ToSchema)]
struct CompleteAnswer {
    /// Bytes of the filter that a suggestion takes the place of.
    from: usize,
    to: usize,
    /// The likeliest first.
    suggestions: Vec<SuggestionAnswer>,
}

#[derive(Serialize, ToSchema)]
struct SuggestionAnswer {
    text: String,
    /// field, operator, value or keyword.
    kind: &'static str,
    /// What it is, or how often it occurs.
    about: String,
}

/// What could be typed at the cursor: fields, operators of the field's kind, values from the data.
#[utoipa::path(get, path = "/{view}/complete", tag = "view", params(("view" = String, Path), CompleteAsked),
    responses((status = 200, body = CompleteAnswer)))]
async fn complete(
    OfView(view): OfView,
    Params(asked): Params<CompleteAsked>,
) -> Result<Json<CompleteAnswer>, ApiError> {
    blocking(move || {
        let at = asked.at.unwrap_or(asked.filter.len());
        let completion = view.query.complete(&asked.filter, at)?;
        let suggestions = completion.suggestions.into_iter().map(|suggestion| SuggestionAnswer {
            text: suggestion.text,
            kind: match suggestion.kind {
                SuggestionKind::Field => "field",
                SuggestionKind::Operator => "operator",
                SuggestionKind::Value => "value",
                SuggestionKind::Keyword => "keyword",
            },
            about: suggestion.about,
        });
        Ok(Json(CompleteAnswer {
            from: completion.from,
            to: completion.to,
            suggestions: suggestions.collect(),
        }))
    })
    .await
}
