//! Sorts positions by columns: NULL last in either direction, ties by row.
//!
//! Every value becomes a number that sorts as it does, and those are sorted digit by digit. The sort is stable,
//! so several fields are sorted one after the other, the least important first.

use super::column::Column;

const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts by one column; what is equal stays as it was.
pub(crate) fn sort(column: &Column, descending: bool, positions: &mut Vec<u32>) {
    by_keys(&keys(column, positions), descending, positions);
}

/// The same by a key for each of the positions; `None` comes last.
pub(crate) fn by_keys(keys: &[Option<u64>], descending: bool, positions: &mut Vec<u32>) {
    let present = keys.iter().flatten();
    let (Some(least), Some(most)) = (present.clone().min().copied(), present.max().copied()) else { return };
    let key = |key: &Option<u64>| match key {
        None => most - least + 1,
        Some(key) if descending => most - key,
        Some(key) => key - least,
    };
    let mut pairs: Vec<(u64, u32)> = keys.iter().map(key).zip(positions.iter().copied()).collect();
    radix(&mut pairs);
    positions.clear();
    positions.extend(pairs.into_iter().map(|(_, position)| position));
}

/// Sorts by the first of each pair; stable.
pub(crate) fn radix(pairs: &mut Vec<(u64, u32)>) {
    let Some(most) = pairs.iter().map(|pair| pair.0).max() else { return };
    let passes = (u64::BITS - most.leading_zeros()).div_ceil(DIGIT_BITS);
    let mut other = vec![(0, 0); pairs.len()];
    for pass in 0..passes {
        let digit = |pair: &(u64, u32)| (pair.0 >> (pass * DIGIT_BITS)) as usize % DIGITS;
        let mut places = vec![0_usize; DIGITS];
        for pair in pairs.iter() {
            if let Some(count) = places.get_mut(digit(pair)) {
                *count += 1;
            }
        }
        if places.contains(&pairs.len()) {
            continue;
        }
        let mut sum = 0;
        for place in &mut places {
            sum += std::mem::replace(place, sum);
        }
        for pair in pairs.iter() {
            if let Some(place) = places.get_mut(digit(pair)) {
                if let Some(slot) = other.get_mut(*place) {
                    *slot = *pair;
                }
                *place += 1;
            }
        }
        std::mem::swap(pairs, &mut other);
    }
}

/// Numbers that sort as the values of these positions do.
pub(crate) fn keys(column: &Column, positions: &[u32]) -> Vec<Option<u64>> {
    let of = |of: &dyn Fn(usize) -> Option<u64>| positions.iter().map(|at| of(*at as usize)).collect();
    match column {
        Column::Real(all) => positions.iter().map(|at| real_key(*all.get(*at as usize)?)).collect(),
        Column::Text(words) => {
            let ranks = words.ranks();
            by_rank(&words.codes, &ranks, positions)
        }
        Column::Mixed(mixed) => {
            let mut sorted: Vec<usize> = (0..mixed.values.len()).collect();
            let value = |i: &usize| mixed.values.get(*i);
            let order = |a: &usize, b: &usize| match (value(a), value(b)) {
                (Some(a), Some(b)) => a.seen().order(b.seen()),
                _ => std::cmp::Ordering::Equal,
            };
            sorted.sort_by(order);
            let mut ranks = vec![0_u32; sorted.len() + 1];
            let mut rank = 0;
            let mut before: Option<usize> = None;
            for i in sorted {
                rank += u32::from(before.is_some_and(|before| order(&before, &i).is_ne()));
                before = Some(i);
                if let Some(slot) = ranks.get_mut(i + 1) {
                    *slot = rank;
                }
            }
            by_rank(&mixed.codes, &ranks, positions)
        }
        _ => of(&|at| column.int(at).map(int_key)),
    }
}

fn by_rank(codes: &[u32], ranks: &[u32], positions: &[u32]) -> Vec<Option<u64>> {
    let rank = |at: &u32| match codes.get(*at as usize) {
        None | Some(0) => None,
        Some(code) => ranks.get(*code as usize).map(|rank| u64::from(*rank)),
    };
    positions.iter().map(rank).collect()
}

pub(crate) fn int_key(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

pub(crate) fn int_of(key: u64) -> i64 {
    (key ^ (1 << 63)).cast_signed()
}

/// `None` for NaN. Zero has one key, whatever its sign.
pub(crate) fn real_key(number: f64) -> Option<u64> {
    if number.is_nan() {
        return None;
    }
    let bits = (number + 0.0).to_bits();
    Some(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
}

pub(crate) fn real_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}
