//! What only a log on JetStream can meet: other owners, servers that go away, answers that get lost.

use crate::support::{append, assert_holds, record, records, replay, stage};
use bytes::Bytes;
use rollyard_core::ids::RunName;
use rollyard_store::log::jetstream::message::Piece;
use rollyard_store::log::jetstream::{Connection, Opener, Settings};
use rollyard_store::log::{
    Blob, Commit, KeepSnapshots, Log, LogError, Parts, Payloads, ReadError, SegmentNo, Stage, StageError,
};
use rollyard_test_nats::{Cluster, Login, Options, Proxy, Server};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn server() -> Server {
    Server::start(Options::default())
}

fn settings(url: impl Into<String>) -> Settings {
    Settings { patience: PATIENCE, ..Settings::new(url) }
}

fn connect(url: impl Into<String>) -> Connection {
    Connection::open(settings(url)).unwrap()
}

fn run() -> RunName {
    RunName::try_from("test").unwrap()
}

fn opener(connection: &Connection, node: &str) -> Opener {
    connection.opener(&run(), node, &format!("http://{node}:1"))
}

/// Why no connection can be made, and that it was found out without delay where waiting cannot help.
fn refused(settings: Settings) -> String {
    Connection::open(settings).unwrap_err().to_string()
}

#[test]
fn whoever_claims_fences_the_owner_before() {
    let server = server();
    let (first, second) = (connect(server.url()), connect(server.url()));
    let (old, new) = (opener(&first, "old"), opener(&second, "new"));
    let Parts { mut stager, mut writer, .. } = old.open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=3, 100));

    let log = new.open().unwrap();
    assert_eq!((log.claim().epoch, log.claim().node.as_str()), (2, "new"));
    stage(&mut stager, &records(4..=4, 100));
    let fenced = writer.commit(stager.take_batch().unwrap()).unwrap_err();
    assert!(
        matches!(&fenced, LogError::Fenced { epoch: 2, node, url, .. } if node == "new" && url == "http://new:1"),
        "{fenced}"
    );
    assert!(writer.confirm().is_err(), "it stays fenced");
    let again = old.open().unwrap_err();
    assert!(again.is_fenced(), "{again}");
    assert_holds(log, &records(1..=3, 100));
    assert_eq!(second.last_claim(&run()).unwrap().unwrap().node, "new");
}

#[test]
fn an_owner_that_only_answers_notices_that_it_was_replaced() {
    let server = server();
    let connection = connect(server.url());
    let Parts { mut stager, mut writer, .. } = opener(&connection, "old").open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=1, 10));
    writer.confirm().unwrap();
    drop(opener(&connection, "new").open().unwrap());
    std::thread::sleep(Duration::from_millis(600));
    assert!(writer.confirm().unwrap_err().is_fenced());
}

#[test]
fn of_many_who_claim_at_once_each_epoch_has_one_owner() {
    let server = server();
    let connection = connect(server.url());
    connection.create(&run()).unwrap();
    let claims: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let connection = connection.clone();
                scope.spawn(move || {
                    opener(&connection, &format!("n{n}")).open().map(|log| log.claim().clone())
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).collect()
    });
    let mut epochs: Vec<_> = claims.iter().map(|claim| claim.epoch).collect();
    epochs.sort_unstable();
    assert!(!epochs.is_empty());
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{claims:?}");
}

#[test]
fn the_owner_itself_may_open_again() {
    let server = server();
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    for n in 1..=3 {
        let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
        append(&mut stager, &mut writer, &records(n..=n, 100));
        assert_eq!(opener.epoch(), Some(n));
    }
    assert_holds(opener.open().unwrap(), &records(1..=3, 100));
}

#[test]
fn a_batch_that_was_not_finished_never_happened() {
    let server = server();
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=3, 100));
    // The first of two messages, by an owner that died before the second.
    let bytes = Bytes::from_static(b"the beginning of a body");
    let piece =
        Piece { last: false, piece: 0, epoch: 1, first_seq: 4, count: 9, segment: SegmentNo(7), bytes };
    publish(&connection, "ry.rollyard.test.h", piece.encode());

    let log = opener.open().unwrap();
    assert_eq!(replay(&log, 1).len(), 3);
    let Parts { mut stager, mut writer, .. } = log.into_parts();
    assert_eq!(stager.next_seq(), 4);
    append(&mut stager, &mut writer, &records(4..=5, 100));
    assert_holds(opener.open().unwrap(), &records(1..=5, 100));
}

fn publish(connection: &Connection, subject: &'static str, bytes: Bytes) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        connection.client().publish(subject, bytes).await.unwrap();
        connection.client().flush().await.unwrap();
    });
}

