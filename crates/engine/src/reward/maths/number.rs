//! Fractions of 128-bit integers, exact or not at all.

/// In lowest terms, with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    num: i128,
    den: i128,
}

impl Fraction {
    pub(super) const ONE: Self = Self { num: 1, den: 1 };

    pub(super) fn whole(num: i128) -> Self {
        Self { num, den: 1 }
    }

    /// `None` for a zero denominator and where 128 bits do not hold it.
    pub(super) fn new(num: i128, den: i128) -> Option<Self> {
        if den == 0 || num == i128::MIN || den == i128::MIN {
            return None;
        }
        let common = gcd(num.unsigned_abs(), den.unsigned_abs());
        let common = i128::try_from(common).ok()? * den.signum();
        Some(Self { num: num / common, den: den / common })
    }

    /// Digits with at most one point, and the digits that repeat after them for ever.
    pub(super) fn decimal(digits: &str, repeating: &str) -> Option<Self> {
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let scale = power(10, part.len())?;
        let written = parse([whole, part].concat().as_str())?;
        let first = Self::new(written, scale)?;
        if repeating.is_empty() {
            return Some(first);
        }
        let nines = power(10, repeating.len())? - 1;
        first.add(Self::new(parse(repeating)?, nines.checked_mul(scale)?)?)
    }

    pub(super) fn num(self) -> i128 {
        self.num
    }

    pub(super) fn den(self) -> i128 {
        self.den
    }

    pub(super) fn as_whole(self) -> Option<i128> {
        (self.den == 1).then_some(self.num)
    }

    /// Whether finitely many decimals write it out.
    pub(super) fn terminates(self) -> bool {
        let mut den = self.den;
        for prime in [2, 5] {
            while den % prime == 0 {
                den /= prime;
            }
        }
        den == 1
    }

    pub(super) fn add(self, other: Self) -> Option<Self> {
        let num = self.num.checked_mul(other.den)?.checked_add(other.num.checked_mul(self.den)?)?;
        Self::new(num, self.den.checked_mul(other.den)?)
    }

    pub(super) fn neg(self) -> Self {
        Self { num: -self.num, den: self.den }
    }

    pub(super) fn mul(self, other: Self) -> Option<Self> {
        Self::new(self.num.checked_mul(other.num)?, self.den.checked_mul(other.den)?)
    }

    pub(super) fn div(self, other: Self) -> Option<Self> {
        Self::new(self.num.checked_mul(other.den)?, self.den.checked_mul(other.num)?)
    }

    pub(super) fn pow(self, exponent: i128) -> Option<Self> {
        let up = u32::try_from(exponent.unsigned_abs()).ok()?;
        let raised = Self::new(self.num.checked_pow(up)?, self.den.checked_pow(up)?)?;
        if exponent < 0 { Self::ONE.div(raised) } else { Some(raised) }
    }

    /// The exact root, if there is one.
    pub(super) fn root(self, degree: u32) -> Option<Self> {
        Self::new(whole_root(self.num, degree)?, whole_root(self.den, degree)?)
    }

    pub(super) fn approx(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

fn parse(digits: &str) -> Option<i128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

fn power(base: i128, exponent: usize) -> Option<i128> {
    base.checked_pow(u32::try_from(exponent).ok()?)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

fn whole_root(value: i128, degree: u32) -> Option<i128> {
    if value < 0 {
        return if degree % 2 == 1 { Some(-whole_root(value.checked_neg()?, degree)?) } else { None };
    }
    let near = (value as f64).powf(1.0 / f64::from(degree)).round() as i128;
    (near - 1..=near + 1).find(|root| root.checked_pow(degree) == Some(value))
}
