//! `strftime_now`: the date as the caller gives it, since the core has no clock.

use std::fmt::Write as _;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, from_args};
use minijinja::{Error, ErrorKind, State, Value};

/// Local civil time, without a zone, like Python's `datetime.now()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub microsecond: u32,
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl CivilTime {
    /// Python's `strftime` in the C locale; a directive it does not know is copied.
    pub fn strftime(&self, format: &str) -> String {
        let mut out = String::with_capacity(format.len() + 16);
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let padding = chars.clone().next().filter(|flag| matches!(flag, '-' | '_' | '0'));
            if padding.is_some() {
                chars.next();
            }
            match chars.next() {
                Some(directive) => self.directive(&mut out, directive, padding),
                None => out.push('%'),
            }
        }
        out
    }

    fn directive(&self, out: &mut String, directive: char, padding: Option<char>) {
        let hour12 = if self.hour.is_multiple_of(12) { 12 } else { self.hour % 12 };
        let (weekday, yearday) = (self.weekday(), self.yearday());
        let mut number = |value: i64, width: usize, fill: char| {
            let _ = match padding.unwrap_or(fill) {
                '-' => write!(out, "{value}"),
                '_' => write!(out, "{value:width$}"),
                _ => write!(out, "{value:0width$}"),
            };
        };
        match directive {
            'Y' => number(self.year.into(), 1, '0'),
            'm' => number(self.month.into(), 2, '0'),
            'd' => number(self.day.into(), 2, '0'),
            'e' => number(self.day.into(), 2, '_'),
            'H' => number(self.hour.into(), 2, '0'),
            'k' => number(self.hour.into(), 2, '_'),
            'I' => number(hour12.into(), 2, '0'),
            'l' => number(hour12.into(), 2, '_'),
            'M' => number(self.minute.into(), 2, '0'),
            'S' => number(self.second.into(), 2, '0'),
            'f' => number(self.microsecond.into(), 6, '0'),
            'y' => number(i64::from(self.year.rem_euclid(100)), 2, '0'),
            'C' => number(i64::from(self.year.div_euclid(100)), 2, '0'),
            'j' => number(yearday, 3, '0'),
            'w' => number(weekday, 1, '0'),
            'u' => number(if weekday == 0 { 7 } else { weekday }, 1, '0'),
            'U' => number((yearday + 6 - weekday) / 7, 2, '0'),
            'W' => number((yearday + 6 - (weekday + 6) % 7) / 7, 2, '0'),
            'b' | 'h' => out.push_str(self.month_name().get(..3).unwrap_or_default()),
            'B' => out.push_str(self.month_name()),
            'a' => out.push_str(day_name(weekday).get(..3).unwrap_or_default()),
            'A' => out.push_str(day_name(weekday)),
            'p' => out.push_str(if self.hour < 12 { "AM" } else { "PM" }),
            'P' => out.push_str(if self.hour < 12 { "am" } else { "pm" }),
            'F' => out.push_str(&self.strftime("%Y-%m-%d")),
            'T' | 'X' => out.push_str(&self.strftime("%H:%M:%S")),
            'R' => out.push_str(&self.strftime("%H:%M")),
            'D' | 'x' => out.push_str(&self.strftime("%m/%d/%y")),
            'c' => out.push_str(&self.strftime("%a %b %e %H:%M:%S %Y")),
            'r' => out.push_str(&self.strftime("%I:%M:%S %p")),
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'z' | 'Z' => {}
            '%' => out.push('%'),
            other => {
                out.push('%');
                out.extend(padding);
                out.push(other);
            }
        }
    }

    fn month_name(&self) -> &'static str {
        MONTHS.get(usize::from(self.month.saturating_sub(1))).copied().unwrap_or_default()
    }

    fn yearday(&self) -> i64 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let days = before.get(usize::from(self.month.saturating_sub(1))).copied().unwrap_or(0);
        days + i64::from(self.day) + i64::from(leap && self.month > 2)
    }

    /// Sunday is 0.
    fn weekday(&self) -> i64 {
        let past = i64::from(self.year) - 1;
        let days = past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400);
        (days + self.yearday()).rem_euclid(7)
    }
}

fn day_name(weekday: i64) -> &'static str {
    usize::try_from(weekday).ok().and_then(|at| DAYS.get(at)).copied().unwrap_or_default()
}

/// The function a template calls.
#[derive(Debug)]
pub(super) struct StrftimeNow(pub(super) Option<CivilTime>);

impl Object for StrftimeNow {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (format,): (&str,) = from_args(args)?;
        let now = self.0.ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                "the template asks for the date; give `now` to the render",
            )
        })?;
        Ok(Value::from(now.strftime(format)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_python_writes_them() {
        let time =
            CivilTime { year: 2024, month: 7, day: 4, hour: 13, minute: 5, second: 9, microsecond: 42 };
        for (format, expect) in [
            ("%d %b %Y", "04 Jul 2024"),
            ("%A, %B %-d, %Y", "Thursday, July 4, 2024"),
            ("%Y-%m-%dT%H:%M:%S.%f", "2024-07-04T13:05:09.000042"),
            ("%I:%M %p %j %U %W %w %u", "01:05 PM 186 26 27 4 4"),
            ("%e|%y|%z|%%|%", " 4|24||%|%"),
            ("%c", "Thu Jul  4 13:05:09 2024"),
        ] {
            assert_eq!(time.strftime(format), expect);
        }
    }
}