#[test]
fn a_batch_larger_than_a_message_is_cut_and_put_together() {
    let server = Server::start(Options { max_payload: Some(18 << 10), ..Options::default() });
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    let long_bodies: Vec<_> = (1..=3)
        .map(|n| crate::support::Record { body: vec![n; 50_000], ..record(u64::from(n), 30_000) })
        .collect();
    append(&mut stager, &mut writer, &long_bodies);
    assert_holds(opener.open().unwrap(), &long_bodies);
}

#[test]
fn links_that_freeze_and_break_lose_nothing_and_repeat_nothing() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let connection = connect(format!("nats://127.0.0.1:{}", proxy.port()));
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    std::thread::scope(|scope| {
        let broken = scope.spawn(|| {
            for n in 0..6 {
                std::thread::sleep(Duration::from_millis(150));
                if n % 2 == 0 {
                    proxy.freeze()
                } else {
                    proxy.cut()
                }
                std::thread::sleep(Duration::from_millis(300));
                proxy.heal();
            }
        });
        let mut n = 1;
        while !broken.is_finished() || n < 50 {
            append(&mut stager, &mut writer, &records(n..=n, 40_000));
            n += 1;
        }
    });
    let count = writer.committed_seq();
    assert_holds(opener.open().unwrap(), &records(1..=count, 40_000));
}

#[test]
fn a_server_that_is_killed_and_comes_back_has_everything() {
    let mut server = server();
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    for n in 1..=30 {
        append(&mut stager, &mut writer, &records(n..=n, 5000));
        if n % 10 == 0 {
            server.kill();
            server.restart();
        }
    }
    assert_holds(opener.open().unwrap(), &records(1..=30, 5000));
}

#[test]
fn a_cluster_goes_on_without_the_leader_of_its_stream() {
    let mut cluster = Cluster::start(3);
    let connection = Connection::open(Settings { replicas: 3, ..settings(cluster.urls()) }).unwrap();
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=5, 5000));
    let leader = cluster.stream_leader("ry_rollyard_test").unwrap();
    cluster.servers_mut()[leader].kill();
    for n in 6..=10 {
        append(&mut stager, &mut writer, &records(n..=n, 5000));
    }
    assert_holds(opener.open().unwrap(), &records(1..=10, 5000));
}

#[test]
fn batches_fit_at_once_on_three_servers_too() {
    let cluster = Cluster::start(3);
    let connection = Connection::open(Settings { replicas: 3, ..settings(cluster.urls()) }).unwrap();
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    // Several bundles, and then the history.
    for n in 0..10 {
        append(&mut stager, &mut writer, &records(n * 5 + 1..=n * 5 + 5, 60_000));
    }
    assert_eq!(writer.sent_again(), 0);
    assert_holds(opener.open().unwrap(), &records(1..=50, 60_000));
}

#[test]
fn what_its_maker_has_stored_is_read_and_goes_like_the_rest() {
    let server = server();
    let connection = Connection::open(Settings { segment_bytes: 100_000, ..settings(server.url()) }).unwrap();
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, reader, .. } = opener.open().unwrap().into_parts();
    let maker = connect(server.url());
    let place = maker.blobs_of(&run()).unwrap().unwrap();
    let payload = Bytes::from(record(1, 300_000).payload);
    assert!(payload.len() > place.inline_max());
    assert_eq!(place.len("u.1.a").unwrap(), None);
    place.put("u.1.a", payload.clone()).unwrap();
    place.put("u.1.a", payload.clone()).unwrap();
    assert_eq!(place.len("u.1.a").unwrap(), Some(300_000));
    assert_eq!(place.signed_url("u.1.a", PATIENCE).unwrap(), None, "JetStream has no such addresses");

    let crc32c = crc32c::crc32c(&payload);
    let blob = |claim| Blob { name: "u.1.a".to_owned(), len: 300_000, crc32c, claim };
    let other = stager.stage_stored(b"body", blob(7)).unwrap_err();
    assert!(matches!(other, StageError::OtherClaim { claim: 7, now: 1 }), "{other}");
    let stamp = stager.stage_stored(b"body", blob(reader.claim().unwrap())).unwrap();
    assert!(stager.staged_bytes() < 1000, "it does not go through here");
    writer.commit(stager.take_batch().unwrap()).unwrap();
    assert_eq!(reader.payload(stamp.place).unwrap(), payload);
    append(&mut stager, &mut writer, &records(2..=2, 10));

    let log = opener.open().unwrap();
    let found = replay(&log, 1);
    assert_eq!((found[0].payload_len, found[0].place), (300_000, stamp.place));
    let Parts { mut stager, mut writer, reader, .. } = log.into_parts();
    assert_eq!(reader.payload(stamp.place).unwrap(), payload);
    assert!(stager.stage_stored(b"body", blob(1)).is_err(), "it was stored for the claim before");
    stager.retain(&mut [(found[1].place, found[1].payload_len)].into_iter());
    append(&mut stager, &mut writer, &records(3..=3, 0));
    let released: u64 =
        stager.reclaimable().into_iter().map(|release| writer.release(release).unwrap()).sum();
    assert_eq!(released, 300_000);
    writer.close().unwrap();
    assert_eq!(place.len("u.1.a").unwrap(), None);
    assert_eq!(stored_bytes(&server, "OBJ_ry_rollyard_test"), 0);
}

