//! Who is alive: heartbeats, and when each was heard by this node's own clock.
//!
//! No time travels between nodes, so a clock that jumps does nothing. A node hears its own heartbeats too: one that
//! does not is cut off, or was stopped for a while, and what it believes of the others is worth nothing until it has
//! listened again.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

/// A dead node is shown for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// The name of a node: unlike those of all others, and without anything that a subject or a header could not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a node: it has 1 to 64 letters, digits, '-', '_' and '.'")]
pub struct BadNodeName(String);

impl TryFrom<&str> for NodeName {
    type Error = BadNodeName;

    fn try_from(name: &str) -> Result<Self, BadNodeName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_one = (1..=64).contains(&name.len()) && name.bytes().all(fits);
        is_one.then(|| Self(name.to_owned())).ok_or_else(|| BadNodeName(name.to_owned()))
    }
}

impl NodeName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a node says several times a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) node: String,
    pub(crate) url: String,
    /// Another one for every start, so that two nodes of one name are noticed.
    pub(crate) incarnation: u64,
    /// When it started, by its own clock: to be shown, never to be compared.
    pub(crate) started: u64,
    #[serde(default)]
    pub(crate) runs: Vec<HeldRun>,
    /// Runs that it knows of and that nobody has, as far as it has heard.
    #[serde(default)]
    pub(crate) orphans: Vec<String>,
    /// Runs that it tried to open, and could not.
    #[serde(default)]
    pub(crate) unable: Vec<String>,
    /// It has only begun to listen, and owns nothing.
    #[serde(default)]
    pub(crate) joining: bool,
    /// It takes no more runs.
    #[serde(default)]
    pub(crate) retiring: bool,
    /// Its last word.
    #[serde(default)]
    pub(crate) leaving: bool,
}

/// A run in the hands of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldRun {
    pub(crate) run: String,
    /// Of its claim; 0 while it is being opened.
    pub(crate) epoch: u64,
    /// Claimed, but not open yet or not any more: nobody else is to claim it, and nobody can ask it.
    #[serde(default)]
    pub(crate) busy: bool,
}

/// Another node.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) beat: Beat,
    /// The runs of its last heartbeat, by name.
    pub(crate) held: HashMap<String, HeldRun>,
    /// Since when it has been heard without a gap.
    pub(crate) since: Instant,
    pub(crate) last: Instant,
}

/// A second node calls itself by this one's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namesake {
    pub(crate) url: String,
    /// Both have only begun, and the other one is to give way.
    pub(crate) yields: bool,
}

#[derive(Debug)]
pub(crate) struct Nodes {
    me: String,
    incarnation: u64,
    dead_after: Duration,
    peers: BTreeMap<String, Peer>,
    /// Since when this node has heard itself without a gap, and when last.
    own: Option<(Instant, Instant)>,
    namesake: Option<Namesake>,
}

impl Nodes {
    pub(crate) fn new(me: String, incarnation: u64, dead_after: Duration) -> Self {
        Self { me, incarnation, dead_after, peers: BTreeMap::new(), own: None, namesake: None }
    }

    pub(crate) fn heard(&mut self, beat: Beat, now: Instant) {
        if beat.node == self.me {
            if beat.incarnation == self.incarnation {
                let since = self.own.filter(|(_, last)| now - *last < self.dead_after);
                self.own = Some((since.map_or(now, |(since, _)| since), now));
            } else if !beat.leaving {
                let yields = beat.joining && beat.incarnation > self.incarnation;
                self.namesake = Some(Namesake { url: beat.url, yields });
            }
            return;
        }
        if beat.joining {
            return;
        }
        if beat.leaving {
            self.peers.remove(&beat.node);
            return;
        }
        let known = self
            .peers
            .get(&beat.node)
            .filter(|peer| peer.beat.incarnation == beat.incarnation && now - peer.last < self.dead_after);
        let since = known.map_or(now, |peer| peer.since);
        // What is no name was not said by a node of ours.
        if NodeName::try_from(beat.node.as_str()).is_ok() {
            let held = beat.runs.iter().map(|held| (held.run.clone(), held.clone())).collect();
            self.peers.insert(beat.node.clone(), Peer { beat, held, since, last: now });
        }
        self.peers.retain(|_, peer| now.saturating_duration_since(peer.last) < FORGOTTEN_AFTER);
    }

