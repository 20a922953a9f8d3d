//! Reads arithmetic, from sums down to single numbers.

use super::lex::Token;
use super::parse::Parser;
use super::tree::{Expr, Function};

impl Parser {
    pub(super) fn expr(&mut self) -> Option<Expr> {
        self.deeper(Self::sum)
    }

    fn sum(&mut self) -> Option<Expr> {
        // A sign that nothing stands before leaves both signs open.
        let mut sum = match self.peek() {
            Some(Token::Sign(sign @ ('±' | '∓'))) => {
                let is_turned = *sign == '∓';
                self.at += 1;
                Expr::PlusMinus(Box::new(Expr::number("0")), Box::new(self.term()?), is_turned)
            }
            _ => self.term()?,
        };
        while let Some(Token::Sign(sign @ ('+' | '-' | '±' | '∓'))) = self.peek() {
            let sign = *sign;
            self.at += 1;
            let (left, right) = (Box::new(sum), Box::new(self.term()?));
            sum = match sign {
                '+' => Expr::Add(left, right),
                '-' => Expr::Add(left, Box::new(Expr::Neg(right))),
                open => Expr::PlusMinus(left, right, open == '∓'),
            };
        }
        Some(sum)
    }

    fn term(&mut self) -> Option<Expr> {
        let mut term = self.factor()?;
        loop {
            if self.skip('*') {
                term = Expr::Mul(Box::new(term), Box::new(self.factor()?));
            } else if self.skip('/') {
                term = Expr::Div(Box::new(term), Box::new(self.factor()?));
            } else if self.begins_factor() {
                term = Expr::Mul(Box::new(term), Box::new(self.power()?));
            } else {
                return Some(term);
            }
        }
    }

    /// Whether what stands here multiplies what stands before. A number does not: 2 3 is a slip.
    fn begins_factor(&self) -> bool {
        match self.peek() {
            Some(Token::Letter(_) | Token::Sign('(' | '[' | '{' | 'π' | '∞')) => true,
            Some(Token::Command(name)) => {
                matches!(name.as_str(), "frac" | "binom" | "sqrt" | "log" | "lfloor" | "lceil")
                    || Function::named(name).is_some()
            }
            _ => false,
        }
    }

    fn factor(&mut self) -> Option<Expr> {
        if self.skip('-') {
            return Some(Expr::Neg(Box::new(self.deeper(Self::factor)?)));
        }
        if self.skip('+') {
            return self.deeper(Self::factor);
        }
        self.power()
    }

    fn power(&mut self) -> Option<Expr> {
        let mut base = self.primary()?;
        loop {
            if self.skip('!') {
                base = Expr::Factorial(Box::new(base));
            } else if self.skip('%') {
                base = Expr::Percent(Box::new(base));
            } else if self.skip('°') {
                base = Expr::Degrees(Box::new(base));
            } else if self.skip('^') {
                if self.skip_degrees() {
                    base = Expr::Degrees(Box::new(base));
                    continue;
                }
                let exponent = self.deeper(Self::factor)?;
                return Some(Expr::Pow(Box::new(base), Box::new(exponent)));
            } else {
                return Some(base);
            }
        }
    }

    fn skip_degrees(&mut self) -> bool {
        let degrees = [Token::Sign('{'), Token::Sign('°'), Token::Sign('}')];
        if self.tokens.get(self.at..).is_some_and(|rest| rest.starts_with(&degrees)) {
            self.at += degrees.len();
            return true;
        }
        self.skip('°')
    }

    fn primary(&mut self) -> Option<Expr> {
        let token = self.peek()?.clone();
        self.at += 1;
        match token {
            Token::Number(digits) => self.number(digits),
            Token::Letter('e') => Some(Expr::E),
            Token::Letter(letter) => self.variable(letter),
            Token::Sign('π') => Some(Expr::Pi),
            Token::Sign('∞') => Some(Expr::Infinity),
            Token::Sign(open @ ('(' | '[' | '{' | '|')) => {
                let close = match open {
                    '(' => ')',
                    '[' => ']',
                    '{' => '}',
                    bar => bar,
                };
                let inner = self.expr()?;
                let is_closed = self.skip(close);
                let inner = if open == '|' { Expr::Apply(Function::Abs, Box::new(inner)) } else { inner };
                is_closed.then_some(inner)
            }
            Token::Command(name) => self.command(&name),
            Token::Sign(_) | Token::Text(_) => None,
        }
    }

    fn number(&mut self, digits: String) -> Option<Expr> {
        if self.skip_command("overline") {
            let inside = self.skip('{').then(|| self.peek().cloned())?;
            let Some(Token::Number(repeating)) = inside.filter(|_| digits.contains('.')) else { return None };
            self.at += 1;
            return (self.skip('}') && !repeating.contains('.'))
                .then_some(Expr::Number { digits, repeating });
        }
        if self.skip('_') {
            return in_base(&digits, &self.argument()?);
        }
        let whole = Expr::number(&digits);
        let part = if digits.contains('.') { None } else { self.mixed_part() };
        Some(match part {
            Some((top, bottom)) => {
                let part = Expr::Div(Box::new(Expr::number(&top)), Box::new(Expr::number(&bottom)));
                Expr::Add(Box::new(whole), Box::new(part))
            }
            None => whole,
        })
    }