#[test]
fn large_payloads_lie_beside_the_stream_until_they_are_released() {
    let server = server();
    let connection = Connection::open(Settings { segment_bytes: 100_000, ..settings(server.url()) }).unwrap();
    let Parts { mut stager, mut writer, reader, .. } =
        opener(&connection, "node").open().unwrap().into_parts();
    let large = append(&mut stager, &mut writer, &records(1..=3, 300_000));
    append(&mut stager, &mut writer, &records(4..=4, 10));
    let stored = |stream: &str| stored_bytes(&server, stream);
    assert!(stored("ry_rollyard_test") < 10_000 && stored("OBJ_ry_rollyard_test") > 900_000);
    assert_eq!(reader.payload(large[1]).unwrap(), record(2, 300_000).payload);

    large.iter().for_each(|place| stager.free(*place, 300_000));
    append(&mut stager, &mut writer, &records(5..=5, 0));
    for release in stager.reclaimable() {
        assert_eq!(writer.release(release).unwrap(), 900_000);
    }
    assert!(matches!(reader.payload(large[1]), Err(ReadError::Gone { .. })));
    writer.close().unwrap();
    assert_eq!(stored("OBJ_ry_rollyard_test"), 0, "blobs, and what JetStream would leave of them");
}

fn stored_bytes(server: &Server, stream: &str) -> u64 {
    let told = server.monitor("/jsz?streams=true").unwrap();
    let streams = told["account_details"][0]["stream_detail"].as_array().unwrap().clone();
    let found = streams.iter().find(|detail| detail["name"] == stream).unwrap_or_else(|| panic!("{told}"));
    found["state"]["bytes"].as_u64().unwrap()
}

#[test]
fn a_replay_begins_after_the_snapshot() {
    let server = server();
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, snapshots, .. } = opener.open().unwrap().into_parts();
    for n in 1..=40 {
        append(&mut stager, &mut writer, &records(n..=n, 10));
        if n % 15 == 0 {
            snapshots.write(n, format!("state {n}").as_bytes()).unwrap();
        }
    }
    let mut log = opener.open().unwrap();
    assert_eq!(log.take_snapshot().unwrap().seq, 30);
    let mut told = Vec::new();
    let replayed: Result<(), _> =
        log.replay(31, |done, total| told.push((done, total)), |_| Ok::<_, std::convert::Infallible>(()));
    replayed.unwrap();
    // Twenty messages, payloads and history, and none of those before.
    assert_eq!(told.last(), Some(&(20, 20)));
}

#[test]
fn a_full_stream_refuses_and_keeps_what_it_has() {
    let server = server();
    refuses_when_full(Settings { max_bytes: Some(200_000), ..settings(server.url()) });
}

#[test]
fn a_server_without_room_refuses_and_keeps_what_it_has() {
    let server = Server::start(Options { max_file_store: Some(300_000), ..Options::default() });
    refuses_when_full(settings(server.url()));
}

fn refuses_when_full(settings: Settings) {
    let connection = Connection::open(settings).unwrap();
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, .. } = opener.open().unwrap().into_parts();
    let mut n = 0;
    let full = loop {
        stage(&mut stager, &records(n + 1..=n + 1, 30_000));
        match writer.commit(stager.take_batch().unwrap()) {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
        assert!(n < 15);
    };
    assert!(matches!(full, LogError::NoSpace { .. }), "{full}");
    assert!(n >= 4);
    assert_eq!(replay_of(&connection).len() as u64, n);
}

/// The records of a run, read without claiming it.
fn replay_of(connection: &Connection) -> Vec<u64> {
    let mut seqs = Vec::new();
    let visited = connection.visit(&run(), |entry| {
        seqs.push(entry.seq);
        Ok::<_, std::convert::Infallible>(())
    });
    assert_eq!(visited.unwrap().unwrap().last_seq, seqs.len() as u64);
    seqs
}

