//! Three servers: with one of them gone the others go on.

use async_nats::jetstream::{self, Context, stream::Config};
use rollyard_test_nats::Cluster;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(40);

async fn connect(urls: &str) -> Context {
    let addresses: Vec<async_nats::ServerAddr> = urls.split(',').map(|url| url.parse().unwrap()).collect();
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let mut context = jetstream::new(options.connect(addresses).await.unwrap());
    context.set_timeout(Duration::from_secs(2));
    context
}

/// Published and acknowledged, sooner or later.
async fn publish(context: &Context, text: &'static str) {
    let deadline = Instant::now() + SOON;
    loop {
        let sent = context.publish("s", text.into()).await.unwrap();
        match sent.await {
            Ok(_) => return,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

async fn replicated(context: &Context) {
    let config =
        Config { name: "s".into(), subjects: vec!["s".into()], num_replicas: 3, ..Config::default() };
    context.create_stream(config).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_outlives_its_leader() {
    let mut cluster = Cluster::start(3);
    let context = connect(&cluster.urls()).await;
    replicated(&context).await;
    publish(&context, "one").await;
    let first = cluster.stream_leader("s").unwrap();
    cluster.servers_mut()[first].kill();
    publish(&context, "two").await;
    let second = cluster.stream_leader("s").unwrap();
    assert_ne!(first, second);
    cluster.servers_mut()[first].restart();
    cluster.await_healthy().unwrap();
    publish(&context, "three").await;
    let mut stream = context.get_stream("s").await.unwrap();
    // An answer that was late counts twice here: these messages have no ids.
    assert!(stream.info().await.unwrap().state.messages >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_is_cut_off_loses_the_stream_and_finds_it_again() {
    let cluster = Cluster::start(3);
    let context = connect(&cluster.urls()).await;
    replicated(&context).await;
    publish(&context, "one").await;
    let first = cluster.stream_leader("s").unwrap();
    cluster.freeze_out(first);
    // Asked on the side of the majority.
    let others: Vec<String> =
        cluster.servers().iter().enumerate().filter(|(no, _)| *no != first).map(|(_, s)| s.url()).collect();
    let elsewhere = connect(&others.join(",")).await;
    publish(&elsewhere, "two").await;
    let alone = connect(&cluster.servers()[first].url()).await;
    let answer = alone.publish("s", "lost".into()).await.unwrap().await;
    assert!(answer.is_err(), "a server without a majority acknowledges: {answer:?}");
    cluster.heal();
    cluster.await_healthy().unwrap();
    publish(&alone, "three").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_behind_links_is_cut_off_alone() {
    let cluster = Cluster::start(3);
    let links = cluster.links();
    let (near, far) = (connect(&cluster.urls()).await, connect(&links.urls()).await);
    near.query_account().await.unwrap();
    far.query_account().await.unwrap();
    links.freeze();
    near.query_account().await.unwrap();
    assert!(far.query_account().await.is_err());
    links.heal();
    far.query_account().await.unwrap();
}
