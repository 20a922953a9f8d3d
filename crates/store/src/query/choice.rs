//! Which rows, in which order.

use super::columns::{Table, is_possible, order, plan, sources};
use super::filter::tree::{Field, Source};
use super::filter::{Fields, Filter, Sql};
use super::kept::ChoiceKey;
use super::{Mistake, Query, QueryError};
use crate::catalog::{CatalogError, RowNo};
use rusqlite::{OptionalExtension, params_from_iter};
use std::sync::Arc;

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
    /// NULL comes last in either direction, and ties stay in the order of rows.
    pub sort: Vec<Sort>,
}

/// Positions in a table, which goes with them.
pub(super) struct Chosen {
    pub table: Arc<Table>,
    pub positions: Arc<Vec<u32>>,
}

impl Query {
    /// Checks a filter without running it.
    pub fn check(&self, filter: &str) -> Result<(), QueryError> {
        self.parse(filter).map(|_| ())
    }

    /// Row numbers of the whole choice, in order.
    pub fn rows(&self, choice: &Choice) -> Result<Arc<Vec<RowNo>>, QueryError> {
        let chosen = self.choose(choice, &[])?;
        let row = |at: &u32| chosen.table.rows.get(*at as usize).map(|row| RowNo(*row));
        Ok(Arc::new(chosen.positions.iter().filter_map(row).collect()))
    }

    /// The rollouts of the same prompt at the same step, or the row alone if it is in no group.
    pub fn group(&self, row: RowNo) -> Result<Choice, QueryError> {
        self.like_this(row, "group_id", Vec::new())
    }

    /// The rollouts of the same prompt at any step, by step.
    pub fn same_prompt(&self, row: RowNo) -> Result<Choice, QueryError> {
        self.like_this(row, "prompt_hash", vec![Sort { field: "step".to_owned(), descending: false }])
    }

    fn like_this(&self, row: RowNo, field: &str, sort: Vec<Sort>) -> Result<Choice, QueryError> {
        let sql = format!("SELECT {field}, lower(hex(id)) FROM rows WHERE row = ?");
        let found: Option<(Option<i64>, String)> =
            self.lend()?.query_row(&sql, [row.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let filter = match found.ok_or(CatalogError::NoRow(row.0))? {
            (Some(value), _) => format!("{field} == {value}"),
            (None, id) => format!("id == \"{id}\""),
        };
        Ok(Choice { filter, sort })
    }

    /// A filter with the names that this catalog knows.
    pub(super) fn parse(&self, text: &str) -> Result<Filter, QueryError> {
        let mut fields = self.fields()?;
        loop {
            let mistake = match Filter::parse(text, &fields) {
                Ok(filter) => return Ok(filter),
                Err(mistake) => mistake,
            };
            let name = text.get(mistake.at.clone()).unwrap_or_default().trim_matches('`');
            let unknown = mistake.message.starts_with("there is no field");
            if !unknown || fields.extras().any(|known| known == name) || !self.learn(name)? {
                return Err(mistake.into());
            }
            fields = self.fields()?;
        }
    }

    /// The positions of a choice, and at least these columns beside those that it needs itself.
    pub(super) fn choose(&self, choice: &Choice, also: &[Source]) -> Result<Chosen, QueryError> {
        let filter = self.parse(&choice.filter)?;
        let fields = self.fields()?;
        let sort = choice.sort.iter().map(|by| field(&fields, &by.field)).collect::<Result<Vec<_>, _>>()?;
        let mut wanted = also.to_vec();
        let in_memory = filter.root().is_none_or(is_possible);
        if let Some(root) = filter.root().filter(|_| in_memory) {
            wanted.extend(sources(root));
        }
        wanted
            .extend(sort.iter().map(|field| field.source.clone()).filter(|source| *source != Source::Extras));
        let table = self.table(&wanted)?;
        let key = |sort: &[Sort]| ChoiceKey {
            generation: table.generation,
            filter: choice.filter.clone(),
            sort: sort.to_vec(),
        };
        if let Some(positions) = self.kept(&key(&choice.sort)) {
            return Ok(Chosen { table, positions });
        }
        let unsorted = self.kept(&key(&[])).or_else(|| {
            let positions = Arc::new(in_order(&filter, &table)?);
            self.keep(key(&[]), &positions);
            Some(positions)
        });
        let columns: Option<Vec<_>> = sort.iter().map(|field| table.column(&field.source)).collect();
        let positions = match (unsorted, columns) {
            (Some(unsorted), Some(_)) if sort.is_empty() => unsorted,
            (Some(unsorted), Some(columns)) => {
                let mut positions = unsorted.to_vec();
                for (column, by) in columns.iter().zip(&choice.sort).rev() {
                    order::sort(column, by.descending, &mut positions);
                }
                Arc::new(positions)
            }
            _ => Arc::new(self.ask_sqlite(&filter, &sort, &choice.sort, &table)?),
        };
        self.keep(key(&choice.sort), &positions);
        Ok(Chosen { table, positions })
    }

    /// The same by SQL, for what columns cannot answer.
    fn ask_sqlite(
        &self,
        filter: &Filter,
        fields: &[Field],
        sort: &[Sort],
        table: &Table,
    ) -> Result<Vec<u32>, QueryError> {
        let Sql { mut text, mut params } = filter.sql();
        text.push_str(" ORDER BY ");
        for (field, by) in fields.iter().zip(sort) {
            let (name, param) = field.sql();
            let direction = if by.descending { "DESC" } else { "ASC" };
            text.push_str(&format!("{name} IS NULL, {name} {direction}, "));
            let param = param.map(rusqlite::types::Value::Text);
            params.extend(param.clone().into_iter().chain(param));
        }
        let connection = self.lend()?;
        let mut statement =
            connection.prepare_cached(&format!("SELECT row FROM rollouts WHERE {text}row"))?;
        let mut found = statement.query(params_from_iter(params))?;
        let mut positions = Vec::new();
        while let Some(row) = found.next()? {
            // What has come since the table was made is for the next question.
            if let Ok(at) = table.rows.binary_search(&row.get(0)?) {
                positions.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
        }
        Ok(positions)
    }
}

/// The positions that a filter lets through, if the columns can tell.
fn in_order(filter: &Filter, table: &Table) -> Option<Vec<u32>> {
    let rows = table.rows.len();
    match filter.root() {
        None => Some((0..u32::try_from(rows).ok()?).collect()),
        Some(root) => Some(plan(root, table)?.positions(rows)),
    }
}

/// A field by its name alone, as in a column of a table.
pub(super) fn field(fields: &Fields, name: &str) -> Result<Field, Mistake> {
    fields.find(name).map_err(|near| Mistake {
        message: if near.is_empty() {
            format!("there is no field {name}")
        } else {
            format!("there is no field {name}; did you mean {}?", near.join(" or "))
        },
        at: 0..name.len(),
        expected: near,
    })
}
