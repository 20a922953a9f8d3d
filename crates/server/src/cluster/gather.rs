//! What all nodes say of their runs, as one answer.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::forward::Here;
use super::{Cluster, Owner};
use crate::error::ApiError;

/// A node that does not say anything by then is left out.
const SAID_WITHIN: Duration = Duration::from_secs(3);

/// Nodes that were left out.
const MISSING: HeaderName = HeaderName::from_static("x-rollyard-missing");

impl Cluster {
    /// A list of runs, or an object that has one as `runs`, of this node and of all others that are alive.
    pub(super) async fn gather(&self, mut request: Request<Body>, here: Here<'_>) -> Response<Body> {
        let peers: Vec<(String, String)> = {
            let register = self.register();
            let alive = register.nodes.alive(Instant::now());
            alive.map(|peer| (peer.beat.node.clone(), peer.beat.url.clone())).collect()
        };
        if peers.is_empty() {
            return here(request).await;
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        // What is packed cannot be put together.
        request.headers_mut().remove(header::ACCEPT_ENCODING);
        let asking = peers.iter().map(async |(node, url)| (node.clone(), self.ask(url, &path).await));
        let (own, others) = tokio::join!(here(request), futures_util::future::join_all(asking));
        if !own.status().is_success() {
            return own;
        }
        let own = match own.into_body().collect().await {
            Ok(body) => parse(&body.to_bytes()),
            Err(error) => Err(error.to_string()),
        };
        let mut whole = match own {
            Ok(own) => own,
            Err(why) => {
                return ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "not_gathered", why).into_response();
            }
        };
        let mut missing = Vec::new();
        let mut said = vec![(self.node(), take_runs(&mut whole))];
        for (node, answer) in others {
            match answer {
                Ok(mut answer) => said.push((node, take_runs(&mut answer))),
                Err(why) => {
                    tracing::warn!(node, "what the node says is missing from {path}: {why}");
                    missing.push(node);
                }
            }
        }
        put_runs(&mut whole, self.merge(said));
        let mut response = axum::Json(whole).into_response();
        if let Ok(missing) = HeaderValue::from_str(&missing.join(", "))
            && !missing.is_empty()
        {
            response.headers_mut().insert(MISSING, missing);
        }
        response
    }

    async fn ask(&self, url: &str, path: &str) -> Result<Value, String> {
        let request = self.http.get(format!("{url}{path}")).headers(self.outgoing(&Default::default()));
        let answer = request.timeout(SAID_WITHIN).send().await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status()));
        }
        parse(&answer.bytes().await.map_err(|error| error.to_string())?)
    }

    /// By name; of a run that two nodes speak of, what its owner says.
    fn merge(&self, said: Vec<(String, Vec<Value>)>) -> Vec<Value> {
        let me = self.node();
        let mut runs: BTreeMap<String, (bool, Value)> = BTreeMap::new();
        for (node, answers) in said {
            for answer in answers {
                let Some(run) = answer.get("run").and_then(Value::as_str).map(str::to_owned) else {
                    continue;
                };
                let is_owner = match self.owner(&run) {
                    Some(Owner::Here) => node == me,
                    Some(Owner::There { node: owner, .. }) => node == owner,
                    _ => false,
                };
                let known = runs.get(&run).is_some_and(|(by_owner, _)| *by_owner || !is_owner);
                if !known {
                    runs.insert(run, (is_owner, answer));
                }
            }
        }
        runs.into_values().map(|(_, answer)| answer).collect()
    }
}

fn parse(bytes: &Bytes) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn runs_in(answer: &mut Value) -> Option<&mut Vec<Value>> {
    match answer {
        Value::Array(runs) => Some(runs),
        answer => answer.get_mut("runs").and_then(Value::as_array_mut),
    }
}

fn take_runs(answer: &mut Value) -> Vec<Value> {
    runs_in(answer).map(std::mem::take).unwrap_or_default()
}

fn put_runs(answer: &mut Value, runs: Vec<Value>) {
    if let Some(place) = runs_in(answer) {
        *place = runs;
    }
}
