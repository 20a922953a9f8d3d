//! Columns that depend on the other rollouts of a group, as the catalog's table `groups` has them.

use super::column::Column;
use super::table::Table;
use crate::catalog::columns::COLUMNS;
use crate::query::filter::tree::Source;
use hashbrown::HashMap;

/// What they are made of.
pub(crate) const READ: [Source; 3] =
    [Source::Column("group_id"), Source::Column("reward"), Source::Column("response_chars")];

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    n: u64,
    rated: u64,
    low: f64,
    high: f64,
    lengths: u64,
    chars: i64,
}

pub(crate) fn is_one(source: &Source) -> bool {
    let Source::Column(name) = source else { return false };
    COLUMNS.iter().any(|column| column.name == *name && column.is_of_group())
}

/// These columns, for a table that has [`READ`]; none where one of those is not in memory.
pub(crate) fn columns(table: &Table, wanted: &[Source]) -> Vec<(Source, Option<Column>)> {
    let [group, reward, chars] = READ.map(|source| table.column(&source));
    let (Some(group), Some(reward), Some(chars)) = (group, reward, chars) else {
        return wanted.iter().map(|source| (source.clone(), None)).collect();
    };
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut places: HashMap<i64, u32> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let place_of: Vec<Option<u32>> = (0..table.rows.len())
        .map(|at| {
            let place = *places.entry(group.int(at)?).or_insert_with(|| {
                groups.push(Group::default());
                u32::try_from(groups.len() - 1).unwrap_or(u32::MAX)
            });
            groups.get_mut(place as usize)?.add(reward.number(at), chars.int(at));
            Some(place)
        })
        .collect();
    let of = |at: usize| groups.get(place_of.get(at).copied().flatten()? as usize);
    let rows = 0..table.rows.len();
    wanted
        .iter()
        .map(|source| {
            let column = match source {
                Source::Column("dead_group") => Column::Tiny(
                    rows.clone()
                        .map(|at| of(at).map_or(i8::MIN, |group| i8::from(group.is_dead())))
                        .collect(),
                ),
                _ => Column::Real(
                    rows.clone()
                        .map(|at| of(at).and_then(|group| group.ratio(chars.int(at)?)).unwrap_or(f64::NAN))
                        .collect(),
                ),
            };
            (source.clone(), Some(column))
        })
        .collect()
}

impl Group {
    fn add(&mut self, reward: Option<f64>, chars: Option<i64>) {
        self.n += 1;
        if let Some(reward) = reward {
            (self.low, self.high) = match self.rated {
                0 => (reward, reward),
                _ => (self.low.min(reward), self.high.max(reward)),
            };
            self.rated += 1;
        }
        if let Some(chars) = chars {
            self.lengths += 1;
            self.chars = self.chars.saturating_add(chars);
        }
    }

    fn is_dead(&self) -> bool {
        self.n > 1 && self.rated == self.n && self.low == self.high
    }

    /// In the order of the catalog's own expression, so that both round alike.
    fn ratio(&self, chars: i64) -> Option<f64> {
        let is_known = self.n > 1 && self.chars > 0;
        is_known.then(|| chars as f64 * self.lengths as f64 / self.chars as f64)
    }
}
