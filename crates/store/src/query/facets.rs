//! How often each value of a field occurs under a filter.

use super::choice::{Chosen, field};
use super::columns::order::{self, int_of, real_of};
use super::columns::{Column, cores};
use super::filter::tree::{Field, Source, Type};
use super::page::json;
use super::{Choice, Query, QueryError};
use rusqlite::params_from_iter;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct FacetValue {
    /// NULL where the field is not given.
    pub value: Value,
    pub count: u64,
}

#[derive(Clone, Debug)]
pub struct Facet {
    pub field: String,
    /// The most frequent first.
    pub values: Vec<FacetValue>,
    /// Different values, NULL not counted.
    pub distinct: u64,
    /// Of numbers.
    pub range: Option<(f64, f64)>,
}

/// Every value of a field with its count.
#[derive(Debug, Default)]
struct Counted {
    values: Vec<FacetValue>,
    null: u64,
    range: Option<(f64, f64)>,
}

impl Query {
    pub fn facets(
        &self,
        filter: &str,
        fields: &[String],
        values_max: usize,
    ) -> Result<Vec<Facet>, QueryError> {
        let names = self.fields()?;
        let found = fields.iter().map(|name| field(&names, name)).collect::<Result<Vec<_>, _>>()?;
        let also: Vec<Source> = found
            .iter()
            .map(|field| field.source.clone())
            .filter(|source| *source != Source::Extras)
            .collect();
        let choice = Choice { filter: filter.to_owned(), sort: Vec::new() };
        let chosen = self.choose(&choice, &also)?;
        let counted = cores::map(found.len(), 2, |i| count(found.get(i)?, &chosen));
        let mut facets = Vec::with_capacity(fields.len());
        for ((name, field), counted) in fields.iter().zip(&found).zip(counted) {
            let counted = match counted {
                Some(counted) => counted,
                None => self.count_by_sql(filter, field)?,
            };
            facets.push(counted.facet(name, values_max));
        }
        Ok(facets)
    }

    fn count_by_sql(&self, filter: &str, field: &Field) -> Result<Counted, QueryError> {
        let mut sql = self.parse(filter)?.sql();
        let (name, param) = field.sql();
        let text = format!("SELECT {name}, count(*) FROM rollouts WHERE {} GROUP BY 1", sql.text);
        sql.params.splice(0..0, param.map(rusqlite::types::Value::Text));
        let connection = self.lend()?;
        let mut statement = connection.prepare(&text)?;
        let mut rows = statement.query(params_from_iter(sql.params))?;
        let mut counted = Counted::default();
        while let Some(row) = rows.next()? {
            let count: i64 = row.get(1)?;
            counted.add(json(row.get_ref(0)?, field.kind), count.unsigned_abs());
        }
        Ok(counted)
    }
}

impl Counted {
    fn add(&mut self, value: Value, count: u64) {
        if value.is_null() {
            self.null = count;
            return;
        }
        if let Some(number) = value.as_f64() {
            let (least, most) = self.range.unwrap_or((number, number));
            self.range = Some((least.min(number), most.max(number)));
        }
        self.values.push(FacetValue { value, count });
    }

    fn facet(mut self, name: &str, values_max: usize) -> Facet {
        let distinct = self.values.len() as u64;
        if self.null > 0 {
            self.values.push(FacetValue { value: Value::Null, count: self.null });
        }
        // Stable, so that equally frequent values keep the order they have as values.
        self.values.sort_by_key(|value| std::cmp::Reverse(value.count));
        self.values.truncate(values_max);
        Facet { field: name.to_owned(), values: self.values, distinct, range: self.range }
    }
}

/// `None` where the column is not in memory.
fn count(field: &Field, chosen: &Chosen) -> Option<Counted> {
    let column = chosen.table.column(&field.source)?;
    let mut counted = Counted::default();
    match &**column {
        Column::Text(words) => {
            let counts = by_code(&words.codes, words.len(), &chosen.positions);
            let mut found: Vec<(u32, u64)> = (0..).zip(counts).filter(|(_, count)| *count > 0).collect();
            if found.len() < 10_000 {
                found.sort_unstable_by_key(|(code, _)| words.word(*code));
            }
            for (code, count) in found {
                counted.add(words.word(code).into(), count);
            }
        }
        Column::Mixed(mixed) => {
            let counts = by_code(&mixed.codes, mixed.values.len(), &chosen.positions);
            counted.null = counts.first().copied().unwrap_or_default();
            for (value, count) in mixed.values.iter().zip(counts.into_iter().skip(1)).filter(|(_, n)| *n > 0)
            {
                counted.add(value.value(), count);
            }
        }
        column => {
            let is_real = matches!(column, Column::Real(_));
            for (key, count) in runs(column, &chosen.positions, &mut counted.null) {
                let value = match field.kind {
                    Type::Flag => Value::Bool(int_of(key) != 0),
                    _ if is_real => real_of(key).into(),
                    _ => int_of(key).into(),
                };
                counted.add(value, count);
            }
        }
    }
    Some(counted)
}

fn by_code(codes: &[u32], words: usize, positions: &[u32]) -> Vec<u64> {
    let mut counts = vec![0_u64; words + 1];
    for at in positions {
        if let Some(count) = codes.get(*at as usize).and_then(|code| counts.get_mut(*code as usize)) {
            *count += 1;
        }
    }
    counts
}

/// The keys of a column of numbers, ascending, with their counts.
fn runs(column: &Column, positions: &[u32], null: &mut u64) -> Vec<(u64, u64)> {
    let keys = order::keys(column, positions);
    let least = keys.iter().flatten().min().copied().unwrap_or_default();
    let mut pairs: Vec<(u64, u32)> = keys.into_iter().flatten().map(|key| (key - least, 0)).collect();
    *null = (positions.len() - pairs.len()) as u64;
    order::radix(&mut pairs);
    pairs
        .chunk_by(|one, other| one.0 == other.0)
        .filter_map(|run| Some((run.first()?.0 + least, run.len() as u64)))
        .collect()
}
