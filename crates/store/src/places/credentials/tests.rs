//! Where credentials are looked for, as a table.

use super::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// Files with their text, or variables with their values.
type Pairs<'a> = &'a [(&'a str, &'a str)];

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn find(&self, vars: &[(&str, &str)]) -> Found {
        find(&self.around(vars))
    }

    fn around(&self, vars: &[(&str, &str)]) -> Surroundings {
        let vars: BTreeMap<_, _> =
            vars.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Surroundings { vars, home: Some(self.folder.path().to_owned()), retry_for: Duration::from_secs(1) }
    }
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "of-env"), ("AWS_SECRET_ACCESS_KEY", "s")];
const DOTENV: &str = "export AWS_ACCESS_KEY_ID='of-dotenv'\nAWS_SECRET_ACCESS_KEY=s\n";
const CREDENTIALS: &str = "[default]\naws_access_key_id = of-file\naws_secret_access_key = s\n\
                           [other]\naws_access_key_id = of-other\naws_secret_access_key = s\n";
const CONFIG: &str = "[default]\nregion = eu-north-1\nendpoint_url = http://of-config\n\
                      [profile run]\ncredential_process = printer\n\
                      [profile sso]\nsso_session = s\nsso_account_id = 1\nsso_role_name = reader\n\
                      [sso-session s]\nsso_start_url = https://start\nsso_region = us-east-1\n\
                      [profile role]\nrole_arn = arn\nsource_profile = default\n";

#[test]
fn the_first_source_that_has_keys_is_used_and_named() {
    let (dotenv, credentials, config) =
        ((".env", DOTENV), (".aws/credentials", CREDENTIALS), (".aws/config", CONFIG));
    let all = [dotenv, credentials, config];
    let profile = |name| [("AWS_PROFILE", name)];
    let token = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "r")];
    #[rustfmt::skip]
    let cases: [(Pairs<'_>, Pairs<'_>, &str); 11] = [
        (&all, &KEYS, "the environment (AWS_ACCESS_KEY_ID)"),
        (&all, &[], "~/.env (AWS_ACCESS_KEY_ID)"),
        (&[credentials, config], &[], "the profile `default` (~/.aws/credentials)"),
        (&[credentials], &profile("other"), "the profile `other` (~/.aws/credentials)"),
        (&[(".env", "AWS_PROFILE=other"), credentials], &[], "the profile `other` (~/.aws/credentials)"),
        (&[config], &profile("run"), "the profile `run` (credential_process)"),
        (&[config], &profile("sso"), "the profile `sso` (SSO)"),
        (&[], &token, "the web identity (AWS_WEB_IDENTITY_TOKEN_FILE)"),
        (&[], &[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/r")], "the container's role (AWS_CONTAINER_CREDENTIALS_…)"),
        (&[], &[], "the machine's role"),
        (&all, &[("AWS_SKIP_SIGNATURE", "true")], "nobody (AWS_SKIP_SIGNATURE is set)"),
    ];
    for (files, vars, source) in cases {
        assert_eq!(Home::with(files).find(vars).source, source, "{files:?} {vars:?}");
    }
}

#[test]
fn every_source_that_was_tried_is_named_with_what_it_lacked() {
    let off = ("AWS_EC2_METADATA_DISABLED", "true");
    let half = ("AWS_ACCESS_KEY_ID", "id");
    #[rustfmt::skip]
    let cases: [(Pairs<'_>, Pairs<'_>, &[&str]); 4] = [
        (&[], &[off], &[
            "the environment (AWS_ACCESS_KEY_ID is not set)",
            "~/.env (no such file)",
            "~/.aws/credentials (no such file), ~/.aws/config (no such file)",
            "a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not both set)",
            "a container's role (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set)",
            "the machine's role (AWS_EC2_METADATA_DISABLED is set)",
        ]),
        (&[(".env", "A=b")], &[off, half], &[
            "the environment (AWS_ACCESS_KEY_ID is set but AWS_SECRET_ACCESS_KEY is not)",
            "~/.env (AWS_ACCESS_KEY_ID is not set)",
        ]),
        (&[(".aws/credentials", CREDENTIALS)], &[off, ("AWS_PROFILE", "nobody")], &[
            "~/.aws/credentials (no profile `nobody`, only: default, other), ~/.aws/config (no such file)",
        ]),
        (&[(".aws/config", CONFIG)], &[off, ("AWS_PROFILE", "role")], &["role_arn, which is not supported; export keys"]),
    ];
    for (files, vars, lacks) in cases {
        let found = Home::with(files).find(vars);
        assert!(matches!(found.how, How::Nothing), "{:?}", found.how);
        let tried = found.tried.join(", ");
        for lack in lacks {
            assert!(tried.contains(lack), "{lack} is not in: {tried}");
        }
    }
}

#[test]
fn region_and_endpoint_come_from_the_nearest() {
    let home = Home::with(&[(".env", "AWS_ENDPOINT_URL=http://of-dotenv"), (".aws/config", CONFIG)]);
    let no_dotenv = Home::with(&[(".aws/config", CONFIG)]);
    let cases: [(&Home, Pairs<'_>, &str, &str); 4] = [
        (&no_dotenv, &[], "eu-north-1", "http://of-config"),
        (&home, &[], "eu-north-1", "http://of-dotenv"),
        (&home, &[("AWS_REGION", "x"), ("AWS_ENDPOINT_URL", "http://of-env")], "x", "http://of-env"),
        (&home, &[("AWS_ENDPOINT_URL", "a"), ("AWS_ENDPOINT_URL_S3", "b")], "eu-north-1", "b"),
    ];
    for (home, vars, region, endpoint) in cases {
        let found = home.find(vars);
        assert_eq!(
            (found.region.as_deref(), found.endpoint.as_deref()),
            (Some(region), Some(endpoint)),
            "{vars:?}"
        );
    }
}

#[test]
fn nothing_that_is_printed_for_debugging_holds_a_secret() {
    let home = Home::with(&[(
        ".aws/credentials",
        "[default]\naws_access_key_id = id\naws_secret_access_key = hush\n",
    )]);
    let around = home.around(&[("AWS_SECRET_ACCESS_KEY", "hush"), ("AWS_SESSION_TOKEN", "hush")]);
    assert!(!format!("{around:?} {:?}", find(&around)).contains("hush"));
}
