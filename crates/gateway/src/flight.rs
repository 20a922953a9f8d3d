//! An answer under way.
//!
//! It is made whether anybody listens or not: an agent that lost its connection asks again, and joins. Whoever listens
//! hears everything from the beginning.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

use crate::refusal::Refusal;
use crate::session::memory::Known;
use crate::session::turn::{Cut, TurnNo};
use crate::tell::{Ended, Spoken};

#[derive(Clone, Debug)]
pub(crate) enum Told {
    Spoken(Spoken),
    /// The turn is in the journal.
    Ended(Ended, TurnNo),
    Failed(Refusal),
}

/// What is answered, for somebody who looks. Turns by their ids.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) follows: Option<u32>,
    pub(crate) cut: Option<Cut>,
    pub(crate) begins_like: Option<u32>,
    pub(crate) messages: Vec<Arc<Known>>,
}

#[derive(Debug)]
pub(crate) struct Flight {
    /// Of its turn.
    pub(crate) id: u32,
    pub(crate) choice: u32,
    pub(crate) asked: Arc<Asked>,
    told: Mutex<Vec<Told>>,
    /// How much was told.
    count: watch::Sender<usize>,
    /// Agents that listen.
    ears: AtomicUsize,
    /// Changes when one comes or goes.
    hearing: watch::Sender<()>,
}

impl Flight {
    pub(crate) fn new(id: u32, choice: u32, asked: Arc<Asked>) -> Arc<Self> {
        let (count, hearing) = (watch::Sender::new(0), watch::Sender::new(()));
        Arc::new(Self {
            id,
            choice,
            asked,
            told: Mutex::default(),
            count,
            ears: AtomicUsize::new(0),
            hearing,
        })
    }

    /// Returns how much was told before.
    pub(crate) fn tell(&self, told: Told) -> usize {
        let mut all = self.told();
        let before = all.len();
        all.push(told);
        drop(all);
        self.count.send_replace(before + 1);
        before
    }

    pub(crate) fn listen(self: &Arc<Self>) -> Ear {
        self.ears.fetch_add(1, Ordering::AcqRel);
        self.hearing.send_replace(());
        Ear { flight: Arc::clone(self), count: self.count.subscribe(), at: 0 }
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.ears.load(Ordering::Acquire) > 0
    }

    /// Waits until nobody listens.
    pub(crate) async fn unheard(&self) {
        let mut hearing = self.hearing.subscribe();
        while self.is_heard() {
            if hearing.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until somebody listens.
    pub(crate) async fn heard(&self) {
        let mut hearing = self.hearing.subscribe();
        while !self.is_heard() {
            if hearing.changed().await.is_err() {
                return;
            }
        }
    }

    /// What was told until now, for somebody who looks, without the first `known`.
    pub(crate) fn so_far(&self, known: usize) -> Vec<Told> {
        self.told().get(known..).unwrap_or_default().to_vec()
    }

    fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        // A list of what was told is whole whoever panicked.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who listens, from the beginning.
#[derive(Debug)]
pub(crate) struct Ear {
    flight: Arc<Flight>,
    count: watch::Receiver<usize>,
    at: usize,
}

impl Ear {
    /// Everything that was told since the last time; waits for it. Empty once all is over.
    pub(crate) async fn next(&mut self) -> Vec<Told> {
        loop {
            {
                let told = self.flight.told();
                let new = told.get(self.at..).unwrap_or_default();
                if !new.is_empty() {
                    let new = new.to_vec();
                    self.at = told.len();
                    return new;
                }
                if matches!(told.last(), Some(Told::Ended(..) | Told::Failed(_))) {
                    return Vec::new();
                }
            }
            if self.count.changed().await.is_err() {
                return Vec::new();
            }
        }
    }

    pub(crate) fn choice(&self) -> u32 {
        self.flight.choice
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.flight.ears.fetch_sub(1, Ordering::AcqRel);
        self.flight.hearing.send_replace(());
    }
}
