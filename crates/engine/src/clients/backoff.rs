//! How long to wait before asking again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Doubles each time, and is spread over its upper half: a thousand requests that failed together must not
/// come back together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
}

impl Backoff {
    /// Before the attempt after `failed` ones.
    pub(crate) fn after(self, failed: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failed.saturating_sub(1).min(20));
        let whole = doubled.min(self.most);
        whole.mul_f64(0.5 + 0.5 * spread())
    }
}

/// Numbers between 0 and 1 that lie far from their neighbours; they need not be random.
fn spread() -> f64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    (call as f64 * 0.618_033_988_749_894_9).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most() {
        let backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(1) };
        for (failed, most_ms) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (60, 1000)] {
            for _ in 0..50 {
                let wait = backoff.after(failed).as_secs_f64() * 1000.0;
                assert!(
                    (most_ms as f64 * 0.4999..=most_ms as f64 + 1e-6).contains(&wait),
                    "{failed}: {wait}"
                );
            }
        }
    }
}
