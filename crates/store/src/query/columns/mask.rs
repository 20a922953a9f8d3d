//! Runs a plan over rows, some thousands at a time so that what lies in between stays in the processor's cache.
//!
//! A verdict is 0, 1 or 2 for false, unknown and true: then AND is the smaller, OR the greater, and NOT what is
//! missing to 2.

use super::column::{Column, int_to_real};
use super::cores;
use super::plan::{Number, Plan, is_one_of};
use crate::query::filter::tree::{Op, Sign};
use std::cmp::Ordering;
use std::ops::Range;

pub(crate) const FALSE: u8 = 0;
pub(crate) const NULL: u8 = 1;
pub(crate) const TRUE: u8 = 2;

const BLOCK: usize = 8192;

/// Numbers of some rows; NULL is `i64::MIN` or NaN.
enum Values {
    Ints(Vec<i64>),
    Reals(Vec<f64>),
    Int(i64),
    Real(f64),
}

impl Plan {
    /// The positions of the rows for which it is true, ascending.
    pub(crate) fn positions(&self, rows: usize) -> Vec<u32> {
        let blocks = rows.div_ceil(BLOCK);
        let found: Vec<Vec<u32>> = cores::map(blocks, 16, |block| {
            let range = block * BLOCK..rows.min((block + 1) * BLOCK);
            let mask = self.mask(&range);
            let first = u32::try_from(range.start).unwrap_or(u32::MAX);
            (first..).zip(&mask).filter(|(_, verdict)| **verdict == TRUE).map(|(at, _)| at).collect()
        });
        found.concat()
    }

    fn mask(&self, range: &Range<usize>) -> Vec<u8> {
        match self {
            Self::All(parts) => joined(parts, range, TRUE, u8::min),
            Self::Any(parts) => joined(parts, range, FALSE, u8::max),
            Self::Not(inner) => inner.mask(range).into_iter().map(|verdict| TRUE - verdict).collect(),
            Self::Always(verdict) => vec![*verdict; range.len()],
            Self::Verdicts { column, by_code } => {
                let codes = match &**column {
                    Column::Text(words) => &words.codes,
                    Column::Mixed(mixed) => &mixed.codes,
                    _ => return vec![NULL; range.len()],
                };
                let look = |code: &u32| by_code.get(*code as usize).copied().unwrap_or(NULL);
                codes.get(range.clone()).unwrap_or_default().iter().map(look).collect()
            }
            Self::Compare { op, left, right } => {
                compared(*op, left.values(range), right.values(range), range.len())
            }
            Self::IsNull(number) => {
                each(&number.values(range), range.len(), |value| if value.is_none() { TRUE } else { FALSE })
            }
            Self::OneOf { number, ints, reals } => {
                each(&number.values(range), range.len(), |value| match value {
                    None => NULL,
                    Some(value) if is_one_of(ints, reals, value) => TRUE,
                    Some(_) => FALSE,
                })
            }
            Self::Texts { op, left, right } => match (&**left, &**right) {
                (Column::Text(left), Column::Text(right)) => range
                    .clone()
                    .map(|at| match (left.get(at), right.get(at)) {
                        (Some(one), Some(other)) => verdict(op.holds(one.cmp(other))),
                        _ => NULL,
                    })
                    .collect(),
                _ => vec![NULL; range.len()],
            },
        }
    }
}

fn joined(parts: &[Plan], range: &Range<usize>, none: u8, join: fn(u8, u8) -> u8) -> Vec<u8> {
    let mut all = vec![none; range.len()];
    for part in parts {
        for (verdict, other) in all.iter_mut().zip(part.mask(range)) {
            *verdict = join(*verdict, other);
        }
        // Nothing that follows can make a false AND true again, nor a true OR false.
        let settled = TRUE - none;
        if all.iter().all(|verdict| *verdict == settled) {
            break;
        }
    }
    all
}

fn verdict(holds: bool) -> u8 {
    if holds { TRUE } else { FALSE }
}

impl Number {
    fn values(&self, range: &Range<usize>) -> Values {
        match self {
            Self::Int(number) => Values::Int(*number),
            Self::Real(number) => Values::Real(*number),
            Self::Column(column) => column_values(column, range),
            Self::Sum { sign: Sign::Rest, left, right } => {
                let (left, right) = (left.values(range), right.values(range));
                let rest = |i: usize| -> Option<i64> {
                    let whole = |value: Result<i64, f64>| value.unwrap_or_else(|real| real as i64);
                    let (one, other) = (whole(left.at(i)?), whole(right.at(i)?));
                    one.checked_rem(other).or((other == -1).then_some(0))
                };
                Values::Ints((0..range.len()).map(|i| rest(i).unwrap_or(i64::MIN)).collect())
            }
            Self::Sum { sign, left, right } => {
                let (left, right) =
                    (left.values(range).reals(range.len()), right.values(range).reals(range.len()));
                let sum: fn(f64, f64) -> f64 = match sign {
                    Sign::Plus => |a, b| a + b,
                    Sign::Minus => |a, b| a - b,
                    Sign::Times => |a, b| a * b,
                    Sign::Over | Sign::Rest => |a, b| if b == 0.0 { f64::NAN } else { a / b },
                };
                Values::Reals(left.into_iter().zip(right).map(|(a, b)| sum(a, b)).collect())
            }
        }
    }
}