    /// The fraction of a mixed number, `2\frac{1}{3}` or `2 1/3`: smaller than one, and of plain numbers.
    fn mixed_part(&mut self) -> Option<(String, String)> {
        let number = |token: Option<&Token>| match token {
            Some(Token::Number(digits)) if !digits.contains('.') => Some(digits.clone()),
            _ => None,
        };
        let rest = self.tokens.get(self.at..)?;
        let (top, bottom, len) = match rest {
            [
                Token::Command(name),
                Token::Sign('{'),
                top,
                Token::Sign('}'),
                Token::Sign('{'),
                bottom,
                Token::Sign('}'),
                ..,
            ] if name == "frac" => (number(Some(top))?, number(Some(bottom))?, 7),
            [Token::Command(name), both, ..] if name == "frac" && number(Some(both))?.len() == 2 => {
                let both = number(Some(both))?;
                let (top, bottom) = both.split_at_checked(1)?;
                (top.to_owned(), bottom.to_owned(), 2)
            }
            [Token::Command(name), top, bottom, ..] if name == "frac" => {
                (number(Some(top))?, number(Some(bottom))?, 3)
            }
            [top, Token::Sign('/'), bottom, ..] => (number(Some(top))?, number(Some(bottom))?, 3),
            _ => return None,
        };
        let is_part = top.parse::<u64>().ok()? < bottom.parse::<u64>().ok()?;
        self.at += if is_part { len } else { 0 };
        is_part.then_some((top, bottom))
    }

    /// A letter with its index.
    fn variable(&mut self, letter: char) -> Option<Expr> {
        if !self.skip('_') {
            return Some(Expr::Variable(letter.to_string()));
        }
        let index = self.argument()?;
        Some(Expr::Variable(format!("{letter}_{index:?}")))
    }

    /// What a command takes: a group, or the one thing that comes next; of a number only its first digit.
    fn argument(&mut self) -> Option<Expr> {
        let at = self.at;
        if let Some(Token::Number(digits)) = self.tokens.get_mut(at)
            && digits.len() > 1
            && !digits.contains('.')
        {
            let first = digits.remove(0).to_string();
            return Some(Expr::number(&first));
        }
        self.deeper(Self::primary)
    }

    fn command(&mut self, name: &str) -> Option<Expr> {
        match name {
            "frac" => {
                let (top, bottom) = (self.argument()?, self.argument()?);
                Some(Expr::Div(Box::new(top), Box::new(bottom)))
            }
            "binom" => {
                let factorial = |of: Expr| Box::new(Expr::Factorial(Box::new(of)));
                let (all, chosen) = (self.argument()?, self.argument()?);
                let others = Expr::Add(Box::new(all.clone()), Box::new(Expr::Neg(Box::new(chosen.clone()))));
                let ways = Expr::Mul(factorial(chosen), factorial(others));
                Some(Expr::Div(factorial(all), Box::new(ways)))
            }
            "sqrt" => {
                let degree = if self.skip('[') {
                    let degree = self.expr()?;
                    self.skip(']').then_some(degree)?
                } else {
                    Expr::number("2")
                };
                let of = if let Some(Token::Number(digits)) = self.peek().cloned() {
                    self.at += 1;
                    Expr::number(&digits)
                } else {
                    self.argument()?
                };
                let exponent = Expr::Div(Box::new(Expr::number("1")), Box::new(degree));
                Some(Expr::Pow(Box::new(of), Box::new(exponent)))
            }
            "log" => {
                let base = if self.skip('_') { self.argument()? } else { Expr::number("10") };
                Some(Expr::Log { base: Box::new(base), of: Box::new(self.applied()?) })
            }
            "lfloor" | "lceil" => {
                let inner = Box::new(self.expr()?);
                let (function, close) =
                    if name == "lfloor" { (Function::Floor, "rfloor") } else { (Function::Ceil, "rceil") };
                self.skip_command(close).then_some(Expr::Apply(function, inner))
            }
            _ => {
                let function = Function::named(name)?;
                // \sin^2 x is the square of the sine; \sin^{-1} means two things, and so nothing here.
                let power = if self.skip('^') { Some(self.argument()?) } else { None };
                if matches!(power, Some(Expr::Neg(_))) {
                    return None;
                }
                let applied = Expr::Apply(function, Box::new(self.applied()?));
                Some(match power {
                    Some(power) => Expr::Pow(Box::new(applied), Box::new(power)),
                    None => applied,
                })
            }
        }
    }

    /// What a function is applied to: a bracket, or the product that follows, as in `\sin 2x`.
    fn applied(&mut self) -> Option<Expr> {
        self.deeper(|parser| {
            if parser.is_at('(') || parser.is_at('{') {
                return parser.power();
            }
            let mut product = parser.power()?;
            while matches!(parser.peek(), Some(Token::Letter(_) | Token::Sign('π'))) {
                product = Expr::Mul(Box::new(product), Box::new(parser.power()?));
            }
            Some(product)
        })
    }
}

/// `1011_2`: digits of another base, as the number they are.
fn in_base(digits: &str, base: &Expr) -> Option<Expr> {
    let Expr::Number { digits: base, .. } = base else { return None };
    let base: u32 = base.parse().ok().filter(|base| (2..=10).contains(base))?;
    let value = i128::from_str_radix(digits, base).ok()?;
    Some(Expr::number(&value.to_string()))
}
