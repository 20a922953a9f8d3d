//! Picks each setting from the first place that has it, and makes of them what the server takes.

use rollyard_core::run_config::{ConfigError, RunConfig};
use rollyard_server::{CompressAnswers, Grader};
use rollyard_store::archive::{ArchiveSettings, Format, host_name};
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

use super::cluster::{ClusterServing, host_of};
use super::table::{Section, Setting, settings};
use super::{GatewayServing, SettingsError, Sources};

/// A setting with the value it has, and where that comes from.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) setting: Setting,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment,
    File(PathBuf),
    /// Another setting brings it.
    Follows(&'static str),
    Default,
}

impl Resolved {
    /// The place as its user would find it.
    pub(crate) fn origin_name(&self) -> String {
        match &self.origin {
            Origin::Flag => format!("--{}", self.setting.flag()),
            Origin::Environment => self.setting.variable(),
            Origin::File(path) => path.display().to_string(),
            Origin::Follows(why) => (*why).to_owned(),
            Origin::Default => "default".to_owned(),
        }
    }

    pub(super) fn invalid(&self, expected: &str) -> SettingsError {
        SettingsError::Invalid {
            name: self.setting.name.to_owned(),
            value: self.value.to_string(),
            expected: expected.to_owned(),
            origin: self.origin_name(),
        }
    }
}

/// All that `rollyard serve` needs to know.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) log_level: LevelFilter,
    pub(crate) server: rollyard_server::Settings,
    /// The folder of a model; its tokenizer is loaded when it is needed.
    pub(crate) tokenizer: Option<PathBuf>,
    /// Whom agents ask through this server, if they do.
    pub(crate) gateway: Option<GatewayServing>,
    /// The nodes that share its runs, if it is one of many.
    pub(crate) cluster: Option<ClusterServing>,
    /// Where rollouts are kept, if anywhere.
    pub(crate) archive: Option<ArchiveSettings>,
    /// The knobs that were given; the default run keeps its own where none was.
    pub(crate) knobs: Map<String, Value>,
    /// The same once more, for showing.
    pub(crate) resolved: Vec<Resolved>,
}

impl Serving {
    pub(crate) fn resolve(sources: &Sources) -> Result<Self, SettingsError> {
        let mut picked = Picked(settings().into_iter().map(|setting| pick(setting, sources)).collect());
        picked.settle_token()?;
        picked.follow_task_type()?;
        let knobs = picked.knobs()?;
        let listen = picked.listen()?;
        let mut server = picked.server()?;
        let cluster = picked.cluster(listen)?;
        let advertised = cluster.as_ref().and_then(|cluster| cluster.advertise.as_deref());
        // What the other nodes call us is a name of ours.
        server.hosts.extend(advertised.and_then(|url| host_of(url.split_once("://")?.1)).map(str::to_owned));
        if !listen.ip().is_loopback() && server.token.is_none() {
            return Err(SettingsError::NeedsToken { listen });
        }
        Ok(Self {
            listen,
            data: PathBuf::from(picked.text("data")?),
            log_level: picked.log_level()?,
            archive: picked.archive()?,
            cluster,
            gateway: picked.gateway()?,
            tokenizer: picked.folder("tokenizer")?,
            server,
            knobs,
            resolved: picked.0,
        })
    }
}

fn pick(setting: Setting, sources: &Sources) -> Resolved {
    let file = Origin::File(sources.path.clone().unwrap_or_default());
    let places =
        [(&sources.flags, Origin::Flag), (&sources.environment, Origin::Environment), (&sources.file, file)];
    for (given, origin) in places {
        if let Some(value) = given.get(setting.name) {
            return Resolved { value: value.clone(), origin, setting };
        }
    }
    Resolved { value: setting.default.clone(), origin: Origin::Default, setting }
}

pub(super) struct Picked(Vec<Resolved>);

impl Picked {
    pub(super) fn get(&self, name: &str) -> &Resolved {
        let found = self.0.iter().find(|resolved| resolved.setting.name == name);
        found.expect("only settings of the table are asked for")
    }

    fn set(&mut self, name: &str, value: Value, origin: Origin) {
        if let Some(resolved) = self.0.iter_mut().find(|resolved| resolved.setting.name == name) {
            (resolved.value, resolved.origin) = (value, origin);
        }
    }

    /// A token and a token file are two ways to give one thing: the nearer place wins.
    fn settle_token(&mut self) -> Result<(), SettingsError> {
        let rank = |origin: &Origin| match origin {
            Origin::Flag => 3,
            Origin::Environment => 2,
            Origin::File(_) => 1,
            Origin::Follows(_) | Origin::Default => 0,
        };
        let (token, file) = (self.get("token"), self.get("token_file"));
        match rank(&token.origin).cmp(&rank(&file.origin)) {
            std::cmp::Ordering::Equal if token.origin == Origin::Default => {}
            std::cmp::Ordering::Equal => {
                let origin = match &token.origin {
                    Origin::Flag => "flags".to_owned(),
                    Origin::Environment => "the environment".to_owned(),
                    _ => token.origin_name(),
                };
                return Err(SettingsError::TwoTokens { origin });
            }
            std::cmp::Ordering::Greater => self.set("token_file", Value::Null, Origin::Default),
            std::cmp::Ordering::Less => self.set("token", Value::Null, Origin::Default),
        }
        Ok(())
    }