    /// The others that are alive.
    pub(crate) fn alive(&self, now: Instant) -> impl Iterator<Item = &Peer> {
        self.peers.values().filter(move |peer| now.saturating_duration_since(peer.last) < self.dead_after)
    }

    /// All others that were ever heard and have not left, with those that are dead.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    pub(crate) fn is_alive(&self, peer: &Peer, now: Instant) -> bool {
        now.saturating_duration_since(peer.last) < self.dead_after
    }

    /// Whether what this node believes of the others can be relied on: it has heard itself for long enough to have
    /// heard everybody else.
    pub(crate) fn hears(&self, now: Instant) -> bool {
        self.own.is_some_and(|(since, last)| {
            now.saturating_duration_since(last) < self.dead_after
                && now.saturating_duration_since(since) >= self.dead_after
        })
    }

    /// Whoever else has this node's name, once for every time that it was heard.
    pub(crate) fn take_namesake(&mut self) -> Option<Namesake> {
        self.namesake.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> (Nodes, Instant) {
        (Nodes::new("me".to_owned(), 7, Duration::from_millis(1500)), Instant::now())
    }

    fn beat(node: &str, incarnation: u64) -> Beat {
        Beat { node: node.to_owned(), incarnation, url: format!("http://{node}"), ..Beat::default() }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn who_is_not_heard_is_dead_and_begins_anew_when_it_comes_back() {
        let (mut nodes, start) = nodes();
        nodes.heard(beat("a", 1), start);
        nodes.heard(beat("a", 1), start + ms(1000));
        assert_eq!(nodes.alive(start + ms(2400)).count(), 1);
        assert_eq!(nodes.alive(start + ms(2500)).count(), 0);
        nodes.heard(beat("a", 1), start + ms(3000));
        assert_eq!(nodes.alive(start + ms(3000)).next().unwrap().since, start + ms(3000));
        // A second start is another node, however quick it was.
        nodes.heard(beat("a", 2), start + ms(3100));
        assert_eq!(nodes.alive(start + ms(3100)).next().unwrap().since, start + ms(3100));
    }

    #[test]
    fn a_last_word_takes_effect_at_once() {
        let (mut nodes, now) = nodes();
        nodes.heard(beat("a", 1), now);
        nodes.heard(Beat { leaving: true, ..beat("a", 1) }, now);
        assert_eq!(nodes.all().count(), 0);
    }

    #[test]
    fn a_node_that_was_stopped_believes_nothing_until_it_has_listened() {
        let (mut nodes, start) = nodes();
        for at in (0..3000).step_by(300) {
            nodes.heard(beat("me", 7), start + ms(at));
            assert_eq!(nodes.hears(start + ms(at)), at >= 1500, "{at}");
        }
        // Nothing is heard for two seconds: a pause, or a broken link.
        assert!(!nodes.hears(start + ms(4700)));
        nodes.heard(beat("me", 7), start + ms(4700));
        assert!(!nodes.hears(start + ms(4700)));
        for at in (5000..6500).step_by(300) {
            nodes.heard(beat("me", 7), start + ms(at));
        }
        assert!(nodes.hears(start + ms(6300)));
    }

    #[test]
    fn of_two_that_begin_with_one_name_one_gives_way() {
        for (theirs, joining, yields) in [(9, true, true), (3, true, false), (9, false, false)] {
            let (mut nodes, now) = nodes();
            nodes.heard(Beat { joining, ..beat("me", theirs) }, now);
            assert_eq!(nodes.take_namesake().unwrap().yields, yields, "{theirs} {joining}");
            assert_eq!(nodes.all().count(), 0);
        }
    }

    #[test]
    fn names_of_nodes_are_checked() {
        for name in ["a", "gpu-17.rack_2", &"x".repeat(64)] {
            assert!(NodeName::try_from(name).is_ok(), "{name}");
        }
        for name in ["", "a b", "a/b", "ä", "a*", &"x".repeat(65)] {
            assert!(NodeName::try_from(name).is_err(), "{name}");
        }
    }
}
