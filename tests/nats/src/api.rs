//! The calls of a node that the fault tests make.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::check::{Books, Fate};
use crate::history::{Outcome, Row};
use crate::node::Address;

/// What came back.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Ok(Value),
    /// A client's mistake, or a lease that has ended: asking again would not help.
    Refused(u16, Value),
    /// No answer, or a server's trouble.
    Unknown(String),
}

impl Answer {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Ok(_) => Outcome::Ok,
            Self::Refused(..) => Outcome::Refused,
            Self::Unknown(_) => Outcome::Unknown,
        }
    }
}

/// Asks any node about one run.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    agent: ureq::Agent,
    run: String,
}

impl Api {
    pub(crate) fn new(run: &str, patience: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(patience))
            .proxy(None)
            .build()
            .into();
        Self { agent, run: run.to_owned() }
    }

    fn path(&self, node: &Address, path: &str) -> String {
        format!("{}/api/runs/{}{path}", node.url(), self.run)
    }

    fn get(&self, url: &str) -> Answer {
        read(self.agent.get(url).call())
    }

    fn post(&self, url: &str, body: &str) -> Answer {
        read(self.agent.post(url).header("content-type", "application/json").send(body))
    }

    /// One line for each rollout; refused unless all were taken.
    pub(crate) fn write_many(&self, node: &Address, lines: &[String]) -> Answer {
        match self.post(&self.path(node, "/rollouts"), &lines.join("\n")) {
            Answer::Ok(written) if written.get("rejected_total").and_then(Value::as_u64) != Some(0) => {
                // A line may have been refused because the run was moving: some of them may be there.
                Answer::Unknown(written.to_string())
            }
            answer => answer,
        }
    }

    /// By slime's call.
    pub(crate) fn write_one(&self, node: &Address, line: &str) -> Answer {
        self.post(&format!("{}/runs/{}/buffer/write", node.url(), self.run), line)
    }

    /// By slime's call: acked for the client.
    pub(crate) fn read(&self, node: &Address, rows: u64) -> Answer {
        let ask = json!({"batch_size": rows, "wait": true, "timeout": 0.3});
        self.post(&format!("{}/runs/{}/buffer/read", node.url(), self.run), &ask.to_string())
    }

    pub(crate) fn lease(&self, node: &Address, groups: Option<u64>, term: Duration) -> Answer {
        let mut ask = json!({"wait_seconds": 0.3, "lease_seconds": term.as_secs_f64(), "reader": "faults"});
        if let (Some(groups), Some(ask)) = (groups, ask.as_object_mut()) {
            ask.insert("groups".to_owned(), groups.into());
        }
        self.post(&self.path(node, "/lease"), &ask.to_string())
    }

    pub(crate) fn ack(&self, node: &Address, lease: u64) -> Answer {
        self.post(&self.path(node, &format!("/leases/{lease}/ack")), "")
    }

    pub(crate) fn give_back(&self, node: &Address, lease: u64) -> Answer {
        self.post(&self.path(node, &format!("/leases/{lease}/return")), "")
    }

    /// Which of these are known; nothing if it does not say.
    pub(crate) fn known(&self, node: &Address, uids: &[String]) -> Option<Vec<String>> {
        let Answer::Ok(answer) = self.post(&self.path(node, "/known"), &json!({"uids": uids}).to_string())
        else {
            return None;
        };
        let known = answer.get("known")?.as_array()?;
        known.iter().map(|uid| Some(uid.as_str()?.to_owned())).collect()
    }

    /// What became of a rollout, if it is known.
    pub(crate) fn fate(&self, node: &Address, uid: &str) -> Result<Option<Fate>, String> {
        let answer = match self.get(&self.path(node, &format!("/rollouts/{uid}"))) {
            Answer::Ok(answer) => answer,
            Answer::Refused(404, error) if code(&error) == Some("rollout_unknown") => return Ok(None),
            other => return Err(format!("{other:?}")),
        };
        let lease = answer.get("lease").and_then(Value::as_u64);
        let reason = answer.get("reason").and_then(Value::as_str);
        match (answer.get("state").and_then(Value::as_str), lease, reason) {
            (Some("held"), ..) => Ok(Some(Fate::Held)),
            (Some("leased"), Some(lease), _) => Ok(Some(Fate::Leased { lease })),
            (Some("trained"), Some(lease), _) => Ok(Some(Fate::Trained { lease })),
            (Some("dropped"), _, Some(reason)) => Ok(Some(Fate::Dropped { reason: reason.to_owned() })),
            _ => Err(answer.to_string()),
        }
    }

    pub(crate) fn books(&self, node: &Address) -> Result<Books, String> {
        let Answer::Ok(answer) = self.get(&self.path(node, "/books")) else {
            return Err("no books".to_owned());
        };
        let column = |name: &str| answer.get(name).and_then(Value::as_u64).ok_or_else(|| answer.to_string());
        Ok(Books {
            admitted: column("admitted")?,
            held: column("held")?,
            leased: column("leased")?,
            trained: column("trained")?,
            dropped: column("dropped")?,
        })
    }

    /// Who owns what, as a node sees it. Nothing if it does not answer, or knows of no others.
    pub(crate) fn claims(&self, node: &Address) -> Vec<Claim> {
        let Answer::Ok(answer) = self.get(&format!("{}/api/nodes", node.url())) else { return Vec::new() };
        let mut claims = Vec::new();
        for node in answer.get("nodes").and_then(Value::as_array).into_iter().flatten() {
            let name = node.get("node").and_then(Value::as_str).unwrap_or_default();
            let is_alive = node.get("alive").and_then(Value::as_bool).unwrap_or(true);
            for owned in node.get("runs").and_then(Value::as_array).into_iter().flatten() {
                let run = owned.get("run").and_then(Value::as_str);
                let epoch = owned.get("epoch").and_then(Value::as_u64);
                if let (Some(run), Some(epoch)) = (run, epoch) {
                    claims.push(Claim { node: name.to_owned(), is_alive, run: run.to_owned(), epoch });
                }
            }
        }
        claims
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) node: String,
    pub(crate) is_alive: bool,
    pub(crate) run: String,
    pub(crate) epoch: u64,
}

