//! Which server is asked next.
//!
//! The least busy one, in turn where several are; or the one that a session went to before, whose cache
//! knows its beginning. A server that failed stands aside, and is asked how it is before it is trusted again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

use super::affinity::Affinity;
use super::config::EngineConfig;
use super::server::{Server, ServerStatus, Standing, Trial};
use crate::generate::EngineError;

#[derive(Debug)]
pub(super) struct Fleet {
    servers: Vec<Arc<Server>>,
    turn: AtomicUsize,
    affinity: Affinity,
    idle: Arc<Notify>,
}

/// A server to ask, and whether to find out first that it is well again.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) server: Arc<Server>,
    pub(super) index: usize,
    pub(super) trial: Option<Trial>,
}

impl Fleet {
    pub(super) fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let idle = Arc::new(Notify::new());
        let server = |url: &String| Server::new(url, config.dialect, Arc::clone(&idle)).map(Arc::new);
        let servers = config.urls.iter().map(server).collect::<Result<_, _>>()?;
        Ok(Self { servers, turn: AtomicUsize::new(0), affinity: Affinity::default(), idle })
    }

    pub(super) fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(super) fn status(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(|server| server.status()).collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.servers.iter().map(|server| server.in_flight()).sum()
    }

    /// Told when a server has nothing left to do.
    pub(super) fn idle(&self) -> &Notify {
        &self.idle
    }

    /// `failed` was asked last and could not answer: anybody else is better, if there is anybody.
    pub(super) fn choose(&self, session: Option<&str>, failed: Option<usize>) -> Option<Choice> {
        let choice = self.choose_now(session, failed)?;
        if let Some(session) = session {
            self.affinity.set(session, choice.index);
        }
        Some(choice)
    }

    fn choose_now(&self, session: Option<&str>, failed: Option<usize>) -> Option<Choice> {
        let now = Instant::now();
        if let Some(index) = session.and_then(|session| self.affinity.get(session))
            && let Some(server) = self.servers.get(index)
            && failed != Some(index)
            && server.standing(now) == Standing::Well
        {
            return Some(Choice { server: Arc::clone(server), index, trial: None });
        }
        let others = self.in_turn().filter(|(index, _)| failed != Some(*index));
        let may_be_tried = |server: &Arc<Server>| server.standing(now) == Standing::MayBeTried;
        let mut trials = others.clone().filter(|(_, server)| may_be_tried(server));
        if let Some((choice, trial)) = trials.find_map(|choice| Some((choice, choice.1.begin_trial()?))) {
            let (index, server) = choice;
            return Some(Choice { server: Arc::clone(server), index, trial: Some(trial) });
        }
        let well = others.filter(|(_, server)| server.standing(now) == Standing::Well);
        let least_busy = well.min_by_key(|(_, server)| server.in_flight());
        // With all of them aside, the one whose time is over first may be back.
        let soonest = || self.in_turn().min_by_key(|(_, server)| server.aside_until());
        let (index, server) = least_busy.or_else(soonest)?;
        Some(Choice { server: Arc::clone(server), index, trial: None })
    }

    /// All servers, beginning with another one each time.
    fn in_turn(&self) -> impl Iterator<Item = (usize, &Arc<Server>)> + Clone {
        let turn = if self.servers.len() < 2 { 0 } else { self.turn.fetch_add(1, Ordering::Relaxed) };
        let start = turn.checked_rem(self.servers.len()).unwrap_or(0);
        let all = self.servers.iter().enumerate();
        all.clone().skip(start).chain(all.take(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(servers: usize) -> Fleet {
        let urls = (0..servers).map(|at| format!("http://server{at}")).collect();
        Fleet::new(&EngineConfig { urls, ..EngineConfig::default() }).unwrap()
    }

    fn down(fleet: &Fleet, index: usize) {
        let error = EngineError::Unreachable { reason: "refused".into(), url: "u".into() };
        fleet.servers[index].failed(&error, None);
    }

    #[test]
    fn requests_spread_evenly_over_servers_that_are_equally_busy() {
        let fleet = fleet(3);
        let leases: Vec<_> = (0..9).map(|_| fleet.choose(None, None).unwrap().server.lease()).collect();
        assert_eq!(fleet.servers.iter().map(|server| server.in_flight()).collect::<Vec<_>>(), [3, 3, 3]);
        drop(leases);
        assert_eq!(fleet.in_flight(), 0);
    }

    #[test]
    fn the_least_busy_server_is_asked() {
        let fleet = fleet(3);
        let _busy: Vec<_> = [0, 0, 2].map(|index| fleet.servers[index].lease()).into();
        for _ in 0..3 {
            assert_eq!(fleet.choose(None, None).unwrap().index, 1);
        }
    }

    #[test]
    fn a_session_keeps_its_server_until_it_fails() {
        let fleet = fleet(3);
        let first = fleet.choose(Some("s"), None).unwrap().index;
        let _busy: Vec<_> = (0..5).map(|_| fleet.servers[first].lease()).collect();
        assert_eq!(fleet.choose(Some("s"), None).unwrap().index, first);
        down(&fleet, first);
        let second = fleet.choose(Some("s"), None).unwrap().index;
        assert_ne!(second, first);
        assert_eq!(fleet.choose(Some("s"), None).unwrap().index, second);
    }

    #[test]
    fn the_one_that_just_failed_is_asked_only_if_it_is_alone() {
        let two = fleet(2);
        for _ in 0..4 {
            assert_eq!(two.choose(None, Some(0)).unwrap().index, 1);
        }
        assert_eq!(fleet(1).choose(None, Some(0)).unwrap().index, 0);
    }

    #[test]
    fn with_all_aside_the_one_that_failed_first_is_asked() {
        let fleet = fleet(2);
        down(&fleet, 1);
        down(&fleet, 0);
        assert_eq!(fleet.choose(None, None).unwrap().index, 1);
    }
}
