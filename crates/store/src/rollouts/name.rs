//! What a file of rollouts is called: `{micros:020}_{host}_{counter:06}.arrow`.
//!
//! Names sort by time, and no two writers make the same one: the host has the process in it, and a process
//! counts all its files.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ordered as files are read: oldest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    micros: u64,
    host: String,
    counter: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not the name of a file of rollouts")]
pub struct NotAFileName {
    name: String,
}

const ENDING: &str = ".arrow";

static FILES: AtomicU64 = AtomicU64::new(0);

impl FileName {
    /// A name of this machine and process that none of its files has had.
    pub(super) fn new(micros: u64) -> Self {
        let machine = rustix::system::uname();
        // Asked for every time: a fork is another process.
        let host = format!("{}-{}", machine.nodename().to_string_lossy(), std::process::id());
        Self { micros, host: plain(&host), counter: FILES.fetch_add(1, Ordering::Relaxed) }
    }

    /// Microseconds since 1970, or later ones where the folder had files from the future.
    pub fn micros(&self) -> u64 {
        self.micros
    }
}

/// The host in letters that every file system and URL takes as they are.
fn plain(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    host.chars().map(plain).collect()
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}_{}_{:06}{ENDING}", self.micros, self.host, self.counter)
    }
}

impl FromStr for FileName {
    type Err = NotAFileName;

    fn from_str(text: &str) -> Result<Self, NotAFileName> {
        // From both ends, since a host may have an underscore in it.
        let parse = || {
            let (micros, rest) = text.strip_suffix(ENDING)?.split_once('_')?;
            let (host, counter) = rest.rsplit_once('_')?;
            let name =
                Self { micros: micros.parse().ok()?, host: host.into(), counter: counter.parse().ok()? };
            // A number can be written in other ways; such a file is not ours.
            (name.host == plain(host) && name.to_string() == text).then_some(name)
        };
        parse().ok_or_else(|| NotAFileName { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_names() {
        let cases = [
            ("00001763251200000000_host-17_000003.arrow", true),
            ("00001763251200000000_two_words-17_000003.arrow", true),
            ("00001763251200000000_host_1000000.arrow", true),
            ("00001763251200000000__000003.arrow", true),
            (".00001763251200000000_host_000003.arrow.tmp", false),
            ("1763251200000000_host_000003.arrow", false),
            ("00001763251200000000_host_3.arrow", false),
            ("00001763251200000000_host_000003.pkl", false),
            ("00001763251200000000_000003.arrow", false),
            ("+0001763251200000000_host_000003.arrow", false),
            ("00001763251200000000_a/b_000003.arrow", false),
            ("99999999999999999999_host_000003.arrow", false),
            ("notes.arrow", false),
            ("", false),
        ];
        for (text, is_ours) in cases {
            let name = text.parse::<FileName>();
            assert_eq!(name.is_ok(), is_ours, "{text}");
            assert!(name.is_err() || name.unwrap().to_string() == text);
        }
    }

    #[test]
    fn no_two_names_are_equal_and_time_comes_first() {
        let (older, newer, same) = (FileName::new(5), FileName::new(6), FileName::new(5));
        assert!(older < newer && same < newer && older != same);
        assert_eq!(newer.to_string().parse(), Ok(newer));
    }

    #[test]
    fn a_host_of_any_letters_makes_a_name() {
        assert_eq!(plain("gpu_1/rack ü.local"), "gpu_1-rack--.local");
    }
}
