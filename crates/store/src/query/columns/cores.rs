//! Work that is the same for many things, on all cores.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(16)
}

/// The results for `0..n`, in order. Less than `worth` are done before a thread would have begun.
pub(crate) fn map<T: Send>(n: usize, worth: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = count();
    if n < worth || threads < 2 {
        return (0..n).map(of).collect();
    }
    // Short stretches, so that a thread which was held up does not hold up the rest.
    let stretch = n.div_ceil(threads * 8);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done: Vec<(usize, Vec<T>)> = Vec::new();
        loop {
            let from = next.fetch_add(stretch, Ordering::Relaxed);
            if from >= n {
                return done;
            }
            done.push((from, (from..n.min(from + stretch)).map(&of).collect()));
        }
    };
    let mut parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = work();
        for other in others {
            match other.join() {
                Ok(done) => parts.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    });
    parts.sort_unstable_by_key(|(from, _)| *from);
    parts.into_iter().flat_map(|(_, part)| part).collect()
}