fn code(answer: &Value) -> Option<&str> {
    answer.get("error")?.get("code")?.as_str()
}

fn read(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let whole = answer.and_then(|mut answer| {
        let text = answer.body_mut().with_config().limit(1 << 30).read_to_string()?;
        Ok((answer.status().as_u16(), text))
    });
    match whole {
        Err(error) => Answer::Unknown(error.to_string()),
        Ok((status, text)) => match (status, serde_json::from_str(&text)) {
            (200..300, Ok(value)) => Answer::Ok(value),
            (400..500, Ok(value)) => Answer::Refused(status, value),
            _ => Answer::Unknown(format!("{status} {text}")),
        },
    }
}

/// A rollout that says all about itself, so that whoever gets it can tell whether it is whole.
pub(crate) fn item(uid: &str, instance: &str, reward: u64) -> String {
    json!({
        "uid": uid,
        "instance_id": instance,
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": text_of(uid)}],
        "reward": reward,
        "extra_info": {},
    })
    .to_string()
}

/// Every tenth is too large to be kept among the events, and goes past the owner of the run.
fn text_of(uid: &str) -> String {
    let is_large = uid.ends_with('0');
    if is_large { format!("{uid} ").repeat(14_000) } else { format!("It is {uid}.") }
}

/// The rollouts of an answer to a lease or a read.
pub(crate) fn rows(answer: &Value) -> Vec<Row> {
    let groups = answer.get("groups").and_then(Value::as_array).into_iter().flatten();
    let leased = groups.filter_map(|group| group.get("rollouts")?.as_array()).flatten();
    let read = answer.get("data").and_then(|data| data.get("data")?.as_array()).into_iter().flatten();
    let mut rows = BTreeMap::new();
    // A group that lacks some is padded with copies of the others, which are no deliveries of their own.
    let is_copy = |row: &&Value| row.get("padded").and_then(Value::as_bool).unwrap_or(false);
    for row in leased.chain(read).filter(|row| !is_copy(row)) {
        let uid = row.get("uid").and_then(Value::as_str).unwrap_or_default();
        let text = row.get("messages").and_then(|messages| messages.get(1)?.get("content")?.as_str());
        let is_whole = text == Some(&text_of(uid));
        rows.insert(uid.to_owned(), Row { uid: uid.to_owned(), is_whole });
    }
    rows.into_values().collect()
}
