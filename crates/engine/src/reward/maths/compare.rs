//! Whether two answers mean the same.

use std::cell::Cell;

use super::MathsRules;
use super::equal::{equal, proportional};
use super::lex::{Commas, Lexed, lex};
use super::parse::parse;
use super::tree::{Answer, Expr};

/// Longer answers are compared as they are written: no answer to a problem is a treatise.
const LEN_MAX: usize = 1024;
/// How many parts may be looked at: sets of sets have more pairs than anyone waits for.
const WORK_MAX: usize = 20_000;

pub(super) fn same(answer: &str, truth: &str, rules: &MathsRules) -> bool {
    let (answer, truth) = (tidy(answer), tidy(truth));
    if answer.is_empty() || truth.is_empty() {
        return false;
    }
    if answer == truth {
        return true;
    }
    if answer.len().max(truth.len()) > LEN_MAX {
        return false;
    }
    // 100,200 is one number or two; both are read the same way.
    [Commas::InNumbers, Commas::BetweenItems].into_iter().any(|commas| {
        match (lex(&answer, commas), lex(&truth, commas)) {
            (Lexed::Words(answer), Lexed::Words(truth)) => answer == truth,
            (Lexed::Maths(answer), Lexed::Maths(truth)) => {
                let is_one_unit = match (&answer.unit, &truth.unit) {
                    (Some(one), Some(other)) => one == other,
                    _ => true,
                };
                let parsed = parse(answer.tokens).zip(parse(truth.tokens));
                is_one_unit && parsed.is_some_and(|(answer, truth)| Same::new(rules).answers(&answer, &truth))
            }
            _ => false,
        }
    })
}

/// Without what never means anything: space and delimiters around it, a full stop behind it.
fn tidy(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut text = words.join(" ");
    for (open, close) in [("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")] {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains(open)) {
            text = inner.trim().to_owned();
        }
    }
    text.trim_end_matches(['.', ',', ';', ':']).trim().to_owned()
}

struct Same<'a> {
    rules: &'a MathsRules,
    work: Cell<usize>,
}

impl<'a> Same<'a> {
    fn new(rules: &'a MathsRules) -> Self {
        Self { rules, work: Cell::new(0) }
    }

    /// Whether there is still time for so many parts.
    fn affords(&self, parts: usize) -> bool {
        self.work.set(self.work.get().saturating_add(parts));
        self.work.get() <= WORK_MAX
    }

    fn answers(&self, a: &Answer, b: &Answer) -> bool {
        self.affords(1) && self.kinds(a, b)
    }

    fn kinds(&self, a: &Answer, b: &Answer) -> bool {
        match (a, b) {
            (Answer::Expr(a), Answer::Expr(b)) => self.exprs(a, b),
            (Answer::Named { name, is }, Answer::Named { name: other, is: other_is }) => {
                self.exprs(name, other) && self.answers(is, other_is) || self.equations(a, b)
            }
            (Answer::Named { .. }, Answer::Relation { .. })
            | (Answer::Relation { .. }, Answer::Named { .. }) => self.equations(a, b),
            (Answer::Named { is, .. }, _) => self.answers(is, b),
            (_, Answer::Named { is, .. }) => self.answers(a, is),
            (Answer::Relation { .. }, Answer::Relation { .. }) => {
                self.relations(a, b) || self.equations(a, b)
            }
            (Answer::Relation { sides, operators }, other)
            | (other, Answer::Relation { sides, operators }) => {
                interval(sides, operators).is_some_and(|interval| self.answers(&interval, other))
            }
            (Answer::Set(a), Answer::Set(b)) | (Answer::Union(a), Answer::Union(b)) => self.sets(a, b),
            (Answer::Set(items), other) | (other, Answer::Set(items)) => {
                matches!(items.as_slice(), [only] if self.answers(only, other))
            }
            (
                Answer::Bracketed { open, close, items },
                Answer::Bracketed { open: other_open, close: other_close, items: others },
            ) => open == other_open && close == other_close && self.rows(items, others),
            (Answer::Matrix(a), Answer::Matrix(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.rows(a, b))
            }
            _ => false,
        }
    }