#[test]
fn looking_at_a_run_does_not_claim_it() {
    let server = server();
    let connection = connect(server.url());
    let Parts { mut stager, mut writer, .. } = opener(&connection, "node").open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=3, 100));
    assert_eq!(replay_of(&connection), [1, 2, 3]);
    append(&mut stager, &mut writer, &records(4..=4, 100));
    let other = RunName::try_from("other").unwrap();
    assert!(connection.visit(&other, |_| Ok::<_, ()>(())).unwrap().is_none());
    assert_eq!(connection.runs().unwrap(), [run()]);
    assert_eq!(connection.last_claim(&other).unwrap(), None);
}

#[test]
fn logins_in_the_address_are_used_and_wrong_ones_are_said_to_be() {
    let user = Login::User { user: "yard".to_owned(), password: "s:ecret".to_owned() };
    for login in [user, Login::Token("a-token".to_owned())] {
        let server = Server::start(Options { login, ..Options::default() });
        let address = format!("127.0.0.1:{}", server.port());
        let url = match server.url().contains("a-token") {
            true => format!("nats://a-token@{address}"),
            false => format!("nats://yard:s%3Aecret@{address}"),
        };
        connect(url).create(&run()).unwrap();
        for wrong in [
            format!("nats://{address}"),
            format!("nats://yard:wrong@{address}"),
            format!("nats://x@{address}"),
        ] {
            let began = Instant::now();
            let error = refused(settings(wrong));
            assert!(error.contains("refuse the credentials") && error.contains(&address), "{error}");
            assert!(!error.contains("wrong@") && began.elapsed() < PATIENCE / 2, "{error}");
        }
    }
}

#[test]
fn what_cannot_work_is_said_with_what_to_do() {
    let plain = Server::start(Options { jetstream: false, ..Options::default() });
    let error = refused(settings(plain.url()));
    assert!(error.contains("JetStream is off") && error.contains("-js"), "{error}");

    let small = Server::start(Options { max_payload: Some(8 << 10), ..Options::default() });
    let error = refused(settings(small.url()));
    assert!(error.contains("max_payload is 8192"), "{error}");

    let nobody = Settings { patience: Duration::from_millis(300), ..Settings::new("nats://127.0.0.1:1") };
    let error = refused(nobody);
    assert!(error.contains("nats://127.0.0.1:1") && error.contains("are they running?"), "{error}");

    let error = refused(settings("nats://[bad"));
    assert!(error.contains("write nats://host:4222"), "{error}");

    let missing = Settings { credentials: Some("/nowhere/user.creds".into()), ..settings(plain.url()) };
    let error = refused(missing);
    assert!(error.contains("/nowhere/user.creds"), "{error}");
}

#[test]
fn streams_of_others_and_of_other_versions_are_left_alone() {
    use async_nats::jetstream::{self, stream::Config};
    let server = server();
    let connection = connect(server.url());
    connection.create(&run()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = runtime.block_on(async {
        let client = async_nats::connect(server.url()).await.unwrap();
        let context = jetstream::new(client);
        let stream = context.get_stream("ry_rollyard_test").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.metadata.insert("rollyard-log".to_owned(), "9".to_owned());
        context.update_stream(config.clone()).await.unwrap();
        let foreign = Config {
            name: "ry_rollyard_other".to_owned(),
            subjects: vec!["theirs".to_owned()],
            ..Config::default()
        };
        context.create_stream(foreign).await.unwrap();
        config
    });
    assert_eq!(config.name, "ry_rollyard_test");
    let newer = opener(&connection, "node").open().unwrap_err();
    assert!(matches!(newer, LogError::Version { found: 9, known: 1, .. }), "{newer}");
    let other = RunName::try_from("other").unwrap();
    let foreign = connection.opener(&other, "node", "http://node:1").open().unwrap_err().to_string();
    assert!(foreign.contains("not made by rollyard") && foreign.contains("--log-yard"), "{foreign}");
}

#[test]
fn records_that_the_servers_lost_are_not_hidden_by_a_snapshot() {
    let server = server();
    let connection = connect(server.url());
    let opener = opener(&connection, "node");
    let Parts { mut stager, mut writer, snapshots, .. } = opener.open().unwrap().into_parts();
    append(&mut stager, &mut writer, &records(1..=5, 10));
    snapshots.write(5, b"state 5").unwrap();
    // A snapshot of records that a power loss took from the stream.
    snapshots.write(9, b"state 9").unwrap();
    let mut log = opener.open().unwrap();
    assert_eq!(log.take_snapshot().unwrap().seq, 5);
    let mut log = opener.open().unwrap();
    assert_eq!(log.take_snapshot().unwrap().seq, 5);
}
