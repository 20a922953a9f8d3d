//! Whether two expressions are worth the same.

use super::MathsRules;
use super::number::Fraction;
use super::tree::{Expr, Function};
use super::value::{Value, mix};

/// For numbers without decimals that floating point had to calculate.
const ROUNDING: f64 = 1e-12;
/// What floating point makes of zero.
const ZERO: f64 = 1e-14;
const AT_POINT: f64 = 1e-9;
/// How many points a function with variables is calculated at, and at how many it must be defined.
const POINTS: u64 = 8;
const POINTS_NEEDED: usize = 4;
/// Each is so many products, and an answer may have a hundred of them.
const FACTORIAL_MAX: i128 = 300;

pub(super) fn equal(a: &Expr, b: &Expr, rules: &MathsRules) -> bool {
    match (infinity(a), infinity(b)) {
        (None, None) => {}
        (one, other) => return one == other,
    }
    let (Some(x), Some(y)) = (evaluate(a, 0), evaluate(b, 0)) else { return false };
    let (has_variable, has_decimal) =
        (a.has_variable() || b.has_variable(), a.has_decimal() || b.has_decimal());
    if let (Some(one), Some(other)) = (x.residues, y.residues) {
        return one == other || !has_variable && has_decimal && near_decimals(a, b, x, y, rules);
    }
    if !has_variable {
        let is_whole = |value: Value| value.fraction.and_then(Fraction::as_whole).is_some();
        let is_zero = |value: Value| value.fraction.is_some_and(|fraction| fraction.num() == 0);
        if is_zero(x) || is_zero(y) {
            // Nothing is near zero in relation to it: \sin\pi is 1e-16 in floating point.
            return !has_decimal && (x.approx - y.approx).abs() < ZERO;
        }
        let is_exact = !has_decimal || is_whole(x) || is_whole(y);
        return near(x.approx, y.approx, if is_exact { ROUNDING } else { rules.tolerance });
    }
    let points = (0..POINTS).filter_map(|seed| {
        let (x, y) = (evaluate(a, seed)?.approx, evaluate(b, seed)?.approx);
        (x.is_finite() || y.is_finite()).then_some((x, y))
    });
    let points: Vec<(f64, f64)> = points.collect();
    let agree = |(x, y): &(f64, f64)| near(*x, *y, AT_POINT) || (x - y).abs() < ZERO;
    points.len() >= POINTS_NEEDED && points.iter().all(agree)
}

/// Whether one is the other times a number: the two sides of an equation may be moved and scaled.
pub(super) fn proportional(a: &Expr, b: &Expr) -> bool {
    let at = |seed| Some((evaluate(a, seed)?, evaluate(b, seed)?));
    let (Some((x, y)), Some(others)) = (at(0), (1..4).map(at).collect::<Option<Vec<_>>>()) else {
        return false;
    };
    let is_zero = |value: Value| value.residues.is_none_or(|residues| residues == [0, 0]);
    let agrees = |(v, w): &(Value, Value)| {
        let (left, right) = (x.mul(*w).residues, v.mul(y).residues);
        left.is_some() && left == right && !is_zero(*v) && !is_zero(*w)
    };
    !is_zero(x) && !is_zero(y) && others.iter().all(agrees)
}

/// A decimal near another, or near what decimals cannot write out. Whole numbers have no neighbours.
fn near_decimals(a: &Expr, b: &Expr, x: Value, y: Value, rules: &MathsRules) -> bool {
    let may_be_near = match (x.fraction, y.fraction) {
        (Some(x), Some(y)) => {
            let can_round = |fraction: Fraction, expr: &Expr| {
                fraction.as_whole().is_none() && (expr.has_decimal() || !fraction.terminates())
            };
            can_round(x, a) && can_round(y, b)
        }
        // π and e have residues, but no fraction.
        (one, other) => one.or(other).and_then(Fraction::as_whole).is_none(),
    };
    may_be_near && near(x.approx, y.approx, rules.tolerance)
}

fn near(x: f64, y: f64, tolerance: f64) -> bool {
    x.is_finite() && y.is_finite() && (x == y || (x - y).abs() < tolerance * x.abs().max(y.abs()))
}

/// The sign of an infinity.
fn infinity(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Infinity => Some(true),
        Expr::Neg(inner) => infinity(inner).map(|sign| !sign),
        _ => None,
    }
}

/// `None` where it has no value. The seed chooses what the variables are.
fn evaluate(expr: &Expr, seed: u64) -> Option<Value> {
    let go = |part: &Expr| evaluate(part, seed);
    Some(match expr {
        Expr::Number { digits, repeating } => number(digits, repeating)?,
        Expr::Pi => Value::free(1, std::f64::consts::PI),
        Expr::E => Value::free(2, std::f64::consts::E),
        Expr::Infinity | Expr::PlusMinus(..) => return None,
        Expr::Variable(name) => {
            let hash = name.bytes().fold(mix(seed), |hash, byte| mix(hash ^ u64::from(byte)));
            // From a quarter to a bit over two: where roots, logarithms and quotients are mostly defined.
            Value::free(hash, 0.25 + (hash >> 11) as f64 / (1_u64 << 52) as f64)
        }
        Expr::Neg(a) => go(a)?.neg(),
        Expr::Add(a, b) => go(a)?.add(go(b)?),
        Expr::Mul(a, b) => go(a)?.mul(go(b)?),
        Expr::Div(a, b) => go(a)?.div(go(b)?)?,
        Expr::Pow(a, b) => go(a)?.pow(go(b)?)?,
        Expr::Apply(function, a) => apply(*function, go(a)?),
        Expr::Log { base, of } => Value::real(go(of)?.approx.ln() / go(base)?.approx.ln()),
        Expr::Factorial(a) => factorial(go(a)?)?,
        Expr::Percent(a) => go(a)?.div(Value::whole(100))?,
        Expr::Degrees(a) => Value::real(go(a)?.approx.to_radians()),
    })
}

fn apply(function: Function, value: Value) -> Value {
    match (function, value.fraction) {
        (Function::Abs, Some(fraction)) if fraction.num() < 0 => value.neg(),
        (Function::Abs, Some(_)) => value,
        (Function::Floor, Some(fraction)) => Value::whole(fraction.num().div_euclid(fraction.den())),
        (Function::Ceil, Some(fraction)) => Value::whole(-(-fraction.num()).div_euclid(fraction.den())),
        _ => Value::real(function.of(value.approx)),
    }
}

fn factorial(of: Value) -> Option<Value> {
    let last = of.fraction.and_then(Fraction::as_whole).filter(|last| (0..=FACTORIAL_MAX).contains(last))?;
    Some((2..=last).fold(Value::whole(1), |product, factor| product.mul(Value::whole(factor))))
}

/// Of any length: what 128 bits do not hold still has residues.
fn number(digits: &str, repeating: &str) -> Option<Value> {
    if let Some(fraction) = Fraction::decimal(digits, repeating) {
        return Value::fraction(fraction);
    }
    let ten = Value::whole(10);
    let digit = |c: char| c.to_digit(10).map(|digit| Value::whole(digit.into()));
    let written =
        digits.chars().filter_map(digit).fold(Value::whole(0), |sum, digit| sum.mul(ten).add(digit));
    let places = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let places = Value::whole(i128::try_from(places).ok()?);
    written.div(ten.pow(places)?).filter(|_| repeating.is_empty())
}
