//! An answer as it is understood.

/// What an answer is made of.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Expr(Expr),
    /// A set, or several values of which the order does not matter.
    Set(Vec<Answer>),
    /// A tuple, a point or an interval: the brackets are part of it.
    Bracketed {
        open: char,
        close: char,
        items: Vec<Answer>,
    },
    Union(Vec<Answer>),
    Matrix(Vec<Vec<Answer>>),
    /// `x = 5`, `f(x) = 2x`, `x ∈ [1, 2]`.
    Named {
        name: Expr,
        is: Box<Answer>,
    },
    /// One more side than operators.
    Relation {
        sides: Vec<Expr>,
        operators: Vec<char>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// Digits with at most one point, and those that repeat for ever.
    Number {
        digits: String,
        repeating: String,
    },
    Pi,
    E,
    Infinity,
    Variable(String),
    Neg(Box<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Div(Box<Expr>, Box<Expr>),
    Pow(Box<Expr>, Box<Expr>),
    /// The sign of the second is open; the flag turns it round for `∓`.
    PlusMinus(Box<Expr>, Box<Expr>, bool),
    Apply(Function, Box<Expr>),
    Log {
        base: Box<Expr>,
        of: Box<Expr>,
    },
    Factorial(Box<Expr>),
    Percent(Box<Expr>),
    Degrees(Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Sin,
    Cos,
    Tan,
    Cot,
    Sec,
    Csc,
    Arcsin,
    Arccos,
    Arctan,
    Sinh,
    Cosh,
    Tanh,
    Ln,
    Exp,
    Abs,
    Floor,
    Ceil,
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "tan" => Self::Tan,
            "cot" => Self::Cot,
            "sec" => Self::Sec,
            "csc" => Self::Csc,
            "arcsin" | "asin" => Self::Arcsin,
            "arccos" | "acos" => Self::Arccos,
            "arctan" | "atan" => Self::Arctan,
            "sinh" => Self::Sinh,
            "cosh" => Self::Cosh,
            "tanh" => Self::Tanh,
            "ln" => Self::Ln,
            "exp" => Self::Exp,
            "abs" => Self::Abs,
            _ => return None,
        })
    }

    pub(super) fn of(self, x: f64) -> f64 {
        match self {
            Self::Sin => x.sin(),
            Self::Cos => x.cos(),
            Self::Tan => x.tan(),
            Self::Cot => 1.0 / x.tan(),
            Self::Sec => 1.0 / x.cos(),
            Self::Csc => 1.0 / x.sin(),
            Self::Arcsin => x.asin(),
            Self::Arccos => x.acos(),
            Self::Arctan => x.atan(),
            Self::Sinh => x.sinh(),
            Self::Cosh => x.cosh(),
            Self::Tanh => x.tanh(),
            Self::Ln => x.ln(),
            Self::Exp => x.exp(),
            Self::Abs => x.abs(),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
        }
    }
}

impl Expr {
    pub(super) fn number(digits: &str) -> Self {
        Self::Number { digits: digits.to_owned(), repeating: String::new() }
    }

    /// The expressions it is made of.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Number { .. } | Self::Pi | Self::E | Self::Infinity | Self::Variable(_) => Vec::new(),
            Self::Neg(a) | Self::Apply(_, a) | Self::Factorial(a) | Self::Percent(a) | Self::Degrees(a) => {
                vec![a]
            }
            Self::Add(a, b)
            | Self::Mul(a, b)
            | Self::Div(a, b)
            | Self::Pow(a, b)
            | Self::PlusMinus(a, b, _)
            | Self::Log { base: a, of: b } => vec![a, b],
        }
    }

    /// Whether it or anything in it is so.
    pub(super) fn any(&self, is: &impl Fn(&Self) -> bool) -> bool {
        is(self) || self.parts().into_iter().any(|part| part.any(is))
    }

    /// How many parts it has.
    pub(super) fn size(&self) -> usize {
        1 + self.parts().into_iter().map(Self::size).sum::<usize>()
    }

    pub(super) fn has_variable(&self) -> bool {
        self.any(&|part| matches!(part, Self::Variable(_)))
    }

    pub(super) fn has_decimal(&self) -> bool {
        self.any(&|part| matches!(part, Self::Number { digits, .. } if digits.contains('.')))
    }

    /// The same with the open signs chosen: all `±` are plus, or all are minus.
    pub(super) fn with_sign(&self, plus: bool) -> Self {
        let go = |part: &Self| Box::new(part.with_sign(plus));
        match self {
            Self::PlusMinus(a, b, is_turned) if plus != *is_turned => Self::Add(go(a), go(b)),
            Self::PlusMinus(a, b, _) => Self::Add(go(a), Box::new(Self::Neg(go(b)))),
            Self::Neg(a) => Self::Neg(go(a)),
            Self::Apply(function, a) => Self::Apply(*function, go(a)),
            Self::Factorial(a) => Self::Factorial(go(a)),
            Self::Percent(a) => Self::Percent(go(a)),
            Self::Degrees(a) => Self::Degrees(go(a)),
            Self::Add(a, b) => Self::Add(go(a), go(b)),
            Self::Mul(a, b) => Self::Mul(go(a), go(b)),
            Self::Div(a, b) => Self::Div(go(a), go(b)),
            Self::Pow(a, b) => Self::Pow(go(a), go(b)),
            Self::Log { base, of } => Self::Log { base: go(base), of: go(of) },
            leaf => leaf.clone(),
        }
    }
}
