//! Gets one answer out of the fleet: waits while paused, chooses a server, and asks again if that may help.

use bytes::Bytes;
use reqwest::Method;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::cancel::{Canceller, Guard};
use super::config::{Dialect, EngineConfig};
use super::fleet::{Choice, Fleet};
use super::gate::Gate;
use super::http::{Answer, Failure, Http, Wire};
use super::server::{Lease, Server};
use super::version::CurrentVersion;
use crate::generate::EngineError;

/// A server that was away answers this soon when asked how it is, or it is still away.
const TRIAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Line {
    pub(super) http: Http,
    pub(super) fleet: Fleet,
    pub(super) gate: Gate,
    pub(super) version: CurrentVersion,
    canceller: Canceller,
    dialect: Dialect,
    attempts: u32,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Tokens,
    Chat,
    Models,
}

/// Who was asked, and what was known then.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Pinned before the request was sent.
    pub(super) version: i32,
    server: Arc<Server>,
    index: usize,
    call: Call,
}

impl Origin {
    pub(super) fn url(&self) -> &str {
        match self.call {
            Call::Tokens => self.server.tokens.as_str(),
            Call::Chat => self.server.chat.as_str(),
            Call::Models => self.server.base.as_str(),
        }
    }

    /// Counts an answer that could not be used as a failure of its server.
    pub(super) fn refuse(&self, flaw: super::answer::Flaw) -> EngineError {
        let error = flaw.at(self.url());
        self.server.failed(&error, None);
        error
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) bytes: Bytes,
    pub(super) origin: Origin,
}

/// An answer that has begun. Dropped before its end, it is aborted on the server.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) answer: Answer,
    pub(super) origin: Origin,
    under_way: UnderWay,
}

/// Counts a request as under way, and aborts it unless it was answered.
#[derive(Debug)]
struct UnderWay {
    guard: Option<Guard>,
    _lease: Lease,
}

impl UnderWay {
    /// After a timeout the server still computes, and is told to stop.
    fn ended(mut self, error: Option<&EngineError>) {
        if !matches!(error, Some(EngineError::Timeout { .. }))
            && let Some(guard) = &mut self.guard
        {
            guard.answered();
        }
    }
}

impl Open {
    /// The answer came to its end, or the connection did.
    pub(super) fn ended(self, error: Option<&EngineError>) -> Origin {
        if error.is_none() {
            self.origin.server.succeeded();
        }
        self.under_way.ended(error);
        self.origin
    }

    pub(super) async fn whole(self) -> Result<Reply, (EngineError, Origin)> {
        let Self { answer, origin, under_way } = self;
        let bytes = answer.whole().await;
        under_way.ended(bytes.as_ref().err());
        match bytes {
            Ok(bytes) => {
                origin.server.succeeded();
                Ok(Reply { bytes, origin })
            }
            Err(error) => Err((error, origin)),
        }
    }
}

/// How often a request failed, and where it did last.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    failed: u32,
    failed_at: Option<usize>,
}

impl Attempts {
    /// There was an answer, or a part of one.
    pub(super) fn progressed(&mut self) {
        self.failed = 0;
    }
}

/// Names every request that is sent on behalf of one generation.
///
/// SGLang aborts every request whose name *begins* with the one it is given, so no name may begin with
/// another: they end in a number of fixed length.
#[derive(Debug)]
pub(super) struct Names {
    rid: String,
    sent: u32,
}

impl Names {
    pub(super) fn new(rid: String) -> Self {
        Self { rid, sent: 0 }
    }

    fn next(&mut self) -> String {
        let name = format!("{}-{:06}", self.rid, self.sent);
        self.sent += 1;
        name
    }
}

