//! What could be typed next, with values from the data.

use super::filter::tree::{Field, Source, Type};
use super::filter::{Completion, Suggestion, SuggestionKind, gap};
use super::{FacetValue, Query, QueryError};
use serde_json::Value;

const VALUES_MAX: usize = 30;
/// More different values than this are names or measurements, and nobody picks one from a list.
const WORTH_COUNTING: usize = 200_000;

impl Query {
    /// Suggestions for a filter with the cursor at a byte of it.
    pub fn complete(&self, text: &str, cursor: usize) -> Result<Completion, QueryError> {
        let fields = self.fields()?;
        let gap = gap(text, cursor, &fields);
        let values = match &gap.values_of {
            Some(field) if field.kind != Type::Flag => self.values_like(field, &gap.typed)?,
            _ => Vec::new(),
        };
        Ok(gap.finish(values))
    }

    /// The most frequent values of a field that begin with `prefix`, or have it inside.
    pub fn values(&self, field: &str, prefix: &str, max: usize) -> Result<Vec<FacetValue>, QueryError> {
        let wanted = prefix.to_lowercase();
        let facet = self.facets("", &[field.to_owned()], WORTH_COUNTING)?.into_iter().next();
        let mut values: Vec<(bool, FacetValue)> = facet
            .map(|facet| facet.values)
            .unwrap_or_default()
            .into_iter()
            .filter(|found| !found.value.is_null())
            .filter_map(|found| {
                let shown = shown(&found.value).to_lowercase();
                shown.contains(&wanted).then(|| (!shown.starts_with(&wanted), found))
            })
            .collect();
        values.sort_by_key(|(inside, _)| *inside);
        Ok(values.into_iter().take(max).map(|(_, found)| found).collect())
    }

    fn values_like(&self, field: &Field, typed: &str) -> Result<Vec<Suggestion>, QueryError> {
        let name = match &field.source {
            Source::Column(name) => (*name).to_owned(),
            Source::Extra(name) => format!("attributes.{name}"),
            Source::File => "source_file".to_owned(),
            Source::Id | Source::Extras => return Ok(Vec::new()),
        };
        let values = self.values(&name, typed, VALUES_MAX)?;
        Ok(values
            .into_iter()
            .map(|found| Suggestion {
                text: match &found.value {
                    Value::String(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
                    other => other.to_string(),
                },
                kind: SuggestionKind::Value,
                about: match found.count {
                    1 => "1 rollout".to_owned(),
                    many => format!("{many} rollouts"),
                },
            })
            .collect())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
