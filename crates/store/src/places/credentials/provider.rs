//! Credentials that have to be fetched, and fetched again before they expire.

use super::profiles::Profile;
use super::surroundings::{Surroundings, read};
use jiff::Timestamp;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use serde::Deserialize;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// `credential_process` of a profile: a program that prints credentials.
#[derive(Clone, Debug)]
pub(in super::super) struct ProcessCall {
    pub(super) command: String,
    pub(super) profile: String,
}

/// A sign-on whose token was left in the cache by `aws sso login`.
#[derive(Clone, Debug)]
pub(in super::super) struct SsoCall {
    profile: String,
    start_url: String,
    account: String,
    role: String,
    endpoint: String,
    cache: PathBuf,
}

#[derive(Clone, Debug)]
pub(in super::super) enum Call {
    Process(ProcessCall),
    Sso(SsoCall),
}

/// Fetches when asked, and again shortly before the end.
#[derive(Debug)]
pub(in super::super) struct Renewed {
    call: Call,
    held: Mutex<Option<Fetched>>,
}

#[derive(Clone, Debug)]
struct Fetched {
    credential: Arc<AwsCredential>,
    expires: Option<Timestamp>,
}

/// A request must not outlive its credentials.
const RENEW_BEFORE: Duration = Duration::from_secs(300);

const CALL_TIMEOUT: Duration = Duration::from_secs(20);

impl Renewed {
    pub(in super::super) fn new(call: Call) -> Self {
        Self { call, held: Mutex::default() }
    }

    /// The credentials of now, or what to do to get some.
    pub(in super::super) async fn get(&self) -> Result<Arc<AwsCredential>, String> {
        let mut held = self.held.lock().await;
        let soon = Timestamp::now() + RENEW_BEFORE;
        if let Some(fetched) = held.as_ref().filter(|held| held.expires.is_none_or(|end| end > soon)) {
            return Ok(Arc::clone(&fetched.credential));
        }
        let fetched = match &self.call {
            Call::Process(call) => call.fetch().await?,
            Call::Sso(call) => call.fetch().await?,
        };
        Ok(Arc::clone(&held.insert(fetched).credential))
    }
}

impl CredentialProvider for Renewed {
    type Credential = AwsCredential;

    fn get_credential<'a, 'b>(
        &'a self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let failed =
            |why: String| object_store::Error::Unauthenticated { path: String::new(), source: why.into() };
        Box::pin(async move { self.get().await.map_err(failed) })
    }
}

impl ProcessCall {
    async fn fetch(&self) -> Result<Fetched, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Printed {
            access_key_id: String,
            secret_access_key: String,
            session_token: Option<String>,
            expiration: Option<String>,
        }
        let failed = |why: String| format!("the credential_process of the profile `{}` {why}", self.profile);
        let command = self.command.clone();
        let run = tokio::task::spawn_blocking(move || Command::new("sh").arg("-c").arg(command).output());
        let output = run.await.map_err(|error| failed(format!("was interrupted: {error}")))?;
        let output = output.map_err(|error| failed(format!("cannot be run: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("failed ({}): {}", output.status, said.trim())));
        }
        // What it printed may be half a secret, and the error of the parser would show it.
        let printed: Printed = serde_json::from_slice(&output.stdout)
            .map_err(|_| failed("printed no credentials in JSON".to_owned()))?;
        let credential = AwsCredential {
            key_id: printed.access_key_id,
            secret_key: printed.secret_access_key,
            token: printed.session_token,
        };
        let expires = printed.expiration.map(|end| {
            end_of(&end).ok_or_else(|| failed(format!("printed an Expiration that is no time: {end}")))
        });
        Ok(Fetched { credential: Arc::new(credential), expires: expires.transpose()? })
    }
}

impl SsoCall {
    /// Nothing if the profile does not sign on by SSO; an error as "where (what)" if it says so by half.
    pub(super) fn of(profile: &Profile, around: &Surroundings) -> Result<Option<Self>, String> {
        let session = |name: &str| profile.sso_session.get(name).map(String::as_str);
        if profile.get("sso_start_url").is_none() && profile.get("sso_session").is_none() {
            return Ok(None);
        }
        let need = |name: &str| {
            let value = profile.get(name).or_else(|| session(name)).filter(|value| !value.is_empty());
            let lack =
                || format!("the profile `{}` (it signs on by SSO, but {name} is not set)", profile.name);
            value.map(str::to_owned).ok_or_else(lack)
        };
        let region = need("sso_region")?;
        let usual = format!("https://portal.sso.{region}.amazonaws.com");
        let home = around.home.as_ref();
        let home =
            home.ok_or_else(|| format!("the profile `{}` (SSO, but HOME is not set)", profile.name))?;
        Ok(Some(Self {
            profile: profile.name.clone(),
            start_url: need("sso_start_url")?,
            account: need("sso_account_id")?,
            role: need("sso_role_name")?,
            endpoint: around.setting("AWS_ENDPOINT_URL_SSO").unwrap_or(usual),
            cache: home.join(".aws/sso/cache"),
        }))
    }

