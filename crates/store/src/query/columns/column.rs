//! The values of one field for all rows, as tightly as they go.
//!
//! A million rows of thirty fields must not cost more than a few hundred megabytes, so whole numbers take the
//! fewest bytes that hold them all, and texts are kept once each with a code of four bytes a row. NULL is a value
//! of each type that does not otherwise occur; a column in which it does occur is left to SQLite.

use super::words::Words;
use hashbrown::HashMap;
use rusqlite::types::ValueRef;
use serde_json::Value;
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(crate) enum Column {
    Tiny(Vec<i8>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    /// NULL is NaN: SQLite has no NaN of its own.
    Real(Vec<f64>),
    Text(Words),
    Mixed(Mixed),
}

/// Numbers in some rows and texts in others, each kept once. Code 0 is NULL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mixed {
    pub(crate) codes: Vec<u32>,
    pub(crate) values: Vec<Scalar>,
    index: HashMap<Scalar, u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Int(i64),
    Real(f64),
    Text(Box<str>),
}

/// A value on loan, to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    Int(i64),
    Real(f64),
    Text(&'a str),
}

/// A value that this kind of column cannot hold.
#[derive(Debug)]
pub(crate) struct Unfit;

impl Column {
    pub(crate) fn push(&mut self, value: ValueRef<'_>) -> Result<(), Unfit> {
        match (&mut *self, value) {
            (Self::Tiny(all), ValueRef::Null) => all.push(i8::MIN),
            (Self::Int(all), ValueRef::Null) => all.push(i32::MIN),
            (Self::Long(all), ValueRef::Null) => all.push(i64::MIN),
            (Self::Tiny(_) | Self::Int(_) | Self::Long(_), ValueRef::Integer(i64::MIN)) => return Err(Unfit),
            (Self::Tiny(all), ValueRef::Integer(number)) => match i8::try_from(number) {
                Ok(small) if small != i8::MIN => all.push(small),
                _ => {
                    let wide = |v: &i8| if *v == i8::MIN { i32::MIN } else { i32::from(*v) };
                    *self = Self::Int(all.iter().map(wide).collect());
                    return self.push(value);
                }
            },
            (Self::Int(all), ValueRef::Integer(number)) => match i32::try_from(number) {
                Ok(small) if small != i32::MIN => all.push(small),
                _ => {
                    let wide = |v: &i32| if *v == i32::MIN { i64::MIN } else { i64::from(*v) };
                    *self = Self::Long(all.iter().map(wide).collect());
                    return self.push(value);
                }
            },
            (Self::Long(all), ValueRef::Integer(number)) => all.push(number),
            (Self::Real(all), ValueRef::Null) => all.push(f64::NAN),
            (Self::Real(all), ValueRef::Real(number)) => all.push(number),
            (Self::Text(all), ValueRef::Null) => all.push(None),
            (Self::Text(all), ValueRef::Text(bytes)) => {
                all.push(Some(std::str::from_utf8(bytes).map_err(|_| Unfit)?));
            }
            (Self::Mixed(all), value) => all.push(value)?,
            _ => return Err(Unfit),
        }
        Ok(())
    }

    pub(crate) fn shrink(&mut self) {
        match self {
            Self::Tiny(all) => all.shrink_to_fit(),
            Self::Int(all) => all.shrink_to_fit(),
            Self::Long(all) => all.shrink_to_fit(),
            Self::Real(all) => all.shrink_to_fit(),
            Self::Text(all) => all.shrink(),
            Self::Mixed(all) => all.codes.shrink_to_fit(),
        }
    }

    /// Whole numbers of any width; `None` for NULL and for what is no whole number.
    pub(crate) fn int(&self, at: usize) -> Option<i64> {
        match self {
            Self::Tiny(all) => all.get(at).filter(|v| **v != i8::MIN).map(|v| i64::from(*v)),
            Self::Int(all) => all.get(at).filter(|v| **v != i32::MIN).map(|v| i64::from(*v)),
            Self::Long(all) => all.get(at).copied().filter(|v| *v != i64::MIN),
            _ => None,
        }
    }