    fn exprs(&self, a: &Expr, b: &Expr) -> bool {
        match (a, b) {
            // At the end of an answer degrees are a unit.
            (Expr::Degrees(a), b) => self.exprs(a, b),
            (a, Expr::Degrees(b)) => self.exprs(a, b),
            (Expr::Percent(bare), other) | (other, Expr::Percent(bare)) => {
                let is_bare = !matches!(other, Expr::Percent(_)) && self.rules.bare_percent;
                self.values(a, b) || is_bare && self.values(bare, other)
            }
            (a, b) => self.values(a, b),
        }
    }

    fn values(&self, a: &Expr, b: &Expr) -> bool {
        self.affords(a.size() + b.size()) && equal(a, b, self.rules)
    }

    fn rows(&self, a: &[Answer], b: &[Answer]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.answers(a, b))
    }

    fn sets(&self, a: &[Answer], b: &[Answer]) -> bool {
        let holds = |all: &[Answer], one: &Answer| all.iter().any(|item| self.answers(one, item));
        a.iter().all(|one| holds(b, one)) && b.iter().all(|one| holds(a, one))
    }

    /// The same signs between the same sides, read from the left or from the right.
    fn relations(&self, a: &Answer, b: &Answer) -> bool {
        let (Answer::Relation { sides, operators }, Answer::Relation { sides: others, operators: signs }) =
            (a, b)
        else {
            return false;
        };
        let all = |others: &[&Expr]| {
            sides.len() == others.len() && sides.iter().zip(others).all(|(a, b)| self.exprs(a, b))
        };
        let (forth, back): (Vec<&Expr>, Vec<&Expr>) =
            (others.iter().collect(), others.iter().rev().collect());
        let turned: Vec<char> = signs.iter().rev().map(|sign| turn(*sign)).collect();
        operators == signs && all(&forth) || *operators == turned && all(&back)
    }

    /// Two equations with the same solutions, as far as moving and scaling goes.
    fn equations(&self, a: &Answer, b: &Answer) -> bool {
        difference(a).zip(difference(b)).is_some_and(|(a, b)| proportional(&a, &b))
    }
}

/// Left side less right side.
fn difference(equation: &Answer) -> Option<Expr> {
    let (left, right) = match equation {
        Answer::Named { name, is } => match &**is {
            Answer::Expr(right) => (name, right),
            _ => return None,
        },
        Answer::Relation { sides, operators } if operators.as_slice() == ['='] => match sides.as_slice() {
            [left, right] => (left, right),
            _ => return None,
        },
        _ => return None,
    };
    Some(Expr::Add(Box::new(left.clone()), Box::new(Expr::Neg(Box::new(right.clone())))))
}

/// `1 < x ≤ 2` is `(1, 2]`, and `x > 3` is `(3, ∞)`.
fn interval(sides: &[Expr], operators: &[char]) -> Option<Answer> {
    let is_variable = |side: &Expr| matches!(side, Expr::Variable(_));
    let (low, open, close, high) = match (sides, operators) {
        ([x, bound], [sign]) if is_variable(x) && !bound.has_variable() => half(*sign, bound)?,
        ([bound, x], [sign]) if is_variable(x) && !bound.has_variable() => half(turn(*sign), bound)?,
        ([a, x, b], [left, right]) if is_variable(x) && !a.has_variable() && !b.has_variable() => {
            match (left, right) {
                ('<' | '≤', '<' | '≤') => (a.clone(), bracket(*left), bracket(*right), b.clone()),
                ('>' | '≥', '>' | '≥') => (b.clone(), bracket(*right), bracket(*left), a.clone()),
                _ => return None,
            }
        }
        _ => return None,
    };
    let close = if close == '(' { ')' } else { ']' };
    Some(Answer::Bracketed { open, close, items: vec![Answer::Expr(low), Answer::Expr(high)] })
}

fn half(sign: char, bound: &Expr) -> Option<(Expr, char, char, Expr)> {
    match sign {
        '<' | '≤' => Some((Expr::Neg(Box::new(Expr::Infinity)), '(', bracket(sign), bound.clone())),
        '>' | '≥' => Some((bound.clone(), bracket(sign), '(', Expr::Infinity)),
        _ => None,
    }
}

fn bracket(sign: char) -> char {
    if matches!(sign, '≤' | '≥') { '[' } else { '(' }
}

fn turn(sign: char) -> char {
    match sign {
        '<' => '>',
        '>' => '<',
        '≤' => '≥',
        '≥' => '≤',
        same => same,
    }
}
