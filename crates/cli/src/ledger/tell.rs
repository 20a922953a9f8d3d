//! Events in words, times in a form that sorts.

use rollyard_core::ids::{LeaseNo, Time};
use rollyard_core::ledger::Event;
use std::fmt::Display;

use crate::terminal::many;

/// When an event happened; moving a payload happens behind the scenes and has no time.
pub(super) fn time_of(event: &Event) -> Option<Time> {
    match event {
        Event::Configured { at, .. }
        | Event::GroupReady { at, .. }
        | Event::GroupDropped { at, .. }
        | Event::RolloutDropped { at, .. }
        | Event::Leased { at, .. }
        | Event::Extended { at, .. }
        | Event::Acked { at, .. }
        | Event::Returned { at, .. }
        | Event::Committed { at, .. }
        | Event::Rewound { at, .. }
        | Event::GroupPosed { at, .. }
        | Event::GroupWaits { at, .. }
        | Event::GroupShaped { at, .. }
        | Event::RewoundToStart { at }
        | Event::Noted { at, .. }
        | Event::VersionSet { at, .. }
        | Event::Pooled { at, .. }
        | Event::StepSet { at, .. }
        | Event::Sampled { at, .. } => Some(*at),
        Event::Admitted(admitted) => Some(admitted.at),
        Event::Relocated { .. } => None,
    }
}

/// The event as a sentence.
pub(super) fn sentence(event: &Event) -> String {
    match event {
        Event::Configured { config, .. } => {
            format!("configured: task {}, groups of {}", config.task_type, config.group_size)
        }
        Event::Admitted(new) => {
            let version = new.version.map(|version| format!(", weights {version}")).unwrap_or_default();
            format!(
                "rollout {:?} admitted to group {} (instance {:?}, round {}), reward {}{version}, {} bytes",
                new.uid, new.group, new.instance, new.round, new.reward, new.size_bytes
            )
        }
        Event::GroupReady { group, .. } => format!("group {group} ready"),
        Event::GroupPosed { group, .. } => format!("group {group} given to the hooks of its generator"),
        Event::GroupWaits { group, .. } => format!("group {group} waits for more, as its generator says"),
        Event::GroupShaped { group, shape, .. } => {
            format!("group {group} ready, shaped by its generator: {}", many(shape.rows.len(), "row"))
        }
        Event::GroupDropped { group, reason, why, .. } => {
            let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("group {group} dropped: {reason}{why}")
        }
        Event::RolloutDropped { group, reason, .. } => {
            format!("a rollout of group {group} dropped: {reason}")
        }
        Event::Leased { lease, groups, until, reader, auto, .. } => {
            let by = if *auto { ", to be acked for it" } else { "" };
            let groups = list(groups);
            format!("lease {lease} to {reader:?}{by}: groups {groups}, until {}", clock(*until))
        }
        Event::Extended { lease, until, .. } => format!("lease {lease} extended until {}", clock(*until)),
        Event::Acked { lease, last: true, .. } => format!("lease {lease} acked, for good"),
        Event::Acked { lease, last: false, .. } => format!("lease {lease} acked"),
        Event::Returned { lease, expired: true, .. } => {
            format!("lease {lease} expired, its groups went back")
        }
        Event::Returned { lease, expired: false, .. } => format!("lease {lease} returned"),
        Event::Committed { step, leases, .. } => format!("step {step} committed with {}", leases_in(leases)),
        Event::Rewound { step, .. } => format!("rewound to step {step}"),
        Event::RewoundToStart { .. } => "rewound to before the first step".to_owned(),
        Event::Noted { state: Some(state), told, .. } => format!("generator {}: {told}", state.name()),
        Event::Noted { state: None, told, .. } => format!("generator: {told}"),
        Event::VersionSet { version, .. } => format!("weights {version} are sampled with"),
        Event::Pooled { group, members, .. } => {
            format!("group {group} can be sampled: {}", many(members.len(), "rollout"))
        }
        Event::StepSet { step, .. } => format!("the trainer is at step {step}"),
        Event::Sampled { lease, picks, step, draw, until, reader, .. } => {
            let step = step.map(|step| format!(" for step {step}")).unwrap_or_default();
            let count = many(picks.len(), "rollout");
            format!("lease {lease} to {reader:?}: {count} drawn{step} (draw {draw}), until {}", clock(*until))
        }
        Event::Relocated { group, .. } => format!("a rollout of group {group} moved within the log"),
    }
}

fn leases_in(leases: &[LeaseNo]) -> String {
    match leases {
        [] => "no lease".to_owned(),
        [lease] => format!("lease {lease}"),
        more => format!("leases {}", list(more)),
    }
}

pub(super) fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// A time in UTC, as ISO 8601 has it.
pub(super) fn clock(time: Time) -> String {
    let (days, millis) = (time.0 / 86_400_000, time.0 % 86_400_000);
    // The calendar repeats every 400 years, or 146,097 days; counting from a March, leap days come last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(clock(Time(millis)), expected);
        }
    }
}