    /// The task `math` brings its rule, as it does in `/start_rollout`.
    fn follow_task_type(&mut self) -> Result<(), SettingsError> {
        if self.text("task_type")? == "math" && self.get("validate").origin == Origin::Default {
            self.set("validate", Value::from("answered"), Origin::Follows("task_type = \"math\""));
        }
        Ok(())
    }

    fn knobs(&self) -> Result<Map<String, Value>, SettingsError> {
        let given: Map<String, Value> = self
            .0
            .iter()
            .filter(|resolved| resolved.setting.section == Section::Run && resolved.origin != Origin::Default)
            .map(|resolved| (resolved.setting.name.to_owned(), resolved.value.clone()))
            .collect();
        match RunConfig::default().patched(&given) {
            // As the run understands them: numbers that came as words are numbers.
            Ok(config) => {
                let mut understood = config.to_map();
                understood.retain(|name, _| given.contains_key(name));
                Ok(understood)
            }
            Err(ConfigError::Invalid { name, value, expected }) => {
                let origin = self.get(&name).origin_name();
                Err(SettingsError::Invalid { name, value, expected, origin })
            }
            Err(ConfigError::Unknown { name }) => unreachable!("{name} comes from the table of knobs"),
        }
    }

    fn listen(&self) -> Result<SocketAddr, SettingsError> {
        let listen = self.get("listen");
        let text = self.text("listen")?;
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let port = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let local = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        local.ok_or_else(|| listen.invalid("an address and a port, like 127.0.0.1:8889"))
    }

    fn server(&self) -> Result<rollyard_server::Settings, SettingsError> {
        let mut task_types = self.list("allow_task_type")?;
        // Naming the built-in task as the default run's does not mean that its rollouts come from outside.
        task_types.extend(Some(self.text("task_type")?).filter(|task_type| task_type != "math"));
        let is_bucket = |root: &String| root.contains("://") && !root.starts_with("file://");
        let (buckets, folders): (Vec<_>, Vec<_>) = self.list("root")?.into_iter().partition(is_bucket);
        Ok(rollyard_server::Settings {
            token: self.token()?,
            buckets,
            cache: self.optional_text("cache")?.map(PathBuf::from),
            grader: self.grader()?,
            hosts: self.list("allow_host")?,
            roots: folders.into_iter().map(PathBuf::from).collect(),
            task_types,
            generators: self.folder("generators")?,
            python: self.optional_text("python")?.map(PathBuf::from),
            generator_restarts: self.count("generator_restarts")?,
            body_bytes_max: self.size("max_body_bytes")?,
            compress_answers: self.compress_answers()?,
            ..rollyard_server::Settings::default()
        })
    }

    fn grader(&self) -> Result<Option<Grader>, SettingsError> {
        let urls = self.list("grader_url")?;
        let wrong = |url: &String| !(url.starts_with("http://") || url.starts_with("https://"));
        if urls.iter().any(wrong) {
            return Err(self.get("grader_url").invalid("a URL that begins with http:// or https://"));
        }
        let Some(first) = urls.first() else { return Ok(None) };
        let grader = Grader::of(first.clone());
        let (key, model) = (self.optional_text("grader_key")?, self.optional_text("grader_model")?);
        Ok(Some(Grader { urls, key, model, ..grader }))
    }