    pub(crate) fn number(&self, at: usize) -> Option<f64> {
        match self {
            Self::Real(all) => all.get(at).copied().filter(|v| !v.is_nan()),
            Self::Mixed(all) => match all.get(at)? {
                Scalar::Int(number) => Some(*number as f64),
                Scalar::Real(number) => Some(*number),
                Scalar::Text(_) => None,
            },
            _ => self.int(at).map(|number| number as f64),
        }
    }

    pub(crate) fn value(&self, at: usize) -> Value {
        match self {
            Self::Real(_) => self.number(at).into(),
            Self::Text(all) => all.get(at).into(),
            Self::Mixed(all) => all.get(at).map_or(Value::Null, Scalar::value),
            _ => self.int(at).into(),
        }
    }
}

impl Mixed {
    fn push(&mut self, value: ValueRef<'_>) -> Result<(), Unfit> {
        let scalar = match value {
            ValueRef::Null => {
                self.codes.push(0);
                return Ok(());
            }
            ValueRef::Integer(number) => Scalar::Int(number),
            ValueRef::Real(number) => Scalar::Real(number),
            ValueRef::Text(bytes) => Scalar::Text(std::str::from_utf8(bytes).map_err(|_| Unfit)?.into()),
            ValueRef::Blob(_) => return Err(Unfit),
        };
        let next = u32::try_from(self.values.len() + 1).map_err(|_| Unfit)?;
        let code = *self.index.entry(scalar.clone()).or_insert(next);
        if code == next {
            self.values.push(scalar);
        }
        self.codes.push(code);
        Ok(())
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Scalar> {
        let code = *self.codes.get(at)? as usize;
        self.values.get(code.checked_sub(1)?)
    }
}

impl Scalar {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Int(number) => (*number).into(),
            Self::Real(number) => (*number).into(),
            Self::Text(text) => text.as_ref().into(),
        }
    }

    pub(crate) fn seen(&self) -> Seen<'_> {
        match self {
            Self::Int(number) => Seen::Int(*number),
            Self::Real(number) => Seen::Real(*number),
            Self::Text(text) => Seen::Text(text),
        }
    }
}

impl Seen<'_> {
    /// As SQLite orders values of any type: numbers before texts.
    pub(crate) fn order(self, other: Seen<'_>) -> Ordering {
        match (self, other) {
            (Seen::Text(one), Seen::Text(two)) => one.cmp(two),
            (Seen::Text(_), _) => Ordering::Greater,
            (_, Seen::Text(_)) => Ordering::Less,
            (Seen::Int(one), Seen::Int(two)) => one.cmp(&two),
            (Seen::Int(one), Seen::Real(two)) => int_to_real(one, two),
            (Seen::Real(one), Seen::Int(two)) => int_to_real(two, one).reverse(),
            (Seen::Real(one), Seen::Real(two)) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
        }
    }
}

/// Exact, though a floating number has no room for every whole one.
pub(crate) fn int_to_real(int: i64, real: f64) -> Ordering {
    const EXACT: u64 = 1 << 53;
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if int.unsigned_abs() <= EXACT {
        return (int as f64).partial_cmp(&real).unwrap_or(Ordering::Equal);
    }
    if real >= BEYOND {
        return Ordering::Less;
    }
    if real < -BEYOND {
        return Ordering::Greater;
    }
    let whole = real as i64;
    int.cmp(&whole).then_with(|| 0.0.partial_cmp(&(real - whole as f64)).unwrap_or(Ordering::Equal))
}

impl PartialEq for Scalar {
    /// The same value of the same type, so that 1 and 1.0 are both kept as they were.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(one), Self::Int(two)) => one == two,
            (Self::Real(one), Self::Real(two)) => one.to_bits() == two.to_bits(),
            (Self::Text(one), Self::Text(two)) => one == two,
            _ => false,
        }
    }
}

impl Eq for Scalar {}

impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Int(number) => number.hash(state),
            Self::Real(number) => number.to_bits().hash(state),
            Self::Text(text) => text.hash(state),
        }
    }
}
