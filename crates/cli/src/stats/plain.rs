//! One table of all runs, for files, pipes and people who want it once.

use std::fmt::Write;

use super::run_stats::RunStats;
use crate::terminal::{Table, size};

pub(super) fn table(runs: &[RunStats], now_secs: f64) -> String {
    let mut table = Table::new(&[
        "run",
        "open",
        "ready",
        "leases",
        "admitted",
        "held",
        "leased",
        "trained",
        "dropped",
        "balanced",
        "bytes held",
    ]);
    for RunStats { run, open_groups, ready_groups, leases_out, books, .. } in runs {
        let numbers = [
            *open_groups,
            *ready_groups,
            *leases_out,
            books.admitted,
            books.held,
            books.leased,
            books.trained,
            books.dropped,
        ];
        let mut row = vec![run.clone()];
        row.extend(numbers.map(|number| number.to_string()));
        row.push(if books.balanced { "yes" } else { "NO" }.to_owned());
        row.push(size(books.held_bytes));
        table.push(row);
    }
    let mut text = table.to_string();
    for RunStats { run, books, pool, generator, .. } in runs {
        if let Some(line) = generator {
            let _infallible = writeln!(text, "generator of {run}: {line}");
        }
        for line in pool.iter().flat_map(|pool| pool.lines(now_secs)) {
            let _infallible = writeln!(text, "pool of {run}: {line}");
        }
        for (reason, dropped) in &books.dropped_by_reason {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "dropped in {run}: {reason} {dropped}");
        }
    }
    text
}
