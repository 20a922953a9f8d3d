//! A server that archives: killed under load, everything it answered is in the archive once, with its fate.

use crate::crash::Dice;
use crate::program::{Client, Server, item};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const RUN: &str = "/api/runs/default";

fn start(dir: &Path) -> Server {
    let flags =
        ["--group-size", "2", "--archive", "archive", "--archive-roll-mb", "0.02", "--log-level", "warn"];
    Server::start(dir, &flags)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn lines(dir: &Path, of_fates: bool) -> Vec<Value> {
    let is_fates = |path: &Path| path.components().any(|part| part.as_os_str() == "fates");
    let wanted = files(&dir.join("archive")).into_iter().filter(|path| is_fates(path) == of_fates);
    wanted
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        })
        .collect()
}

/// Waits until the archive has everything.
fn until_archived(client: &Client) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (_, run) = client.get(RUN);
        if run["archive"]["behind"] == 0 {
            assert_eq!(
                (&run["archive"]["error"], &run["archive"]["missing"]),
                (&Value::Null, &json!(0)),
                "{run}"
            );
            return;
        }
        assert!(Instant::now() < deadline, "{run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes until the server is gone; gives back the uids that were answered.
fn write_until_dead(client: &Client, who: usize, enough: &AtomicBool) -> Vec<String> {
    let mut answered = Vec::new();
    for n in 0.. {
        let uid = format!("w{who}-{n}");
        match client
            .try_post("/buffer/write", &item(&uid, &format!("{who}-{}", n / 2), f64::from(n % 2)).to_string())
        {
            Some((200, _)) => answered.push(uid),
            Some(other) => panic!("{other:?}"),
            None => break,
        }
        if answered.len() > 50 {
            enough.store(true, Relaxed);
        }
    }
    answered
}

/// Leases, acks and commits until the server is gone.
fn train_until_dead(client: &Client) {
    for step in 1.. {
        let ask = json!({"groups": 2, "wait_seconds": 0.2}).to_string();
        let Some((_, answer)) = client.try_post(&format!("{RUN}/lease"), &ask) else { return };
        let Some(lease) = answer["lease"].as_u64() else { continue };
        let verb = if step % 4 == 0 { "return" } else { "ack" };
        if client.try_post(&format!("{RUN}/leases/{lease}/{verb}"), "").is_none() {
            return;
        }
        if step % 3 == 0
            && client.try_post(&format!("{RUN}/commit"), &json!({"step": step}).to_string()).is_none()
        {
            return;
        }
    }
}

#[test]
fn a_killed_server_archives_everything_it_answered_once_and_with_its_fate() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(7);
    let mut answered: Vec<String> = Vec::new();
    for round in 0..4 {
        let mut server = start(dir.path());
        let (enough, server_url) = (AtomicBool::new(false), server.client());
        let mut told = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|who| {
                    let (client, enough) = (server_url.clone(), &enough);
                    scope.spawn(move || write_until_dead(&client, round * 10 + who, enough))
                })
                .collect();
            let client = server_url.clone();
            scope.spawn(move || train_until_dead(&client));
            let deadline = Instant::now() + Duration::from_secs(20);
            while !enough.load(Relaxed) && Instant::now() < deadline {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(dice.roll(1500)));
            server.kill();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(told.len() > 50);
        answered.append(&mut told);
    }
    let server = start(dir.path());
    let client = server.client();
    until_archived(&client);

    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines(dir.path(), false) {
        *count.entry(line["uid"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = count.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    for uid in &answered {
        assert!(count.contains_key(uid), "{uid} was answered and is not archived");
    }
    assert_eq!(client.get(&format!("{RUN}/books")).1["admitted"].as_u64(), Some(count.len() as u64));

    let mut fates: BTreeMap<String, (u64, Value)> = BTreeMap::new();
    for line in lines(dir.path(), true) {
        let (uid, seq) = (line["uid"].as_str().unwrap().to_owned(), line["seq"].as_u64().unwrap());
        let last = fates.entry(uid).or_insert((0, Value::Null));
        assert_ne!(last.0, seq, "told twice: {line}");
        if seq > last.0 {
            *last = (seq, line);
        }
    }
    for uid in count.keys() {
        let known = client.get(&format!("{RUN}/rollouts/{uid}")).1;
        let told = fates.get(uid).map_or("held", |(_, fate)| fate["status"].as_str().unwrap());
        let state = known["state"].as_str().unwrap();
        assert_eq!(told, if state == "leased" { "held" } else { state }, "{uid}: {known}");
        if state == "trained" {
            assert_eq!(fates[uid].1["step"].as_u64(), known["step"].as_u64(), "{uid}: {known}");
        }
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_place_that_cannot_be_written_stops_nobody_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("archive"), "a file where the folder should be").unwrap();
    let server = start(dir.path());
    let client = server.client();
    assert_eq!(client.post("/buffer/write", &item("u1", "a", 0.0)).0, 200);
    let deadline = Instant::now() + Duration::from_secs(20);
    let told = loop {
        let (_, run) = client.get(RUN);
        if let Some(told) = run["archive"]["error"].as_str() {
            assert!(run["archive"]["behind"].as_u64() > Some(0), "{run}");
            break told.to_owned();
        }
        assert!(Instant::now() < deadline, "{run}");
    };
    assert!(told.contains("archive/default"), "{told}");
    std::fs::remove_file(dir.path().join("archive")).unwrap();
    until_archived(&client);
    assert_eq!(lines(dir.path(), false).len(), 1);
}