impl Line {
    pub(super) fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let http = Http::new(config)?;
        Ok(Self {
            canceller: Canceller::new(http.clone()),
            http,
            fleet: Fleet::new(config)?,
            gate: Gate::default(),
            version: CurrentVersion::default(),
            dialect: config.dialect,
            attempts: config.attempts,
            backoff: config.backoff(),
        })
    }

    /// `question` is given the name of the request and writes its body.
    pub(super) async fn ask(
        &self,
        call: Call,
        names: &mut Names,
        session: Option<&str>,
        question: impl Fn(&str) -> Vec<u8>,
    ) -> Result<Reply, EngineError> {
        let mut attempts = Attempts::default();
        loop {
            let open = self.open(call, Wire::Whole, names, session, &mut attempts, &question).await?;
            match open.whole().await {
                Ok(reply) => return Ok(reply),
                Err((error, origin)) => self.failed(&mut attempts, &origin, error.into()).await?,
            }
        }
    }

    /// Asks until an answer begins.
    pub(super) async fn open(
        &self,
        call: Call,
        wire: Wire,
        names: &mut Names,
        session: Option<&str>,
        attempts: &mut Attempts,
        question: impl Fn(&str) -> Vec<u8>,
    ) -> Result<Open, EngineError> {
        loop {
            let (server, index, lease) = self.place(session, attempts.failed_at).await?;
            let name = names.next();
            let body = question(&name);
            let origin = Origin { version: self.version.get(), server: Arc::clone(&server), index, call };
            let is_told = call == Call::Tokens && self.dialect == Dialect::Sglang;
            let guard = is_told.then(|| self.canceller.guard(server, name));
            let under_way = UnderWay { guard, _lease: lease };
            match self.send(&origin, body, wire).await {
                Ok(answer) => return Ok(Open { answer, origin, under_way }),
                Err(failure) => {
                    under_way.ended(Some(&failure.error));
                    self.failed(attempts, &origin, failure).await?;
                }
            }
        }
    }

    /// Counts a failure and waits before the next attempt, or gives up where that cannot help.
    pub(super) async fn failed(
        &self,
        attempts: &mut Attempts,
        origin: &Origin,
        failure: Failure,
    ) -> Result<(), EngineError> {
        let Failure { error, retry_after } = failure;
        origin.server.failed(&error, retry_after);
        attempts.failed += 1;
        attempts.failed_at = Some(origin.index);
        if attempts.failed >= self.attempts || !error.may_pass() {
            return Err(error);
        }
        let wait = self.before_next(attempts.failed, retry_after);
        tracing::debug!(%error, ?wait, attempts.failed, "an engine is asked again");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// A server to ask, which is counted as asked. Waits while paused.
    async fn place(
        &self,
        session: Option<&str>,
        mut failed_at: Option<usize>,
    ) -> Result<(Arc<Server>, usize, Lease), EngineError> {
        loop {
            self.gate.passed().await;
            let Some(Choice { server, index, trial }) = self.fleet.choose(session, failed_at) else {
                return Err(EngineError::Closed);
            };
            if let Some(trial) = trial {
                let is_back = self.is_back(&server).await;
                drop(trial);
                if !is_back {
                    failed_at = Some(index);
                    continue;
                }
            }
            // Counted before the gate is looked at again: a pause either finds this request under way, or
            // this request finds the gate closed.
            let lease = server.lease();
            if self.gate.is_open() {
                return Ok((server, index, lease));
            }
        }
    }

    /// What a server asks for counts where there is no other one to go to.
    fn before_next(&self, failed: u32, retry_after: Option<Duration>) -> Duration {
        let wait = self.backoff.after(failed);
        let is_alone = self.fleet.servers().len() == 1;
        retry_after.filter(|_| is_alone).map_or(wait, |told| told.max(wait))
    }

    async fn send(&self, origin: &Origin, body: Vec<u8>, wire: Wire) -> Result<Answer, Failure> {
        let server = &origin.server;
        server.count_request();
        match origin.call {
            Call::Models => self.http.open(Method::GET, &server.path("v1/models")?, body, wire).await,
            Call::Chat => self.http.open(Method::POST, &server.chat, body, wire).await,
            Call::Tokens => self.http.open(Method::POST, &server.tokens, body, wire).await,
        }
    }

    /// Asks a server that failed before whether it is well.
    async fn is_back(&self, server: &Server) -> bool {
        let answer = match server.path("health") {
            Ok(url) => self.http.ask(Method::GET, &url, "", TRIAL).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            // Not every server has this call; one that says so is there.
            Ok(_) | Err(Failure { error: EngineError::Refused { status: 404 | 405, .. }, .. }) => {
                server.succeeded();
                true
            }
            Err(Failure { error, retry_after }) => {
                server.failed(&error, retry_after);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_counts_where_there_is_nobody_else() {
        let minute = Some(Duration::from_secs(60));
        for (servers, told, least, most) in [(1, None, 0, 1), (1, minute, 60, 60), (2, minute, 0, 1)] {
            let urls = (0..servers).map(|at| format!("http://server{at}")).collect();
            let line = Line::new(&EngineConfig { urls, ..EngineConfig::default() }).unwrap();
            let wait = line.before_next(1, told);
            assert!((Duration::from_secs(least)..=Duration::from_secs(most)).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn no_request_has_a_name_that_another_begins_with() {
        let names: Vec<String> = ["a", "a1"]
            .into_iter()
            .flat_map(|rid| {
                let mut names = Names::new(rid.into());
                (0..20).map(move |_| names.next())
            })
            .collect();
        for (at, name) in names.iter().enumerate() {
            assert!(names.iter().enumerate().all(|(other, begins)| at == other || !begins.starts_with(name)));
        }
    }
}