    fn archive(&self) -> Result<Option<ArchiveSettings>, SettingsError> {
        const PLACE: &str = "a folder, or s3://bucket/prefix, gs://bucket/prefix or az://container/prefix";
        let formats = match self.text("archive_format")?.as_str() {
            "jsonl" => vec![Format::Jsonl],
            "parquet" => vec![Format::Parquet],
            "both" => vec![Format::Jsonl, Format::Parquet],
            _ => return Err(self.get("archive_format").invalid("\"jsonl\", \"parquet\" or \"both\"")),
        };
        let number = |name: &str, expected: &str| -> Result<Option<f64>, SettingsError> {
            let resolved = self.get(name);
            let number = match &resolved.value {
                Value::Null => return Ok(None),
                Value::String(text) => text.trim().parse().ok(),
                value => value.as_f64(),
            };
            let fits = number.filter(|number| (1e-3..=1e9).contains(number));
            fits.map(Some).ok_or_else(|| resolved.invalid(expected))
        };
        let roll_mb = number("archive_roll_mb", "a number of megabytes above 0")?;
        let roll_secs = number("archive_roll_seconds", "a number of seconds above 0")?;
        let with_tokens = self.flag("archive_tokens")?;
        let worker = self.optional_text("archive_worker")?;
        if worker.as_deref().is_some_and(|worker| worker.trim().is_empty()) {
            return Err(self.get("archive_worker").invalid("a name"));
        }
        let Some(place) = self.optional_text("archive")? else { return Ok(None) };
        let scheme = place.split_once("://").map(|(scheme, _)| scheme);
        let is_known = scheme.is_none_or(|scheme| ["s3", "gs", "az", "file"].contains(&scheme));
        if place.trim().is_empty() || !is_known {
            return Err(self.get("archive").invalid(PLACE));
        }
        Ok(Some(ArchiveSettings {
            place,
            formats,
            with_tokens,
            roll_bytes: roll_mb.map(|mb| (mb * 1e6) as u64),
            roll_after: roll_secs.map(Duration::from_secs_f64),
            worker: worker.unwrap_or_else(host_name),
        }))
    }

    fn flag(&self, name: &str) -> Result<bool, SettingsError> {
        let resolved = self.get(name);
        match &resolved.value {
            Value::Bool(truth) => Ok(*truth),
            Value::String(text) if text == "true" => Ok(true),
            Value::String(text) if text == "false" => Ok(false),
            _ => Err(resolved.invalid("true or false")),
        }
    }

    fn token(&self) -> Result<Option<String>, SettingsError> {
        let (given, name) = (self.get("token"), "token");
        let token = if let Some(path) = self.optional_text("token_file")? {
            let path = PathBuf::from(path);
            let read = std::fs::read_to_string(&path);
            Some(read.map_err(|cause| SettingsError::TokenFile { path, cause })?.trim().to_owned())
        } else {
            self.optional_text(name)?
        };
        // What a header cannot carry could never be sent back to us.
        if token
            .as_ref()
            .is_some_and(|token| token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()))
        {
            let origin = match given.origin {
                Origin::Default => self.get("token_file").origin_name(),
                _ => given.origin_name(),
            };
            return Err(SettingsError::Invalid {
                name: name.to_owned(),
                value: "\"***\"".to_owned(),
                expected: "one or more letters, digits and signs of ASCII, without spaces".to_owned(),
                origin,
            });
        }
        Ok(token)
    }

    fn compress_answers(&self) -> Result<CompressAnswers, SettingsError> {
        match self.text("compress_answers")?.as_str() {
            "remote" => Ok(CompressAnswers::Remote),
            "always" => Ok(CompressAnswers::Always),
            "never" => Ok(CompressAnswers::Never),
            _ => Err(self.get("compress_answers").invalid("\"remote\", \"always\" or \"never\"")),
        }
    }

    fn log_level(&self) -> Result<LevelFilter, SettingsError> {
        let level = self.text("log_level")?.parse();
        level.map_err(|_| {
            self.get("log_level").invalid("\"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\"")
        })
    }

    pub(super) fn size(&self, name: &str) -> Result<usize, SettingsError> {
        let resolved = self.get(name);
        let size = match &resolved.value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_u64().and_then(|size| usize::try_from(size).ok()),
        };
        size.filter(|size| *size > 0).ok_or_else(|| resolved.invalid("a number of bytes above 0"))
    }

    pub(super) fn count(&self, name: &str) -> Result<u32, SettingsError> {
        let resolved = self.get(name);
        let count = match &resolved.value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_u64().and_then(|count| u32::try_from(count).ok()),
        };
        count.ok_or_else(|| resolved.invalid("a whole number from 0"))
    }

    pub(super) fn optional_count(&self, name: &str) -> Result<Option<u32>, SettingsError> {
        if self.get(name).value.is_null() { Ok(None) } else { self.count(name).map(Some) }
    }

    pub(super) fn is_given(&self, name: &str) -> bool {
        !self.get(name).value.is_null()
    }

    /// A folder that is there.
    fn folder(&self, name: &str) -> Result<Option<PathBuf>, SettingsError> {
        let path = self.optional_text(name)?.map(PathBuf::from);
        match path {
            Some(path) if !path.is_dir() => Err(self.get(name).invalid("a folder that can be read")),
            path => Ok(path),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<String, SettingsError> {
        self.optional_text(name)?.ok_or_else(|| self.get(name).invalid("a text"))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, SettingsError> {
        match &self.get(name).value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(self.get(name).invalid("a text")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, SettingsError> {
        let resolved = self.get(name);
        let texts =
            |values: &Vec<Value>| values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        let list: Option<Vec<String>> = match &resolved.value {
            Value::Array(values) => texts(values),
            Value::String(text) => Some(vec![text.clone()]),
            _ => None,
        };
        list.ok_or_else(|| resolved.invalid("a list of texts"))
    }
}
