//! Fills a run on JetStream and goes without a word, as an owner that is killed does.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use clap::Args;
use rollyard_core::ids::RunName;
use rollyard_core::run_config::RunConfig;
use rollyard_core::wire::item;
use rollyard_store::log::jetstream::{Connection, Settings};
use rollyard_store::yard::{Submission, open_on};
use tokio::runtime::Runtime;

use super::yard::GROUP;

/// Rollouts that are admitted at once.
const AT_ONCE: u64 = 2_000;
/// Of the eight of a group, so many are there: all of it is held, and nothing is ready.
const HELD_PER_INSTANCE: u64 = 5;

#[derive(Debug, Args)]
pub(crate) struct Fill {
    /// NATS servers.
    servers: String,
    run: String,
    items: u64,
}

impl Fill {
    pub(crate) fn run(&self) -> Result<()> {
        let connection = Connection::open(Settings::new(&self.servers))?;
        let run = RunName::try_from(self.run.as_str())?;
        let group_size = u32::try_from(GROUP)?.try_into()?;
        let config = RunConfig { group_size, group_timeout_seconds: 1e6, ..RunConfig::default() };
        let opener = connection.opener(&run, "filler", "http://127.0.0.1:1");
        let yard = open_on(&run, &config, &mut |_, _| {}, move || opener.open())?;
        let runtime = Runtime::new()?;
        for first in (0..self.items).step_by(usize::try_from(AT_ONCE)?) {
            let some = (first..self.items.min(first + AT_ONCE)).map(submission).collect::<Result<_>>()?;
            let admitted = runtime.block_on(yard.admit(some))?;
            let refused = admitted.iter().find_map(|admission| admission.as_ref().err());
            ensure!(refused.is_none(), "a rollout was refused: {refused:?}");
        }
        let held = runtime.block_on(yard.ask(|ledger| ledger.books().held))?;
        ensure!(held == self.items, "{} rollouts were admitted, and {held} are held", self.items);
        // Whoever closes a run leaves a snapshot.
        std::process::exit(0)
    }
}

fn submission(number: u64) -> Result<Submission> {
    let (instance, reward) = (number / HELD_PER_INSTANCE, (number * 37 % 101) as f64 / 100.0);
    let text = format!(
        r#"{{"uid":"u{number}","instance_id":"i{instance}","messages":[{{"role":"assistant","content":"{number} is the answer"}}],"reward":{reward}}}"#
    );
    let decoded = item::decode(text.as_bytes()).context("the item is as items are")?;
    Ok(Submission::new(decoded, Bytes::from(text)))
}
