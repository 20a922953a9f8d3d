//! Reads tokens as an answer: values, sets, tuples, intervals, matrices and relations.
//!
//! What is inside of them is arithmetic, which is read by `primary` from the smallest part up.

use super::MathsRules;
use super::equal::equal;
use super::lex::{ROW, SET_CLOSE, SET_OPEN, Token};
use super::tree::{Answer, Expr};

/// How deep brackets, powers and fractions may stand in each other.
const DEPTH_MAX: usize = 40;

/// `None` if it is not an answer that is understood to its end.
pub(super) fn parse(tokens: Vec<Token>) -> Option<Answer> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let items = parser.items()?;
    (parser.at == parser.tokens.len()).then(|| set_or_item(items))
}

fn set_or_item(mut items: Vec<Answer>) -> Answer {
    if items.len() == 1 { items.remove(0) } else { Answer::Set(items) }
}

pub(super) struct Parser {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn is_at(&self, sign: char) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    pub(super) fn skip(&mut self, sign: char) -> bool {
        let is_at = self.is_at(sign);
        self.at += usize::from(is_at);
        is_at
    }

    pub(super) fn skip_command(&mut self, name: &str) -> bool {
        let is_at = matches!(self.peek(), Some(Token::Command(found)) if found == name);
        self.at += usize::from(is_at);
        is_at
    }

    /// Reads one level deeper, if there is one.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Items between commas.
    fn items(&mut self) -> Option<Vec<Answer>> {
        let mut items = vec![self.item()?];
        while self.skip(',') || self.skip(';') {
            // "1, 2, and 3" has two separators before the last.
            self.skip(',');
            items.push(self.item()?);
        }
        Some(items)
    }

    fn item(&mut self) -> Option<Answer> {
        let mut parts = vec![self.relation()?];
        while self.skip('∪') {
            parts.push(self.relation()?);
        }
        Some(if parts.len() == 1 { parts.remove(0) } else { Answer::Union(parts) })
    }

    fn relation(&mut self) -> Option<Answer> {
        let mut sides = vec![self.operand()?];
        let mut operators = Vec::new();
        while let Some(Token::Sign(sign @ ('=' | '<' | '>' | '≤' | '≥' | '≠' | '∈'))) = self.peek() {
            operators.push(*sign);
            self.at += 1;
            sides.push(self.operand()?);
        }
        if operators.is_empty() {
            return sides.pop();
        }
        if operators.iter().all(|sign| matches!(sign, '=' | '∈'))
            && let Some(Answer::Expr(name)) = sides.first()
            && is_name(name)
        {
            let name = name.clone();
            let last = sides.pop()?;
            // "x = 2 + 3 = 5" says 5, but "x = 4 = 5" says nothing.
            let is_last = |side: &Answer| match (side, &last) {
                (Answer::Expr(side), Answer::Expr(last)) => equal(side, last, &MathsRules::default()),
                _ => false,
            };
            return sides.iter().skip(1).all(is_last).then(|| Answer::Named { name, is: Box::new(last) });
        }
        let expr = |side| if let Answer::Expr(expr) = side { Some(expr) } else { None };
        let sides: Vec<Expr> = sides.into_iter().map(expr).collect::<Option<_>>()?;
        Some(Answer::Relation { sides, operators })
    }

    fn operand(&mut self) -> Option<Answer> {
        self.deeper(|parser| match parser.peek() {
            Some(Token::Sign(open @ ('(' | '['))) => {
                let open = *open;
                if parser.is_list() { parser.bracketed(open) } else { parser.expr_answer() }
            }
            Some(Token::Sign(SET_OPEN)) => parser.set(SET_CLOSE),
            Some(Token::Sign('{')) if parser.is_list() => parser.set('}'),
            Some(Token::Command(name)) if name.starts_with("begin:") => parser.matrix(),
            _ => parser.expr_answer(),
        })
    }

    fn expr_answer(&mut self) -> Option<Answer> {
        let expr = self.expr()?;
        if !expr.any(&|part| matches!(part, Expr::PlusMinus(..))) {
            return Some(Answer::Expr(expr));
        }
        let signs = [true, false].map(|plus| Answer::Expr(expr.with_sign(plus)));
        Some(Answer::Set(signs.into()))
    }

    /// Whether the bracket that stands here holds items, and ends what it stands in.
    fn is_list(&self) -> bool {
        let mut depth = 0_usize;
        let mut has_comma = false;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            let Token::Sign(sign) = token else { continue };
            match sign {
                '(' | '[' | '{' | &SET_OPEN => depth += 1,
                ')' | ']' | '}' | &SET_CLOSE => depth = depth.saturating_sub(1),
                ',' | ';' => has_comma |= depth == 1,
                _ => {}
            }
            if depth == 0 {
                let ends = match self.tokens.get(at + 1) {
                    None | Some(Token::Command(_)) => true,
                    Some(Token::Sign(next)) => {
                        matches!(next, ',' | ';' | '∪' | '=' | '&' | ')' | ']' | '}' | &ROW | &SET_CLOSE)
                    }
                    Some(_) => false,
                };
                return has_comma && ends;
            }
        }
        false
    }

    fn bracketed(&mut self, open: char) -> Option<Answer> {
        self.at += 1;
        let items = self.items()?;
        let close = if self.skip(')') { ')' } else { self.skip(']').then_some(']')? };
        Some(Answer::Bracketed { open, close, items })
    }

    fn set(&mut self, close: char) -> Option<Answer> {
        self.at += 1;
        if self.skip(close) {
            return Some(Answer::Set(Vec::new()));
        }
        let items = self.items()?;
        self.skip(close).then_some(Answer::Set(items))
    }

    fn matrix(&mut self) -> Option<Answer> {
        let Some(Token::Command(begin)) = self.peek() else { return None };
        let kind = begin.strip_prefix("begin:")?.to_owned();
        // Bars around a matrix make it a number, which is not calculated here.
        if !matches!(kind.as_str(), "pmatrix" | "bmatrix" | "matrix" | "array" | "smallmatrix") {
            return None;
        }
        self.at += 1;
        let end = ["end:", &kind].concat();
        let mut rows = vec![vec![self.item()?]];
        loop {
            if self.skip_command(&end) {
                return Some(Answer::Matrix(rows));
            }
            if self.skip('&') {
                let item = self.item()?;
                rows.last_mut()?.push(item);
            } else if self.skip(ROW) {
                if !self.skip_command(&end) {
                    rows.push(vec![self.item()?]);
                    continue;
                }
                return Some(Answer::Matrix(rows));
            } else {
                return None;
            }
        }
    }
}

/// A variable, or a function of one.
fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Variable(_) => true,
        Expr::Mul(function, of) => {
            matches!((&**function, &**of), (Expr::Variable(_), Expr::Variable(_)))
        }
        _ => false,
    }
}
