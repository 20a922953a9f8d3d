//! What an expression is worth, in three ways at once.
//!
//! As a fraction, while it is one that 128 bits hold. As residues modulo two primes near 2^61, which a
//! rational expression has however large it gets: two expressions that agree in both are equal, but for a
//! chance of about 1 in 2^118; with variables set to residues this decides equality of polynomials and of
//! their quotients. And as a floating-point number, for everything else.

use super::number::Fraction;

const PRIMES: [u64; 2] = [2_305_843_009_213_693_951, 2_305_843_009_213_693_921];

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) fraction: Option<Fraction>,
    pub(super) residues: Option<[u64; 2]>,
    pub(super) approx: f64,
}

impl Value {
    pub(super) fn fraction(fraction: Fraction) -> Option<Self> {
        let residue = |prime| {
            Some(mul(reduce(fraction.num(), prime), inverse(reduce(fraction.den(), prime), prime)?, prime))
        };
        Some(Self { fraction: Some(fraction), residues: both(residue), approx: fraction.approx() })
    }

    pub(super) fn whole(number: i128) -> Self {
        Self {
            fraction: Some(Fraction::whole(number)),
            residues: both(|prime| Some(reduce(number, prime))),
            approx: number as f64,
        }
    }

    /// An irrational number.
    pub(super) fn real(approx: f64) -> Self {
        Self { fraction: None, residues: None, approx }
    }

    /// Something that no equation ties down, such as a variable or π: as good as a random residue.
    pub(super) fn free(hash: u64, approx: f64) -> Self {
        Self { fraction: None, residues: both(|prime| Some(mix(hash ^ prime) % prime)), approx }
    }

    pub(super) fn add(self, other: Self) -> Self {
        self.join(other, Fraction::add, |a, b, p| Some(add(a, b, p)), self.approx + other.approx)
    }

    pub(super) fn neg(self) -> Self {
        Self {
            fraction: self.fraction.map(Fraction::neg),
            residues: self.each(|residue, prime| Some((prime - residue) % prime)),
            approx: -self.approx,
        }
    }

    pub(super) fn mul(self, other: Self) -> Self {
        self.join(other, Fraction::mul, |a, b, p| Some(mul(a, b, p)), self.approx * other.approx)
    }

    /// `None` for a division by zero.
    pub(super) fn div(self, other: Self) -> Option<Self> {
        let is_zero = match (other.fraction, other.residues) {
            (Some(fraction), _) => fraction.num() == 0,
            (None, Some(residues)) => residues == [0, 0],
            (None, None) => other.approx == 0.0,
        };
        let divide = |a, b, p| Some(mul(a, inverse(b, p)?, p));
        (!is_zero).then(|| self.join(other, Fraction::div, divide, self.approx / other.approx))
    }

    pub(super) fn pow(self, exponent: Self) -> Option<Self> {
        if let Some(whole) = exponent.fraction.and_then(Fraction::as_whole) {
            return self.pow_whole(whole);
        }
        if let Some(part) = exponent.fraction {
            let degree = u32::try_from(part.den()).ok();
            let root = degree.and_then(|degree| self.fraction?.root(degree));
            if let Some(root) = root {
                return Self::fraction(root)?.pow_whole(part.num());
            }
            // The real root of a negative number: calculators disagree on powers, not on odd roots.
            if self.approx < 0.0 && part.den() % 2 == 1 && part.num() == 1 {
                return Some(Self::real(-(-self.approx).powf(exponent.approx)));
            }
        }
        Some(Self::real(self.approx.powf(exponent.approx)))
    }

    fn pow_whole(self, exponent: i128) -> Option<Self> {
        if exponent < 0 {
            return Self::whole(1).div(self.pow_whole(exponent.checked_neg()?)?);
        }
        Some(Self {
            fraction: self.fraction.and_then(|base| base.pow(exponent)),
            residues: self.each(|residue, prime| Some(raise(residue, exponent.unsigned_abs(), prime))),
            approx: self.approx.powf(exponent as f64),
        })
    }

    fn join(
        self,
        other: Self,
        exact: impl Fn(Fraction, Fraction) -> Option<Fraction>,
        modular: impl Fn(u64, u64, u64) -> Option<u64>,
        approx: f64,
    ) -> Self {
        let fraction = self.fraction.zip(other.fraction).and_then(|(a, b)| exact(a, b));
        let [p, q] = PRIMES;
        let residues = self.residues.zip(other.residues);
        let residues = residues.and_then(|([a, b], [c, d])| Some([modular(a, c, p)?, modular(b, d, q)?]));
        Self { fraction, residues, approx }
    }

    fn each(self, change: impl Fn(u64, u64) -> Option<u64>) -> Option<[u64; 2]> {
        let ([a, b], [p, q]) = (self.residues?, PRIMES);
        Some([change(a, p)?, change(b, q)?])
    }
}

/// Spreads every bit over all others.
pub(super) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn both(residue: impl Fn(u64) -> Option<u64>) -> Option<[u64; 2]> {
    let [p, q] = PRIMES;
    Some([residue(p)?, residue(q)?])
}

fn reduce(number: i128, prime: u64) -> u64 {
    u64::try_from(number.rem_euclid(i128::from(prime))).unwrap_or(0)
}

fn add(a: u64, b: u64, prime: u64) -> u64 {
    (a + b) % prime
}

fn mul(a: u64, b: u64, prime: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) % u128::from(prime)).unwrap_or(0)
}

fn raise(mut base: u64, mut exponent: u128, prime: u64) -> u64 {
    let mut raised = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            raised = mul(raised, base, prime);
        }
        base = mul(base, base, prime);
        exponent >>= 1;
    }
    raised
}

/// By Fermat; zero has none.
fn inverse(value: u64, prime: u64) -> Option<u64> {
    (value != 0).then(|| raise(value, u128::from(prime - 2), prime))
}
