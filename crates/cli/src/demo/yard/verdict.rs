//! Compares what the clients saw with what the log says.

use anyhow::Result;
use rollyard_core::ledger::{Books, Event};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::readers::Delivered;
use super::{NATIVE_RUN, Played, SLIME_RUN};
use crate::ledger::check;
use crate::ledger::history::History;
use crate::terminal::{Table, count, many};

/// The promises, each kept or broken, and the books.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    promises: Vec<(bool, String)>,
    remarks: Vec<String>,
    books: Vec<(&'static str, Books)>,
}

impl Verdict {
    pub(super) fn reach(dir: &Path, played: &Played) -> Result<Self> {
        let mut verdict = Self::default();
        let mut admitted: BTreeMap<(&str, String), u32> = BTreeMap::new();
        for run in [SLIME_RUN, NATIVE_RUN] {
            let history = History::open(&dir.join("yard-data"), run)?;
            history.visit(|entry| {
                if let Event::Admitted(new) = entry.event {
                    *admitted.entry((run, new.uid)).or_default() += 1;
                }
                Ok(())
            })?;
            let (ledger, _) = check::replay(&history)?;
            let audit = ledger.audit();
            let books = ledger.books().clone();
            verdict.promise(
                audit.is_ok() && books.balanced(),
                format!(
                    "the books of run {run} balance{}",
                    audit.err().map(|why| format!(": {why}")).unwrap_or_default()
                ),
            );
            verdict.books.push((run, books));
        }
        verdict.judge_writes(played, &admitted);
        verdict.judge_reads(SLIME_RUN, &played.slime);
        verdict.judge_reads(NATIVE_RUN, &played.native);
        verdict.remark(played);
        Ok(verdict)
    }

    pub(super) fn problems(&self) -> usize {
        self.promises.iter().filter(|(kept, _)| !kept).count()
    }

    fn promise(&mut self, kept: bool, promise: String) {
        self.promises.push((kept, promise));
    }

    fn judge_writes(&mut self, played: &Played, admitted: &BTreeMap<(&str, String), u32>) {
        let answered: Vec<&(&str, String)> =
            played.written.iter().flat_map(|written| &written.answered).collect();
        let missing = answered.iter().filter(|write| !admitted.contains_key(**write)).count();
        let twice = admitted.values().filter(|&&times| times > 1).count();
        let total = count(answered.len() as u64);
        let before = count(played.answered_before_kill);
        self.promise(
            missing == 0 && !answered.is_empty(),
            format!(
                "{total} writes were answered, {before} of them before the kill: {} missing",
                count(missing as u64)
            ),
        );
        self.promise(twice == 0, format!("none was kept twice ({twice} were)"));
        let sum = |pick: fn(&super::Written) -> u64| played.written.iter().map(pick).sum::<u64>();
        let (sent_twice, recognised) = (sum(|w| w.sent_twice), sum(|w| w.recognised));
        self.promise(
            sent_twice == recognised,
            format!("{} were sent twice on purpose, {} recognised", count(sent_twice), count(recognised)),
        );
    }

    fn judge_reads(&mut self, run: &str, delivered: &Delivered) {
        let books = self.books.iter().find(|(name, _)| *name == run).map(|(_, books)| books.clone());
        let books = books.unwrap_or_default();
        let (distinct, twice) =
            (delivered.times.len() as u64, delivered.times.values().filter(|&&times| times > 1).count());
        self.promise(
            distinct == books.trained && books.held + books.leased == 0,
            format!(
                "run {run}: {} rollouts delivered in {}, {} on the books as trained, {} left behind",
                count(distinct),
                many(delivered.reads as usize, "read"),
                count(books.trained),
                count(books.held + books.leased)
            ),
        );
        self.promise(twice == 0, format!("run {run}: none delivered twice ({twice} were)"));
    }

    fn remark(&mut self, played: &Played) {
        let sum = |pick: fn(&super::Written) -> u64| played.written.iter().map(pick).sum::<u64>();
        let (resent, kept) = (sum(|w| w.resent), sum(|w| w.kept_unanswered));
        self.remarks.push(format!(
            "the crash cost {} writes their answer; they were sent again, and {} proved to have been kept",
            count(resent),
            count(kept)
        ));
        if played.native.adopted > 0 {
            let adopted = count(played.native.adopted);
            self.remarks.push(format!("leases lost on the way to the reader, and fetched again: {adopted}"));
        }
        if played.slime.again_after_crash > 0 {
            self.remarks.push(format!(
                "{} rollouts came to the slime reader again: the server died before it could note their arrival; \
                 a reader that acks, like the other one, rules this out",
                count(played.slime.again_after_crash)
            ));
        }
        let secs = played.recovery.as_secs_f64();
        self.remarks.push(format!(
            "the server was back {secs:.2} s after its death; steps committed: {}",
            played.native.steps
        ));
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kept, promise) in &self.promises {
            writeln!(f, "  {} {promise}", if *kept { "✓" } else { "✗" })?;
        }
        for remark in &self.remarks {
            writeln!(f, "    {remark}")?;
        }
        let mut table = Table::new(&[
            "  books of run",
            "admitted",
            "=",
            "held",
            "+",
            "leased",
            "+",
            "trained",
            "+",
            "dropped",
        ]);
        for (run, books) in &self.books {
            let columns = [books.admitted, books.held, books.leased, books.trained, books.dropped_total()];
            let mut row = vec![format!("  {run}")];
            for (sign, column) in ["", "=", "+", "+", "+"].into_iter().zip(columns) {
                row.extend([sign.to_owned(), count(column)].into_iter().skip(usize::from(sign.is_empty())));
            }
            table.push(row);
        }
        write!(f, "\n{table}")?;
        for (run, books) in &self.books {
            for (reason, dropped) in &books.dropped {
                writeln!(f, "  dropped in {run}: {reason} {}", count(*dropped))?;
            }
        }
        Ok(())
    }
}
