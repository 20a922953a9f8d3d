//! The folder of a demo: all that is left of it, and all that is needed to go on.
//!
//! ```text
//! plan.json             what is learnt; another plan in the same folder is refused
//! warm-up.safetensors   the weights before the first step
//! policy.safetensors    the weights now, the optimiser, and which step they are of
//! curve.jsonl           a line for every step
//! curve.svg             the same as a picture
//! yard/                 the yard's log
//! archive/demo/         every rollout and what became of it, for `rollyard view`
//! tokenizer/            what its tokens are
//! ```

use anyhow::{Context, Result, bail};
use rollyard_tiny::learn::{Plan, StepReport};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::RUN;

#[derive(Clone, Debug)]
pub(in crate::demo) struct Folder {
    path: PathBuf,
}

/// Where demos without a folder of their own go.
const BASE: &str = "rollyard-demo";

impl Folder {
    /// The folder that is named, if it belongs to this plan, or a new one.
    pub(in crate::demo) fn open(named: Option<&Path>, plan: &Plan) -> Result<Self> {
        plan.check()?;
        let path = named.map_or_else(fresh, |path| Ok(path.to_owned()))?;
        fs::create_dir_all(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        let folder = Self { path };
        let file = folder.path.join("plan.json");
        match fs::read(&file) {
            Ok(bytes) => {
                let there: Plan = serde_json::from_slice(&bytes)
                    .with_context(|| format!("this is no plan of a demo: {}", file.display()))?;
                folder.agree(plan, &there)?;
            }
            Err(_) if fs::read_dir(&folder.path)?.next().is_some() => bail!(
                "the demo wants a folder of its own, and this one has something else in it: {}",
                folder.path.display()
            ),
            Err(_) => {
                let mut text = serde_json::to_vec_pretty(plan)?;
                text.push(b'\n');
                fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        let tokenizer = folder.tokenizer();
        rollyard_tiny::tokenizer::write(&tokenizer)
            .with_context(|| format!("cannot write {}", tokenizer.display()))?;
        Ok(folder)
    }

    /// Names the first difference, which is why it cannot be gone on with.
    fn agree(&self, wanted: &Plan, there: &Plan) -> Result<()> {
        let (wanted, there) = (serde_json::to_value(wanted)?, serde_json::to_value(there)?);
        let fields = there.as_object().into_iter().flatten();
        for (field, there) in fields {
            let here = wanted.get(field).unwrap_or(&serde_json::Value::Null);
            if here != there {
                bail!(
                    "this folder has a demo with {field} {there}, but {here} is asked for; ask for the same, or name \
                     another folder with --out: {}",
                    self.path.display()
                );
            }
        }
        Ok(())
    }

    pub(in crate::demo) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::demo) fn checkpoint(&self) -> PathBuf {
        self.path.join("policy.safetensors")
    }

    pub(in crate::demo) fn warm(&self) -> PathBuf {
        self.path.join("warm-up.safetensors")
    }

    pub(in crate::demo) fn chart(&self) -> PathBuf {
        self.path.join("curve.svg")
    }

    pub(in crate::demo) fn yard(&self) -> PathBuf {
        self.path.join("yard")
    }

    pub(in crate::demo) fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Of the run.
    pub(in crate::demo) fn rollouts(&self) -> PathBuf {
        self.archive().join(RUN)
    }

    pub(in crate::demo) fn tokenizer(&self) -> PathBuf {
        self.path.join("tokenizer")
    }

    /// Every step so far. A line that a crash cut off is no step.
    pub(in crate::demo) fn curve(&self) -> Result<Vec<StepReport>> {
        let path = self.path.join("curve.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The log of steps up to a version: what came after it will come again.
    pub(in crate::demo) fn log_from(&self, version: u64) -> Result<StepLog> {
        let mut curve = self.curve()?;
        curve.retain(|report| report.step <= version);
        let path = self.path.join("curve.jsonl");
        let beside = self.path.join("curve.part");
        let mut file = File::create(&beside).with_context(|| format!("cannot write {}", beside.display()))?;
        for report in &curve {
            writeln!(file, "{}", serde_json::to_string(report)?)?;
        }
        fs::rename(&beside, &path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(StepLog { file, curve })
    }
}

/// The curve while it grows.
#[derive(Debug)]
pub(in crate::demo) struct StepLog {
    file: File,
    curve: Vec<StepReport>,
}

impl StepLog {
    pub(in crate::demo) fn is_empty(&self) -> bool {
        self.curve.is_empty()
    }

    pub(in crate::demo) fn curve(&self) -> &[StepReport] {
        &self.curve
    }

    pub(in crate::demo) fn push(&mut self, report: &StepReport) -> Result<()> {
        let line = serde_json::to_string(report)? + "\n";
        self.curve.push(report.clone());
        self.file
            .write_all(line.as_bytes())
            .context("the step cannot be written down; is there room on the disk?")
    }
}

/// A folder that nobody has, named by the time.
fn fresh() -> Result<PathBuf> {
    let now = jiff::Zoned::now().strftime("%Y-%m-%d-%H%M%S").to_string();
    let names = std::iter::once(now.clone()).chain((2..).map(|nth| format!("{now}-{nth}")));
    let paths = names.map(|name| Path::new(BASE).join(name)).take(1000);
    paths
        .into_iter()
        .find(|path| !path.exists())
        .context("there is no free name for a folder in rollyard-demo")
}
