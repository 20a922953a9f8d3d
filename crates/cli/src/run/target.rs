//! Where rollouts go, and which of them are there.

use anyhow::{Context, Result};
use rollyard_engine::group::Incomplete;
use rollyard_engine::sink::{Archive, ArchiveSettings, Dump, DumpSettings, Naming, Past, Sink, YardSink};
use rollyard_engine::yard::{YardClient, YardSettings};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::arguments::Arguments;
use super::past;
use super::prompts::Prompt;
use crate::model;
use crate::say;

/// The yard of this machine.
const LOCAL_YARD: &str = "http://127.0.0.1:8889";
const DEFAULT_RUN: &str = "default";

/// A server that is restarted is waited for so long.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) enum Target {
    Folder { archive: Arc<Archive>, past: Past, dump: Option<Arc<Dump>>, path: PathBuf },
    Yard { sink: Arc<YardSink>, naming: Naming, url: String },
}

impl Target {
    pub(super) async fn open(arguments: &Arguments) -> Result<Self> {
        let identity = arguments.identity();
        let naming = Naming::new(&identity.to_string());
        if let Some((url, run)) = yard(&arguments.out) {
            let settings = YardSettings {
                url: url.clone(),
                run: run.clone(),
                token: arguments.token.clone(),
                patience: PATIENCE,
            };
            let config = json!({"group_size": arguments.group_size});
            let sink = YardSink::open(YardClient::new(settings)?, naming.clone(), &config).await?;
            let sink = Arc::new(sink);
            return Ok(Self::Yard { sink, naming, url: format!("{url}/runs/{run}") });
        }
        let dir = Path::new(&arguments.out);
        fs::create_dir_all(dir).with_context(|| format!("cannot make the folder: {}", dir.display()))?;
        let path = dir.join("rollouts.jsonl");
        let experiment = arguments.name.clone();
        let settings = ArchiveSettings { naming, experiment: experiment.clone(), tokens: true };
        let (archive, past) = Archive::open(&path, settings)?;
        past::claim(&dir.join("run.json"), &identity, !past.is_empty())?;
        if past.cut_bytes > 0 {
            say(&format!("rollyard: the last prompt was torn by a crash; cut {} bytes off", past.cut_bytes));
        }
        let tokenizer = || arguments.engine.model.as_deref().map(model::load).transpose();
        let dump = match arguments.dump {
            false => None,
            true => Some(Arc::new(Dump::new(DumpSettings {
                fileroot: dir.join("dump"),
                experiment,
                trial: format!("seed-{}", arguments.sampling.seed),
                tokenizer: tokenizer()?.map(Arc::new),
                tokens: true,
            }))),
        };
        Ok(Self::Folder { archive: Arc::new(archive), past, dump, path })
    }

    /// The prompts that are still to be run.
    pub(super) async fn missing(&self, prompts: Vec<Prompt>, arguments: &Arguments) -> Result<Vec<Prompt>> {
        match self {
            Self::Folder { past, .. } => {
                Ok(prompts.into_iter().filter(|prompt| !past.is_done(prompt.number)).collect())
            }
            Self::Yard { sink, naming, .. } => {
                // As many as made the group worth keeping; one that was replaced has a later place.
                let size = arguments.group_size.get();
                let (places, needed) = match arguments.incomplete {
                    Incomplete::Accept { at_least } => (size, at_least.min(size)),
                    Incomplete::Replace => (2 * size, size),
                    Incomplete::Wait | Incomplete::Drop => (size, size),
                };
                let uids_of = |prompt: &Prompt| -> Vec<String> {
                    (0..places).map(|nth| naming.uid(prompt.number, &prompt.data, nth, 0)).collect()
                };
                let uids: Vec<String> = prompts.iter().flat_map(uids_of).collect();
                let known = sink.client().known(&uids).await?;
                let there =
                    |prompt: &Prompt| uids_of(prompt).iter().filter(|uid| known.contains(*uid)).count();
                Ok(prompts.into_iter().filter(|prompt| there(prompt) < needed as usize).collect())
            }
        }
    }

    pub(super) fn past(&self) -> Option<&Past> {
        match self {
            Self::Folder { past, .. } => Some(past),
            Self::Yard { .. } => None,
        }
    }

    pub(super) fn sinks(&self) -> Vec<Arc<dyn Sink>> {
        match self {
            Self::Folder { archive, dump, .. } => {
                let dump = dump.iter().map(|dump| Arc::clone(dump) as Arc<dyn Sink>);
                dump.chain([Arc::clone(archive) as Arc<dyn Sink>]).collect()
            }
            Self::Yard { sink, .. } => vec![Arc::clone(sink) as _],
        }
    }

    /// What to look at afterwards.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Folder { path, .. } => path.display().to_string(),
            Self::Yard { url, .. } => url.clone(),
        }
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        match self {
            Self::Folder { archive, .. } => Ok(archive.sync()?),
            Self::Yard { .. } => Ok(()),
        }
    }
}

/// The server and the run, if a yard is meant.
fn yard(out: &str) -> Option<(String, String)> {
    if out == "yard" {
        return Some((LOCAL_YARD.to_owned(), DEFAULT_RUN.to_owned()));
    }
    if !(out.starts_with("http://") || out.starts_with("https://")) {
        return None;
    }
    let out = out.trim_end_matches('/');
    let (url, run) = out.split_once("/runs/").unwrap_or((out, DEFAULT_RUN));
    Some((url.to_owned(), run.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yard_is_named_by_its_address() {
        for (out, expected) in [
            ("yard", Some(("http://127.0.0.1:8889", "default"))),
            ("http://h:1", Some(("http://h:1", "default"))),
            ("http://h:1/", Some(("http://h:1", "default"))),
            ("https://h/runs/exp-7", Some(("https://h", "exp-7"))),
            ("yards", None),
            ("runs/exp", None),
        ] {
            let expected = expected.map(|(url, run)| (url.to_owned(), run.to_owned()));
            assert_eq!(yard(out), expected, "{out}");
        }
    }
}
