//! One server: started, killed, paused, and refusing what it is told to refuse.

use async_nats::{ConnectOptions, jetstream};
use rollyard_test_nats::{Login, Options, Server, Sync};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

/// A stream with these many messages.
async fn fill(url: &str, messages: usize) {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    let config =
        jetstream::stream::Config { name: "s".into(), subjects: vec!["s".into()], ..Default::default() };
    context.create_stream(config).await.unwrap();
    for _ in 0..messages {
        context.publish("s", "x".into()).await.unwrap().await.unwrap();
    }
}

async fn count(url: &str) -> u64 {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    context.get_stream("s").await.unwrap().cached_info().state.messages
}

#[tokio::test]
async fn killed_server_has_its_streams_again_on_the_same_port() {
    let mut server = Server::start(Options::default());
    let url = server.url();
    fill(&url, 3).await;
    server.kill();
    assert!(!server.is_running());
    assert!(async_nats::connect(&url).await.is_err(), "a killed server answers");
    server.restart();
    assert_eq!(server.url(), url);
    assert_eq!(count(&url).await, 3);
}

#[tokio::test]
async fn stopped_server_is_gone_and_comes_back() {
    let mut server = Server::start(Options { sync: Sync::Always, ..Options::default() });
    fill(&server.url(), 2).await;
    server.pause();
    server.stop();
    assert!(server.log().contains("Server Exiting"), "{}", server.log());
    server.restart();
    assert_eq!(count(&server.url()).await, 2);
}

#[tokio::test]
async fn paused_server_answers_after_it_is_resumed() {
    let server = Server::start(Options::default());
    let client = async_nats::connect(server.url()).await.unwrap();
    client.flush().await.unwrap();
    server.pause();
    let mut asked = tokio::spawn(async move {
        let context = jetstream::new(client);
        context.query_account().await.unwrap().streams
    });
    assert!(timeout(Duration::from_millis(300), &mut asked).await.is_err(), "a paused server answers");
    server.resume();
    assert_eq!(timeout(SOON, asked).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn login_is_asked_for() {
    let (user, password, token) = ("yard".to_owned(), "secret".to_owned(), "secret-token".to_owned());
    // This client takes no login from a URL.
    let cases = [
        (
            Login::User { user: user.clone(), password: password.clone() },
            ConnectOptions::with_user_and_password(user, password),
            "nats://yard:secret@127.0.0.1:",
        ),
        (Login::Token(token.clone()), ConnectOptions::with_token(token), "nats://secret-token@127.0.0.1:"),
    ];
    for (login, friend, prefix) in cases {
        let server = Server::start(Options { login, ..Options::default() });
        assert_eq!(server.url(), format!("{prefix}{}", server.port()));
        let bare = format!("nats://127.0.0.1:{}", server.port());
        assert!(ConnectOptions::new().connect(&bare).await.is_err());
        friend.connect(&bare).await.unwrap().flush().await.unwrap();
    }
}

#[tokio::test]
async fn limits_are_those_that_were_given() {
    let options = Options { max_payload: Some(4096), max_file_store: Some(1 << 20), ..Options::default() };
    let server = Server::start(options);
    let client = async_nats::connect(server.url()).await.unwrap();
    assert_eq!(client.server_info().max_payload, 4096);
    fill(&server.url(), 0).await;
    let context = jetstream::new(client);
    let body = bytes_of(4000);
    let mut refused = None;
    for _ in 0..400 {
        let answer = context.publish("s", body.clone().into()).await.unwrap().await;
        if let Err(error) = answer {
            refused = Some(error.to_string());
            break;
        }
    }
    assert!(refused.as_deref().is_some_and(|error| error.contains("resource")), "{refused:?}");
}

fn bytes_of(count: usize) -> Vec<u8> {
    vec![b'x'; count]
}

#[tokio::test]
async fn server_without_jetstream_says_so() {
    let server = Server::start(Options { jetstream: false, ..Options::default() });
    let context = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let error = context.query_account().await.unwrap_err().to_string();
    assert!(error.contains("jetstream") || error.contains("JetStream"), "{error}");
}

#[test]
fn server_and_its_files_go_with_its_value() {
    let server = Server::start(Options::default());
    let (store, process) = (server.store(), format!("/proc/{}", server.pid()));
    assert!(store.exists());
    drop(server);
    assert!(!store.exists());
    if Path::new("/proc/self").exists() {
        assert!(!Path::new(&process).exists(), "{process}");
    }
}
