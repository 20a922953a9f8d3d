//! Things that one thread uses at a time and leaves for the next.
//!
//! Nobody waits here: who finds no spare makes one. A process may therefore fork while other threads are at
//! work. A lock that one of them held stays locked in the child for ever; here that costs the child one place.

use std::fmt;
use std::sync::Mutex;

/// Threads beyond these make their things anew each time.
const PLACES: usize = 32;

pub(super) struct Spares<T> {
    places: [Mutex<Option<Box<T>>>; PLACES],
}

impl<T> Spares<T> {
    /// Works with a spare, or with one that is made, and leaves it for others.
    pub(super) fn with<R>(&self, make: impl FnOnce() -> T, work: impl FnOnce(&mut T) -> R) -> R {
        let mut spare = self.take().unwrap_or_else(|| Box::new(make()));
        let result = work(&mut spare);
        self.leave(spare);
        result
    }

    pub(super) fn leave(&self, spare: Box<T>) {
        for place in &self.places {
            if let Ok(mut held) = place.try_lock()
                && held.is_none()
            {
                *held = Some(spare);
                return;
            }
        }
    }

    fn take(&self) -> Option<Box<T>> {
        self.places.iter().find_map(|place| place.try_lock().ok()?.take())
    }
}

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self { places: [const { Mutex::new(None) }; PLACES] }
    }
}

impl<T> fmt::Debug for Spares<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spares").field("places", &PLACES).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_used_again() {
        let spares = Spares::default();
        assert_eq!(spares.with(|| 1, |number| std::mem::replace(number, 2)), 1);
        assert_eq!(spares.with(|| 1, |number| *number), 2);
        // It is in use: another one is made.
        spares.with(|| 1, |_| assert_eq!(spares.with(|| 7, |number| *number), 7));
    }

    #[test]
    fn places_that_are_locked_for_ever_are_passed_by() {
        let spares = Spares::default();
        let _held: Vec<_> = spares.places.iter().skip(1).map(|place| place.lock().unwrap()).collect();
        assert_eq!(spares.with(|| 1, |number| std::mem::replace(number, 2)), 1);
        assert_eq!(spares.with(|| 1, |number| *number), 2);
        let _all = spares.places.iter().take(1).map(|place| place.lock().unwrap()).collect::<Vec<_>>();
        assert_eq!(spares.with(|| 1, |number| *number), 1);
    }
}
