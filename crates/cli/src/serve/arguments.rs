//! The flags of `rollyard serve`, made from the table of settings.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::settings::{Section, settings};

const AFTER_HELP: &str = "\
Every setting can also be given in the environment, as ROLLYARD_ and its name in capitals
(ROLLYARD_GROUP_SIZE=16; lists with commas), and in ./rollyard.toml or the file named by --config:

    [server]
    listen = \"127.0.0.1:8889\"
    [run]
    group_size = 16

Flags win over the environment, the environment over the file, the file over defaults.

Example:
    rollyard serve --data /fast-disk/yard --group-size 16 --group-timeout-seconds 600

With generators of your own, whose input files are in /data:
    rollyard serve --generators ./generators --python .venv/bin/python --root /data

As one of many nodes, on NATS servers that keep three copies of every run:
    rollyard serve --log nats://a:4222,nats://b:4222,nats://c:4222 --log-replicas 3 \\
        --listen 10.0.0.7:8889 --token-file ./token";

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(super) flags: BTreeMap<&'static str, Value>,
    pub(super) config: Option<PathBuf>,
    pub(super) show_config: bool,
    /// For whoever starts a server as a part of something else, like the demo.
    pub(super) ends_with_parent: bool,
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let config =
            Arg::new("config").long("config").value_name("FILE").value_parser(value_parser!(PathBuf));
        let show = Arg::new("show_config").long("show-config").action(ArgAction::SetTrue);
        let ends = Arg::new("ends_with_parent").long("ends-with-parent").action(ArgAction::SetTrue);
        command
            .about("Run the buffer: take rollouts in, hand groups out")
            .after_help(AFTER_HELP)
            .args(flags())
            .arg(config.help("Settings file [default: ./rollyard.toml, if there is one]"))
            .arg(show.help("Print the settings and where each comes from, and exit"))
            .arg(ends.hide(true))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flags() -> impl Iterator<Item = Arg> {
    settings().into_iter().map(|setting| {
        let shown = match &setting.default {
            Value::Null => None,
            Value::Array(values) => values.first().and_then(Value::as_str).map(str::to_owned),
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        let more = if setting.is_list() { "; may be repeated" } else { "" };
        let default = shown.map(|shown| format!(" [default: {shown}]")).unwrap_or_default();
        let heading = match setting.section {
            Section::Server => "Server",
            Section::Run => "Knobs of the default run",
        };
        Arg::new(setting.name)
            .long(setting.flag())
            .value_name(setting.value_name)
            .help(format!("{}{more}{default}", setting.help))
            .help_heading(heading)
            .action(if setting.is_list() { ArgAction::Append } else { ArgAction::Set })
            .allow_negative_numbers(true)
            .value_parser(ValueParser::string())
    })
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = BTreeMap::new();
        for setting in settings() {
            let Some(mut given) = matches.get_many::<String>(setting.name) else { continue };
            let value = if setting.is_list() {
                given.map(|text| Value::from(text.as_str())).collect()
            } else {
                given.next().map_or(Value::Null, |text| Value::from(text.as_str()))
            };
            flags.insert(setting.name, value);
        }
        let config = matches.get_one("config").cloned();
        Ok(Self {
            flags,
            config,
            show_config: matches.get_flag("show_config"),
            ends_with_parent: matches.get_flag("ends_with_parent"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
