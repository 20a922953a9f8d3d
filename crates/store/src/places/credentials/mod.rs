//! Who we are to S3: looks for credentials where every tool for S3 does, and remembers where it looked.
//!
//! The order is: the environment, `~/.env`, the profile in `~/.aws/credentials` and `~/.aws/config` (keys, a
//! process, a sign-on by SSO), and then the roles that a machine, a container or a pod gives. The first that has a
//! key wins. All of this is a function of [`Surroundings`]; only [`provider`] runs a program or makes a call.

mod dotenv;
mod profiles;
pub(super) mod provider;
mod surroundings;

pub use surroundings::Surroundings;

use object_store::aws::AwsCredential;
use profiles::Profile;
use provider::{ProcessCall, SsoCall};

/// Credentials, or the way to them, and what is known about the store.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) how: How,
    /// In words that follow "the credentials of".
    pub(super) source: String,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    /// What was looked at before, and what each lacked.
    pub(super) tried: Vec<String>,
}

#[derive(Debug)]
pub(super) enum How {
    Keys(AwsCredential),
    Process(ProcessCall),
    Sso(SsoCall),
    /// The client for the store asks for them itself: a web identity, a container or a pod.
    Role,
    /// The same, of the machine; which may not have one.
    Instance,
    /// The bucket is public.
    Unsigned,
    Nothing,
}

/// Where the metadata of a machine in a cloud are.
pub(super) const INSTANCE_METADATA: &str = "169.254.169.254:80";

pub(super) fn find(around: &Surroundings) -> Found {
    let mut tried = Vec::new();
    let profile = profiles::find(around);
    let (region, endpoint) = settings(around, profile.as_ref().ok());
    let found = |how, source: &str, tried| {
        let source = source.to_owned();
        Found { how, source, region: region.clone(), endpoint: endpoint.clone(), tried }
    };
    if around.setting("AWS_SKIP_SIGNATURE").is_some_and(|value| is_true(&value)) {
        return found(How::Unsigned, "nobody (AWS_SKIP_SIGNATURE is set)", tried);
    }
    match keys_in("", |name| around.vars.get(name).cloned()) {
        Ok(keys) => return found(How::Keys(keys), "the environment (AWS_ACCESS_KEY_ID)", tried),
        Err(lack) => tried.push(format!("the environment ({lack})")),
    }
    match around.dotenv() {
        Err(lack) => tried.push(format!("~/.env ({lack})")),
        Ok(file) => match keys_in("", |name| file.get(name).cloned()) {
            Ok(keys) => return found(How::Keys(keys), "~/.env (AWS_ACCESS_KEY_ID)", tried),
            Err(lack) => tried.push(format!("~/.env ({lack})")),
        },
    }
    match profile.and_then(|profile| from_profile(&profile, around)) {
        Ok((how, source)) => return found(how, &source, tried),
        Err(lack) => tried.push(lack),
    }
    from_role(around, tried, found)
}

fn from_role(
    around: &Surroundings,
    mut tried: Vec<String>,
    found: impl Fn(How, &str, Vec<String>) -> Found,
) -> Found {
    let is_set = |name: &str| around.setting(name).is_some();
    if is_set("AWS_WEB_IDENTITY_TOKEN_FILE") && is_set("AWS_ROLE_ARN") {
        return found(How::Role, "the web identity (AWS_WEB_IDENTITY_TOKEN_FILE)", tried);
    }
    tried.push("a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not both set)".to_owned());
    let is_pod =
        is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI") && is_set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") || is_pod {
        return found(How::Role, "the container's role (AWS_CONTAINER_CREDENTIALS_…)", tried);
    }
    tried.push("a container's role (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set)".to_owned());
    if around.setting("AWS_EC2_METADATA_DISABLED").is_some_and(|value| is_true(&value)) {
        tried.push("the machine's role (AWS_EC2_METADATA_DISABLED is set)".to_owned());
        return found(How::Nothing, "nobody", tried);
    }
    found(How::Instance, "the machine's role", tried)
}

/// Region and endpoint do not have to come from where the keys do.
fn settings(around: &Surroundings, profile: Option<&Profile>) -> (Option<String>, Option<String>) {
    let setting = |name: &str| around.setting(name);
    let of_profile = |name: &str| profile.and_then(|profile| profile.get(name)).map(str::to_owned);
    let region =
        setting("AWS_REGION").or_else(|| setting("AWS_DEFAULT_REGION")).or_else(|| of_profile("region"));
    let endpoint = setting("AWS_ENDPOINT_URL_S3")
        .or_else(|| setting("AWS_ENDPOINT_URL"))
        .or_else(|| setting("AWS_ENDPOINT"))
        .or_else(|| of_profile("endpoint_url"));
    (region, endpoint)
}

fn from_profile(profile: &Profile, around: &Surroundings) -> Result<(How, String), String> {
    let named = format!("the profile `{}`", profile.name);
    let lack = match keys_in("in lower case", |name| profile.get(&name.to_lowercase()).map(str::to_owned)) {
        Ok(keys) => return Ok((How::Keys(keys), format!("{named} ({})", profile.keys_from()))),
        Err(lack) => lack,
    };
    if let Some(command) = profile.get("credential_process") {
        let call = ProcessCall { command: command.to_owned(), profile: profile.name.clone() };
        return Ok((How::Process(call), format!("{named} (credential_process)")));
    }
    if let Some(call) = SsoCall::of(profile, around)? {
        return Ok((How::Sso(call), format!("{named} (SSO)")));
    }
    if profile.get("role_arn").is_some() {
        return Err(format!(
            "{named} (it assumes a role by role_arn, which is not supported; export keys with \
             `aws configure export-credentials --profile {} --format env`)",
            profile.name
        ));
    }
    Err(format!("{named} ({lack})"))
}

/// Keys are only used together with the secret that was found beside them.
fn keys_in(case: &str, get: impl Fn(&str) -> Option<String>) -> Result<AwsCredential, String> {
    let shown = |name: &str| if case.is_empty() { name.to_owned() } else { name.to_lowercase() };
    let (key, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    match (get(key), get(secret)) {
        (Some(key_id), Some(secret_key)) => {
            Ok(AwsCredential { key_id, secret_key, token: get("AWS_SESSION_TOKEN") })
        }
        (Some(_), None) => Err(format!("{} is set but {} is not", shown(key), shown(secret))),
        (None, _) => Err(format!("{} is not set", shown(key))),
    }
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on", "y"].contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests;