    async fn fetch(&self) -> Result<Fetched, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            role_credentials: RoleCredentials,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct RoleCredentials {
            access_key_id: String,
            secret_access_key: String,
            session_token: String,
            expiration: i64,
        }
        let token = self.token()?;
        let url = format!(
            "{}/federation/credentials?account_id={}&role_name={}",
            self.endpoint.trim_end_matches('/'),
            encode(&self.account),
            encode(&self.role)
        );
        let failed = |why: &dyn std::fmt::Display| format!("cannot sign on by SSO: {why}: {}", self.endpoint);
        let client =
            reqwest::Client::builder().timeout(CALL_TIMEOUT).build().map_err(|error| failed(&error))?;
        let answer = client.get(url).header("x-amz-sso_bearer_token", token).send().await;
        let answer = answer.map_err(|error| failed(&error.without_url()))?;
        match answer.status().as_u16() {
            200 => {}
            401 => return Err(format!("the SSO token is no longer accepted; {}", self.next_step())),
            403 => {
                let (role, account) = (&self.role, &self.account);
                return Err(format!("you may not take the role {role} in the account {account} by SSO"));
            }
            _ => return Err(failed(&answer.status())),
        }
        let body = answer.bytes().await.map_err(|error| failed(&error.without_url()))?;
        let answer: Answer =
            serde_json::from_slice(&body).map_err(|_| failed(&"the answer holds no credentials"))?;
        let of_role = answer.role_credentials;
        let credential = AwsCredential {
            key_id: of_role.access_key_id,
            secret_key: of_role.secret_access_key,
            token: Some(of_role.session_token),
        };
        let expires = Timestamp::from_millisecond(of_role.expiration).ok();
        Ok(Fetched { credential: Arc::new(credential), expires })
    }

    /// The token for our start URL that lasts longest.
    fn token(&self) -> Result<String, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cached {
            start_url: String,
            access_token: String,
            expires_at: String,
        }
        let files = std::fs::read_dir(&self.cache).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let cached = files.filter_map(|path| serde_json::from_str::<Cached>(&read(&path).ok()?).ok());
        let ours = cached.filter(|cached| cached.start_url == self.start_url);
        let newest = ours.filter_map(|cached| Some((end_of(&cached.expires_at)?, cached.access_token)));
        match newest.max_by_key(|(end, _)| *end) {
            Some((end, token)) if end > Timestamp::now() => Ok(token),
            Some((end, _)) => Err(format!("the SSO token has expired at {end}; {}", self.next_step())),
            None => Err(format!("there is no SSO token in ~/.aws/sso/cache; {}", self.next_step())),
        }
    }

    fn next_step(&self) -> String {
        format!("run `aws sso login --profile {}`", self.profile)
    }
}

/// Older tools write `UTC` instead of `Z`.
fn end_of(text: &str) -> Option<Timestamp> {
    text.replace("UTC", "Z").parse().ok()
}

fn encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}
