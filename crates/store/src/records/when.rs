//! Timestamps as people write them: ISO 8601 with or without a zone, or numbers since 1970.

use super::fields::Number;
use super::json::Said;

/// Seconds since 1970. A time without a zone is taken as UTC, so that the same file reads the same everywhere.
pub fn seconds(said: Said<'_>) -> Option<f64> {
    match said {
        Said::Int(int) => since_1970(int as f64),
        Said::Float(float) => since_1970(float),
        Said::Str(text) => of_text(text.trim()),
        _ => None,
    }
}

/// Seconds, milliseconds, microseconds or nanoseconds: their sizes do not overlap within a lifetime.
fn since_1970(number: f64) -> Option<f64> {
    let divisor = match number.abs() {
        size if size < 1e11 => 1.0,
        size if size < 1e14 => 1e3,
        size if size < 1e17 => 1e6,
        _ => 1e9,
    };
    number.is_finite().then_some(number / divisor)
}

fn of_text(text: &str) -> Option<f64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_duration().as_secs_f64());
    }
    if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
        let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        return Some(time.timestamp().as_duration().as_secs_f64());
    }
    match Number::of_text(text)? {
        Number::Int(int) => since_1970(int as f64),
        Number::Float(float) => since_1970(float),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_time_gives_seconds() {
        for (said, expected) in [
            (Said::Str("2026-01-16T11:33:10.5"), Some(1_768_563_190.5)),
            (Said::Str("2026-01-16 11:33:10.5"), Some(1_768_563_190.5)),
            (Said::Str("2026-01-16T11:33:10.5Z"), Some(1_768_563_190.5)),
            (Said::Str("2026-01-16T12:33:10.5+01:00"), Some(1_768_563_190.5)),
            (Said::Str("1768563190.5"), Some(1_768_563_190.5)),
            (Said::Float(1_768_563_190.5), Some(1_768_563_190.5)),
            (Said::Int(1_768_563_190_500), Some(1_768_563_190.5)),
            (Said::Int(1_768_563_190_500_000_000), Some(1_768_563_190.5)),
            (Said::Int(0), Some(0.0)),
            (Said::Float(f64::NAN), None),
            (Said::Str("yesterday"), None),
            (Said::Null, None),
        ] {
            assert_eq!(seconds(said), expected, "{said:?}");
        }
    }
}
