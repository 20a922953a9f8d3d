//! Places in buckets of a real S3 server, and who may read them.
//!
//! The server takes seconds to start, so the claims stand in two tests.

use bytes::Bytes;
use rollyard_store::places::{Depth, Places, Roots, Surroundings};
use rollyard_test_engine::S3Server;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

const RETRY_FOR: Duration = Duration::from_secs(2);

/// With some variables set otherwise.
fn around(server: &S3Server, others: &[(&str, &str)]) -> Surroundings {
    let mut vars: std::collections::BTreeMap<_, _> = server.vars().into_iter().collect();
    vars.extend(others.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    Surroundings { vars, home: Some(PathBuf::from("/nonexistent")), retry_for: RETRY_FOR }
}

fn client(server: &S3Server, others: &[(&str, &str)]) -> Places {
    Places::within(Roots::Anywhere, around(server, others))
}

fn put(places: &Places, url: &str, text: &str) {
    let mut upload = places.create(url).unwrap();
    upload.write(Bytes::copy_from_slice(text.as_bytes())).unwrap();
    upload.finish().unwrap();
}

fn urls(places: &Places, place: &str) -> Vec<String> {
    places.files(place).unwrap().into_iter().map(|file| file.url).collect()
}

#[test]
fn a_bucket_is_a_place_like_any_other() {
    let mut server = S3Server::start(&["yard"]);
    let places = client(&server, &[]);
    for name in [
        "runs/a/1.jsonl",
        "runs/a/2.jsonl",
        "runs/b/1.parquet",
        "runs/b/.x.jsonl",
        "runs/b/n.txt",
        "runs-2/c.jsonl",
    ] {
        put(&places, &format!("s3://yard/{name}"), name);
    }
    finds_files(&places);
    tells_what_is_wrong(&server, &places);
    reads_ranges_and_notices_a_replaced_file(&places);
    writes_in_parts(&places);
    lists_more_than_a_page(&places);
    gives_up_on_a_server_that_is_gone(&mut server, &places);
}

fn finds_files(places: &Places) {
    let all = ["s3://yard/runs/a/1.jsonl", "s3://yard/runs/a/2.jsonl", "s3://yard/runs/b/1.parquet"];
    let cases: [(&str, &[&str]); 7] = [
        ("s3://yard/runs", &all),
        ("s3://yard/runs/", &all),
        ("s3a://yard/runs/a/1.jsonl", &all[..1]),
        ("s3://yard/runs/*/1.*", &[all[0], all[2]]),
        ("s3://yard/runs/a/*.jsonl", &all[..2]),
        ("s3://yard/**/c.jsonl", &["s3://yard/runs-2/c.jsonl"]),
        ("s3://yard/runs/b/n.txt", &["s3://yard/runs/b/n.txt"]),
    ];
    for (place, found) in cases {
        assert_eq!(urls(places, place), found, "{place}");
    }
    let listing = places.browse("s3://yard/runs", Depth::One).unwrap();
    assert_eq!(listing.folders, ["s3://yard/runs/a/", "s3://yard/runs/b/"]);
    let listing = places.browse("s3://yard", Depth::One).unwrap();
    assert_eq!(listing.folders, ["s3://yard/runs-2/", "s3://yard/runs/"]);
}

fn tells_what_is_wrong(server: &S3Server, places: &Places) {
    let cases = [
        ("s3://yard/runs/c.jsonl", "not_found", "in the folder there are: a/, b/"),
        ("s3://yard/runs/*.zip", "not_found", "the glob matches no file"),
        ("s3://no-such-bucket/runs/", "not_found", "the store has no such bucket"),
        ("s3://no-such-bucket/runs/a.jsonl", "not_found", "no-such-bucket"),
        ("s3://yard/runs/../x", "not_a_place", "the key cannot be used"),
    ];
    for (place, code, said) in cases {
        let error = places.files(place).unwrap_err();
        assert!(error.code() == code && error.to_string().contains(said), "{place}: {error}");
    }
    let secret = ("AWS_SECRET_ACCESS_KEY", "not-the-secret");
    let cases = [
        (vec![secret], "the environment (AWS_ACCESS_KEY_ID)"),
        (vec![("AWS_ACCESS_KEY_ID", "nobody")], "the environment (AWS_ACCESS_KEY_ID)"),
        (vec![("AWS_SKIP_SIGNATURE", "true")], "AWS_SKIP_SIGNATURE is set"),
        (
            vec![("AWS_ACCESS_KEY_ID", ""), ("AWS_EC2_METADATA_DISABLED", "true")],
            "tried the environment (AWS_ACCESS_KEY_ID is not set), ~/.env (no such file)",
        ),
    ];
    for (others, said) in cases {
        let stranger = client(server, &others);
        let errors = [
            stranger.files("s3://yard/runs/").unwrap_err(),
            stranger.look("s3://yard/runs/a/1.jsonl").unwrap_err(),
            stranger.create("s3://yard/x").and_then(|upload| upload.finish().map(drop)).unwrap_err(),
        ];
        for error in errors {
            assert!(error.code() == "denied" && error.to_string().contains(said), "{others:?}: {error}");
            assert!(!error.to_string().contains(secret.1), "{error}");
        }
    }
}

fn reads_ranges_and_notices_a_replaced_file(places: &Places) {
    let url = "s3://yard/ranges.jsonl";
    put(places, url, "0123456789");
    let file = places.open(url).unwrap();
    assert_eq!(file.size_bytes(), 10);
    for (range, text) in [(0..4, "0123"), (8..100, "89"), (10..20, ""), (50..60, "")] {
        assert_eq!(file.read_at(range.clone()).unwrap(), text, "{range:?}");
    }
    let before = places.look(url).unwrap();
    put(places, url, "abcdefghij");
    assert_ne!(places.look(url).unwrap().stamp, before.stamp);
    assert_eq!(file.read_at(0..4).unwrap_err().code(), "changed");
}

fn writes_in_parts(places: &Places) {
    let url = "s3://yard/large.jsonl";
    let bytes: Bytes = (0..20_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut upload = places.create(url).unwrap();
    for piece in bytes.chunks(3_000_000) {
        upload.write(Bytes::copy_from_slice(piece)).unwrap();
    }
    assert_eq!(places.look(url).unwrap_err().code(), "not_found", "it appears when it is finished");
    let info = upload.finish().unwrap();
    assert_eq!((info.size_bytes, info.url.as_str()), (20_000_000, url));
    let file = places.open(url).unwrap();
    assert!(file.read_at(0..u64::MAX).unwrap() == bytes);
    assert!(file.read_at(8_388_600..8_388_620).unwrap() == bytes[8_388_600..8_388_620]);

    for abort in [true, false] {
        let mut upload = places.create("s3://yard/never/a.jsonl").unwrap();
        upload.write(bytes.clone()).unwrap();
        if abort {
            upload.abort()
        } else {
            drop(upload)
        }
        assert_eq!(places.files("s3://yard/never").unwrap_err().code(), "not_found");
    }
}

fn lists_more_than_a_page(places: &Places) {
    std::thread::scope(|scope| {
        for worker in 0..10 {
            scope.spawn(move || {
                for number in 0..250 {
                    put(places, &format!("s3://yard/many/{worker}/{number:04}.jsonl"), "{}");
                }
            });
        }
    });
    assert_eq!(places.files("s3://yard/many").unwrap().len(), 2_500);
    assert_eq!(places.files("s3://yard/many/*/0001.jsonl").unwrap().len(), 10);
    assert_eq!(places.browse("s3://yard/many/", Depth::One).unwrap().folders.len(), 10);
}

fn gives_up_on_a_server_that_is_gone(server: &mut S3Server, places: &Places) {
    let file = places.open("s3://yard/large.jsonl").unwrap();
    let mut upload = places.create("s3://yard/broken.jsonl").unwrap();
    upload.write(Bytes::from(vec![0; 9 << 20])).unwrap();
    server.kill();
    let write = || upload.write(Bytes::from(vec![0; 9 << 20])).and_then(|()| upload.finish().map(drop));
    let errors =
        [file.read_at(0..10).unwrap_err(), write().unwrap_err(), places.files("s3://yard/runs").unwrap_err()];
    for error in errors {
        assert_eq!(error.code(), "unreachable", "{error}");
    }
}

#[test]
fn credentials_are_fetched_where_a_profile_says() {
    let server = S3Server::start(&["yard"]);
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let (key, secret) = (S3Server::ACCESS_KEY, S3Server::SECRET_KEY);
    let portal = sso_portal();
    let printed = format!(r#"{{"Version":1,"AccessKeyId":"{key}","SecretAccessKey":"{secret}"}}"#);
    write("printed.json", &printed);
    let home_path = home.path().display();
    write(
        ".aws/config",
        &format!(
            "[profile keys]\naws_access_key_id={key}\naws_secret_access_key={secret}\n\
             [profile process]\ncredential_process = cat {home_path}/printed.json\n\
             [profile failing]\ncredential_process = echo no luck >&2; exit 3\n\
             [profile sso]\nsso_session=live\nsso_account_id=42\nsso_role_name=reader\n\
             [profile old]\nsso_start_url=https://old\nsso_region=us-east-1\nsso_account_id=42\nsso_role_name=reader\n\
             [profile never]\nsso_start_url=https://never\nsso_region=us-east-1\nsso_account_id=42\nsso_role_name=reader\n\
             [sso-session live]\nsso_start_url=https://live\nsso_region=us-east-1\n"
        ),
    );
    let token = |url: &str, year: u32| {
        format!(r#"{{"startUrl":"{url}","accessToken":"the-token","expiresAt":"{year}-01-01T00:00:00Z"}}"#)
    };
    write(".aws/sso/cache/live.json", &token("https://live", 2100));
    write(".aws/sso/cache/old.json", &token("https://old", 2020));
    let with = |others: &[(&str, &str)]| {
        let mut around = around(&server, &[("AWS_ENDPOINT_URL_SSO", &portal)]);
        around.vars.remove("AWS_ACCESS_KEY_ID");
        around.vars.extend(others.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        around.home = Some(home.path().to_owned());
        Places::within(Roots::Anywhere, around)
    };
    for profile in ["keys", "process"] {
        put(&with(&[("AWS_PROFILE", profile)]), &format!("s3://yard/{profile}.jsonl"), "{}");
    }
    let cases = [
        // The portal's keys are not the server's: that they are sent and refused shows that they were fetched.
        ("sso", "the credentials of the profile `sso` (SSO) (InvalidAccessKeyId"),
        ("old", "the SSO token has expired at 2020-01-01T00:00:00Z; run `aws sso login --profile old`"),
        ("never", "there is no SSO token in ~/.aws/sso/cache; run `aws sso login --profile never`"),
        ("failing", "the credential_process of the profile `failing` failed (exit status: 3): no luck"),
    ];
    for (profile, said) in cases {
        let error = with(&[("AWS_PROFILE", profile)]).files("s3://yard/").unwrap_err();
        assert!(error.code() == "denied" && error.to_string().contains(said), "{profile}: {error}");
    }
    write(".env", &format!("AWS_ACCESS_KEY_ID={key}\nAWS_SECRET_ACCESS_KEY='{secret}'\n"));
    assert_eq!(urls(&with(&[]), "s3://yard/"), ["s3://yard/keys.jsonl", "s3://yard/process.jsonl"]);
}

/// Gives keys to who shows the token.
fn sso_portal() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = Vec::new();
            let mut buffer = [0; 1024];
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..count]);
            }
            let asked = String::from_utf8(asked).unwrap();
            let is_right = asked.starts_with("GET /federation/credentials?account_id=42&role_name=reader ")
                && asked.contains("x-amz-sso_bearer_token: the-token");
            let body = r#"{"roleCredentials":{"accessKeyId":"of-sso","secretAccessKey":"s","sessionToken":"t","expiration":4102444800000}}"#;
            let status = if is_right { "200 OK" } else { "401 Unauthorized" };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    endpoint
}