fn column_values(column: &Column, range: &Range<usize>) -> Values {
    match column {
        Column::Tiny(all) => Values::Ints(
            all.get(range.clone())
                .unwrap_or_default()
                .iter()
                .map(|v| if *v == i8::MIN { i64::MIN } else { i64::from(*v) })
                .collect(),
        ),
        Column::Int(all) => Values::Ints(
            all.get(range.clone())
                .unwrap_or_default()
                .iter()
                .map(|v| if *v == i32::MIN { i64::MIN } else { i64::from(*v) })
                .collect(),
        ),
        Column::Long(all) => Values::Ints(all.get(range.clone()).unwrap_or_default().to_vec()),
        Column::Real(all) => Values::Reals(all.get(range.clone()).unwrap_or_default().to_vec()),
        Column::Text(_) | Column::Mixed(_) => Values::Real(f64::NAN),
    }
}

impl Values {
    fn at(&self, i: usize) -> Option<Result<i64, f64>> {
        match self {
            Self::Ints(all) => all.get(i).filter(|v| **v != i64::MIN).map(|v| Ok(*v)),
            Self::Reals(all) => all.get(i).filter(|v| !v.is_nan()).map(|v| Err(*v)),
            Self::Int(number) => Some(Ok(*number)),
            Self::Real(number) => (!number.is_nan()).then_some(Err(*number)),
        }
    }

    fn reals(self, rows: usize) -> Vec<f64> {
        match self {
            Self::Ints(all) => {
                all.into_iter().map(|v| if v == i64::MIN { f64::NAN } else { v as f64 }).collect()
            }
            Self::Reals(all) => all,
            Self::Int(number) => vec![number as f64; rows],
            Self::Real(number) => vec![number; rows],
        }
    }
}

fn each(values: &Values, rows: usize, of: impl Fn(Option<Result<i64, f64>>) -> u8) -> Vec<u8> {
    (0..rows).map(|i| of(values.at(i))).collect()
}

fn compared(op: Op, left: Values, right: Values, rows: usize) -> Vec<u8> {
    // One loop for each operator: the compiler can only make something of a comparison that it knows.
    match op {
        Op::Eq => ordered(left, right, rows, Ordering::is_eq),
        Op::Ne => ordered(left, right, rows, Ordering::is_ne),
        Op::Lt => ordered(left, right, rows, Ordering::is_lt),
        Op::Le => ordered(left, right, rows, Ordering::is_le),
        Op::Gt => ordered(left, right, rows, Ordering::is_gt),
        Op::Ge => ordered(left, right, rows, Ordering::is_ge),
    }
}

fn ordered(left: Values, right: Values, rows: usize, holds: impl Fn(Ordering) -> bool) -> Vec<u8> {
    let ints = |a: i64, b: i64| {
        if a == i64::MIN || b == i64::MIN { NULL } else { verdict(holds(a.cmp(&b))) }
    };
    let reals = |a: f64, b: f64| a.partial_cmp(&b).map_or(NULL, |order| verdict(holds(order)));
    match (left, right) {
        (Values::Ints(all), Values::Int(one)) => all.into_iter().map(|v| ints(v, one)).collect(),
        (Values::Ints(all), Values::Ints(other)) => {
            all.into_iter().zip(other).map(|(a, b)| ints(a, b)).collect()
        }
        (Values::Reals(all), Values::Real(one)) => all.into_iter().map(|v| reals(v, one)).collect(),
        (Values::Reals(all), Values::Reals(other)) => {
            all.into_iter().zip(other).map(|(a, b)| reals(a, b)).collect()
        }
        (left, right) => (0..rows)
            .map(|i| match (left.at(i), right.at(i)) {
                (Some(Ok(a)), Some(Ok(b))) => verdict(holds(a.cmp(&b))),
                (Some(Ok(a)), Some(Err(b))) => verdict(holds(int_to_real(a, b))),
                (Some(Err(a)), Some(Ok(b))) => verdict(holds(int_to_real(b, a).reverse())),
                (Some(Err(a)), Some(Err(b))) => reals(a, b),
                _ => NULL,
            })
            .collect(),
    }
}
