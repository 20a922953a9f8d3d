//! A reward that is a server of the user's.
//!
//! It is posted the same JSON that a command reads, and answers with a number or `{"reward": 0.5}`.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use std::time::Duration;

use super::{Judged, Reward, RewardError, reply};
use crate::http::{self, beginning, cause};

const PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub struct HttpReward {
    url: Url,
    client: Client,
    config: HttpRewardConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpRewardConfig {
    /// For each attempt.
    pub timeout: Duration,
    /// How often it is asked in all, where it cannot be reached or says that it is not well.
    pub attempts: u32,
}

impl Default for HttpRewardConfig {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), attempts: 3 }
    }
}

impl HttpReward {
    /// Fails if the URL is none, with the reason.
    pub fn new(url: &str, config: HttpRewardConfig) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("not a URL ({error}): {url}"))?;
        let client = http::client(None, |builder| builder.timeout(config.timeout));
        let client = client.map_err(|error| error.to_string())?;
        Ok(Self { url, client, config })
    }

    async fn ask(&self, judged: Judged<'_>) -> Result<f64, RewardError> {
        let body = reply::question(&judged);
        let mut pause = PAUSE;
        for _ in 1..self.config.attempts {
            match self.post(body.clone()).await {
                Err(error) if error.may_pass() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause *= 2;
        }
        self.post(body).await
    }

    async fn post(&self, body: Vec<u8>) -> Result<f64, RewardError> {
        let by = || self.url.to_string();
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                let secs = self.config.timeout.as_secs_f64();
                return RewardError::Timeout { by: by(), secs };
            }
            RewardError::Failed { by: by(), message: cause(&error) }
        };
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        if status.is_success() {
            return reply::reward(&by(), &text);
        }
        let message = format!("status {}: {}", status.as_u16(), beginning(&bytes));
        let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        Err(match may_pass {
            true => RewardError::Failed { by: by(), message },
            false => RewardError::BadData { by: by(), message },
        })
    }
}

impl Reward for HttpReward {
    fn score<'a>(&'a self, judged: Judged<'a>) -> BoxFuture<'a, Result<f64, RewardError>> {
        self.ask(judged).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Data;
    use crate::reward::tests::score;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    /// A status and a body for each request.
    type Script = &'static [(u16, &'static str)];

    /// Answers one request after the other, and returns what it was asked.
    fn serve(answers: Script) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/score", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            let mut asked = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut len = 0;
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    let line = line.trim().to_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length:") {
                        len = value.trim().parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                let mut question = vec![0; len];
                reader.read_exact(&mut question).unwrap();
                asked.push(String::from_utf8(question).unwrap());
                let len = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n");
                stream.write_all([head.as_str(), body].concat().as_bytes()).unwrap();
            }
            asked
        });
        (url, served)
    }

    #[test]
    fn the_answer_of_a_server_is_the_reward() {
        let cases: [(Script, Result<f64, &str>); 6] = [
            (&[(200, "0.5")], Ok(0.5)),
            (&[(200, r#"{"reward": 1}"#)], Ok(1.0)),
            (&[(503, "busy"), (200, "1")], Ok(1.0)),
            (&[(500, "a"), (502, "b"), (503, "c")], Err("failed: status 503: c")),
            (&[(422, "no such task")], Err("status 422: no such task")),
            (&[(200, "fine")], Err("returned fine, but must return a number")),
        ];
        for (answers, expect) in cases {
            let (url, served) = serve(answers);
            let reward = HttpReward::new(&url, HttpRewardConfig::default()).unwrap();
            let data = Data::parse(r#"{"answer": 7}"#).unwrap();
            match (score(&reward, &data, "seven"), expect) {
                (Ok(reward), Ok(expect)) => assert_eq!(reward, expect),
                (Err(error), Err(expect)) => {
                    let error = error.to_string();
                    assert!(error.contains(expect) && error.contains(&url), "{error}");
                }
                (found, expect) => panic!("{found:?}, not {expect:?}"),
            }
            let asked = served.join().unwrap();
            assert_eq!(asked.len(), answers.len());
            assert!(asked[0].contains(r#""completion":"seven""#), "{}", asked[0]);
        }
    }

    #[test]
    fn a_server_that_is_not_there_may_be_there_later() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = HttpRewardConfig { attempts: 1, ..HttpRewardConfig::default() };
        let reward = HttpReward::new(&format!("http://{closed}/"), config).unwrap();
        let error = score(&reward, &Data::parse("{}").unwrap(), "").unwrap_err();
        assert!(error.may_pass() && error.to_string().contains("refused"), "{error}");
        assert!(HttpReward::new("nowhere", config).unwrap_err().contains("not a URL"));
    }
}
