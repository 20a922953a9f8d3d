//! Finds fields under the names that different writers give them.

use super::json::{Node, Said};
use super::summary::number;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        text.parse().map(Number::Int).ok().or_else(|| text.parse().map(Number::Float).ok())
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
        }
    }
}

/// Where a row keeps its fields.
#[derive(Debug)]
pub(crate) struct Fields<'t> {
    row: Node<'t>,
    /// The most telling first.
    homes: Vec<Node<'t>>,
    /// Something was not as the format says.
    pub is_odd: bool,
}

/// A reward of several parts has its total under one of these names. Where there is none there is no reward: a mean
/// or a sum would be a number that nobody trained on. The parts are there in any case, as `reward.<part>`.
const TOTALS: [&str; 4] = ["score", "reward", "total", "overall"];
pub(crate) const REWARDS: [&str; 2] = ["reward", "score"];
/// Objects whose fields count as the row's own, after those that are.
pub(crate) const HOMES: [&str; 4] = ["attributes", "extra_info", "metadata", "info"];

impl<'t> Fields<'t> {
    pub(crate) fn new(row: Node<'t>) -> Self {
        let home = |name: &&str| row.get(name).filter(|node| node.is_object());
        let mut homes: Vec<_> = home(&"attributes").into_iter().collect();
        homes.push(row);
        homes.extend(HOMES.iter().skip(1).filter_map(home));
        Self { row, homes, is_odd: false }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.row.get(name).is_some()
    }

    /// The first that is there and says something.
    pub(crate) fn node(&self, names: &[&str]) -> Option<Node<'t>> {
        let all = names.iter().flat_map(|name| self.homes.iter().map(move |home| home.get(name)));
        all.flatten().find(|node| !node.is_null())
    }

    pub(crate) fn text(&mut self, names: &[&str]) -> Option<String> {
        let node = self.node(names)?;
        match node.said() {
            Said::Str(text) => Some(text.to_owned()),
            Said::Int(int) => Some(int.to_string()),
            Said::Bool(_) | Said::UInt(_) | Said::Float(_) => Some(node.to_value().to_string()),
            Said::Null | Said::List | Said::Object => {
                self.is_odd = true;
                None
            }
        }
    }

    pub(crate) fn int(&mut self, names: &[&str]) -> Option<i64> {
        let node = self.node(names)?;
        let number = number(node);
        self.is_odd |= !matches!(node.said(), Said::Int(_));
        match number? {
            Number::Int(int) => Some(int),
            Number::Float(float) => float.is_finite().then_some(float as i64),
        }
    }

    pub(crate) fn float(&mut self, names: &[&str]) -> Option<f64> {
        let node = self.node(names)?;
        self.float_of(node)
    }

    fn float_of(&mut self, node: Node<'_>) -> Option<f64> {
        self.is_odd |= !matches!(node.said(), Said::Int(_) | Said::UInt(_) | Said::Float(_));
        let float = number(node)?.float();
        self.is_odd |= !float.is_finite();
        float.is_finite().then_some(float)
    }

    pub(crate) fn flag(&mut self, names: &[&str]) -> Option<bool> {
        let node = self.node(names)?;
        self.is_odd |= !matches!(node.said(), Said::Bool(_));
        match node.said() {
            Said::Bool(bool) => Some(bool),
            Said::Str(text) => Some(matches!(text.to_ascii_lowercase().as_str(), "true" | "1" | "yes")),
            _ => number(node).map(|number| number.float() != 0.0),
        }
    }

    pub(crate) fn reward(&mut self) -> Option<f64> {
        let node = self.node(&REWARDS)?;
        if !node.is_object() {
            return self.float_of(node);
        }
        let total = TOTALS.iter().find_map(|name| node.get(name));
        self.is_odd |= total.is_none();
        self.float_of(total?)
    }

    /// What a writer says about which group a rollout is of.
    pub(crate) fn told_group(&self) -> Vec<String> {
        let names = ["group_id", "group_index", "group", "round", "epoch"];
        let found = |name: &&str| self.node(&[name]).map(|node| format!("{name}={}", node.to_value()));
        names.iter().filter_map(found).collect()
    }

    /// Whether more than one version sampled it, where versions are told.
    pub(crate) fn mixed(&mut self) -> Option<bool> {
        let mut versions: Vec<i64> = Vec::new();
        let mut see = |node: Option<Node<'_>>| {
            if let Some(Said::Int(version)) = node.map(Node::said)
                && version >= 0
                && !versions.contains(&version)
            {
                versions.push(version);
            }
        };
        for name in ["head_version", "tail_version", "weight_version"] {
            see(self.node(&[name]));
        }
        for run in self.node(&["version_rle"]).into_iter().flat_map(Node::items) {
            see(run.items().next());
        }
        for segment in self.node(&["segments"]).into_iter().flat_map(Node::items) {
            see(segment.get("version"));
        }
        for version in self.node(&["versions", "weight_versions"]).into_iter().flat_map(Node::items) {
            see(Some(version));
        }
        (!versions.is_empty()).then_some(versions.len() > 1)
    }

    pub(crate) fn last_stop(&self) -> Option<String> {
        let segment = self.node(&["segments"])?.items().last()?;
        segment.get("stop_reason").and_then(Node::str).map(str::to_owned)
    }

    /// Sampled ones.
    pub(crate) fn tokens(&mut self) -> Option<i64> {
        let told = ["response_length", "completion_tokens", "response_tokens_count", "num_tokens", "tokens"];
        for name in told {
            if let Some(Said::Int(count)) = self.node(&[name]).map(Node::said) {
                return Some(count);
            }
        }
        for name in ["response_tokens", "output_ids", "completion_ids", "response_ids"] {
            if let Some(list) = self.node(&[name]).filter(|node| matches!(node.said(), Said::List)) {
                return Some(list.items().count() as i64);
            }
        }
        match (self.node(&["seqlen"]).map(Node::said), self.node(&["prompt_len"]).map(Node::said)) {
            (Some(Said::Int(all)), Some(Said::Int(prompt))) => Some(all - prompt),
            _ => None,
        }
    }
}
