//! The nodes of a cluster and what each owns, as `GET /api/nodes` says it.

use serde_json::Value;
use std::fmt::Write;

use crate::terminal::Table;

#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// Runs that nobody owns.
    orphans: Vec<String>,
}

#[derive(Clone, Debug)]
struct Node {
    name: String,
    url: String,
    is_alive: bool,
    is_asked: bool,
    heard_secs_ago: f64,
    runs: Vec<String>,
}

impl Nodes {
    /// Nothing for a server that is by itself: there is nothing to tell.
    pub(super) fn parse(answer: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let listed = answer.get("nodes")?.as_array()?;
        let is_clustered = answer.get("clustered").and_then(Value::as_bool).unwrap_or(false);
        if !is_clustered && listed.len() < 2 {
            return None;
        }
        let node = |node: &Value| {
            let runs = node.get("runs")?.as_array()?;
            Some(Node {
                name: text(node, "node")?,
                url: text(node, "url")?,
                is_alive: node.get("alive")?.as_bool()?,
                is_asked: node.get("this")?.as_bool()?,
                heard_secs_ago: node.get("heard_ms_ago")?.as_f64()? / 1000.0,
                runs: runs.iter().filter_map(|run| text(run, "run")).collect(),
            })
        };
        let is_orphan = |run: &&Value| run.get("owner").is_some_and(Value::is_null);
        let runs = answer.get("runs")?.as_array()?;
        Some(Self {
            nodes: listed.iter().filter_map(node).collect(),
            orphans: runs.iter().filter(is_orphan).filter_map(|run| text(run, "run")).collect(),
        })
    }

    pub(super) fn table(&self) -> String {
        let mut table = Table::new(&["node", "address", "state", "runs"]);
        for node in &self.nodes {
            let state = match (node.is_alive, node.is_asked) {
                (true, true) => "alive, asked".to_owned(),
                (true, false) => "alive".to_owned(),
                (false, _) => format!("not heard for {:.0} s", node.heard_secs_ago),
            };
            let runs = if node.runs.is_empty() { "-".to_owned() } else { node.runs.join(", ") };
            table.push(vec![node.name.clone(), node.url.clone(), state, runs]);
        }
        let mut text = table.to_string();
        if !self.orphans.is_empty() {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "without an owner: {}", self.orphans.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_by_itself_has_no_nodes_to_show() {
        let alone = json!({"clustered": false, "nodes": [{"node": "a"}], "runs": []});
        assert!(Nodes::parse(&alone).is_none());
    }

    #[test]
    fn nodes_show_what_they_own_and_who_is_gone() {
        let answer = json!({
            "node": "a", "clustered": true,
            "nodes": [
                {"node": "a", "url": "http://a:1", "alive": true, "this": true, "heard_ms_ago": 0,
                 "runs": [{"run": "default", "epoch": 2}, {"run": "x", "epoch": 1}]},
                {"node": "b", "url": "http://b:1", "alive": false, "this": false, "heard_ms_ago": 4200, "runs": []},
            ],
            "runs": [{"run": "default", "owner": "a"}, {"run": "x", "owner": "a"}, {"run": "y", "owner": null}],
        });
        let table = Nodes::parse(&answer).unwrap().table();
        let words: Vec<String> =
            table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            words,
            [
                "node address state runs",
                "a http://a:1 alive, asked default, x",
                "b http://b:1 not heard for 4 s -",
                "without an owner: y"
            ]
        );
    }
}
