//! Large rollouts that do not go through the owner of their run.

use crate::cluster::{Yard, metrics, within, write};
use crate::program::{Client, agent, item};
use rollyard_core::wire::reference::{self, Stored};
use rollyard_test_engine::S3Server;
use serde_json::{Value, json};

/// More than goes through the log.
fn large(uid: &str, instance: &str, reward: f64, bytes: usize) -> Value {
    let mut item = item(uid, instance, reward);
    item["padding"] = json!(uid.chars().cycle().take(bytes).collect::<String>());
    item
}

fn direct_bytes(yard: &Yard, no: usize) -> u64 {
    let metrics = metrics(&yard.nodes[no].server.url);
    let line = metrics.lines().find(|line| line.starts_with("rollyard_cluster_direct_bytes_total"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap()
}

/// The rows of a read, by uid.
fn rows(client: &Client, run: &str, count: usize) -> Vec<Value> {
    let (status, body) = client.post(&format!("/runs/{run}/get_rollout_data"), &json!({"batch_size": count}));
    assert_eq!(status, 200, "{body}");
    let mut rows = body["data"]["data"].as_array().unwrap().clone();
    rows.sort_by_key(|row| row["uid"].as_str().unwrap().to_owned());
    rows
}

fn blob_bytes(yard: &Yard, run: &str) -> u64 {
    let told = yard.nats.monitor("/jsz?streams=true").unwrap();
    let streams = told["account_details"][0]["stream_detail"].as_array().unwrap().clone();
    let bucket = streams.iter().find(|detail| {
        detail["name"].as_str().is_some_and(|name| name.starts_with("OBJ_") && name.ends_with(run))
    });
    bucket.map_or(0, |bucket| bucket["state"]["bytes"].as_u64().unwrap())
}

#[test]
fn the_node_that_is_asked_puts_large_rollouts_past_the_owner() {
    let yard = Yard::start(2);
    let run = yard.run_of(1);
    let one = [large("a", "x", 0.0, 200_000), large("b", "x", 1.0, 2_000_000)];
    for item in &one {
        write(&yard.ask(0), &run, item);
    }
    // A body that is kept, and one that streams; with small ones, bad ones and empty lines between.
    for (first, size) in [(0, 100_000), (10, 500_000)] {
        let mut lines: Vec<String> = (first..first + 6)
            .map(|n| large(&format!("l{n:02}"), &format!("g{}", n / 2), f64::from(n % 2), size).to_string())
            .collect();
        lines.insert(2, String::new());
        lines.insert(4, item(&format!("s{first}-a"), &format!("s{first}"), 0.0).to_string());
        lines.insert(5, item(&format!("s{first}-b"), &format!("s{first}"), 1.0).to_string());
        lines.insert(7, format!(r#"{{"uid": 1, "padding": "{}"}}"#, "x".repeat(size)));
        let (status, told) =
            yard.ask(0).try_post(&format!("/api/runs/{run}/rollouts"), &lines.join("\n")).unwrap();
        assert_eq!((status, &told["accepted"]), (200, &json!(8)), "{told}");
        assert_eq!((&told["rejected_total"], &told["rejected"][0]["line"]), (&json!(1), &json!(8)), "{told}");
        // Writing twice is once, by reference too.
        let again = yard.ask(0).try_post(&format!("/api/runs/{run}/rollouts"), &lines.join("\n")).unwrap().1;
        assert_eq!((&again["accepted"], &again["duplicates"]), (&json!(0), &json!(8)), "{again}");
    }
    // The same uid with other content is refused, as ever.
    let (status, told) =
        yard.ask(0).post(&format!("/runs/{run}/buffer/write"), &large("a", "x", 0.5, 200_000));
    assert_eq!((status, &told["error"]["code"]), (409, &json!("uid_taken")), "{told}");
    assert!(direct_bytes(&yard, 0) > 2_200_000 + 600_000 + 3_000_000);
    assert_eq!(direct_bytes(&yard, 1), 0);
    assert!(blob_bytes(&yard, &run) > 5_000_000);

    let read = rows(&yard.ask(1), &run, 18);
    assert_eq!(read.len(), 18);
    for (row, expected) in read.iter().zip(&one) {
        assert_eq!((&row["uid"], &row["padding"]), (&expected["uid"], &expected["padding"]));
    }
    let long = read.iter().find(|row| row["uid"] == "l13").unwrap();
    assert_eq!(long["padding"].as_str().unwrap().len(), 500_000);
    // What is consumed takes its blobs along, once its segment goes: nothing but the owner decides that.
    let (status, fate) = yard.ask(0).get(&format!("/api/runs/{run}/rollouts/a"));
    assert_eq!(status, 200, "{fate}");
}

#[test]
fn what_was_stored_for_one_owner_is_stored_again_for_the_next() {
    let mut yard = Yard::start(3);
    let run = yard.run_of(1);
    let (whole, claim) = (large("old", "old", 1.0, 100_000).to_string(), claim_of(&yard, &run));
    let (stale, _) = reference::of_rollout(whole.as_bytes(), claim).unwrap().unwrap();
    yard.nodes[1].server.kill();
    for n in 0..4 {
        let item = large(&format!("u{n}"), &format!("g{}", n / 2), f64::from(n % 2), 100_000 + n as usize);
        write(&yard.ask(if n % 2 == 0 { 0 } else { 2 }), &run, &item);
    }
    // A reference for the owner that is gone: not an error of whoever sends it, but to be done again.
    let path = format!("/api/runs/{run}/rollouts");
    let (status, told) = yard.ask(0).try_post(&path, std::str::from_utf8(&stale).unwrap()).unwrap();
    assert_eq!((status, &told["rejected"][0]["code"]), (200, &json!("not_stored")), "{told}");
    assert_eq!(yard.ask(0).try_post(&path, &whole).unwrap().1["accepted"], 1);
    assert_eq!(rows(&yard.ask(2), &run, 4).len(), 4);
}

fn claim_of(yard: &Yard, run: &str) -> u64 {
    let nodes = yard.ask(0).get("/api/nodes").1;
    let runs = nodes["runs"].as_array().unwrap();
    runs.iter().find(|placed| placed["run"] == run).unwrap()["epoch"].as_u64().unwrap()
}

#[test]
fn a_producer_puts_a_rollout_into_the_bucket_and_writes_what_stands_for_it() {
    let bucket = S3Server::start(&["blobs"]);
    let flags = vec!["--blobs".to_owned(), "s3://blobs/yard".to_owned()];
    let yard = Yard::start_with(2, flags, bucket.vars());
    let run = yard.run_of(1);
    let client = yard.ask(0);
    let (uploads, rollouts) = (format!("/api/runs/{run}/uploads"), format!("/api/runs/{run}/rollouts"));
    let whole: Vec<String> =
        (0..2).map(|n| large(&format!("u{n}"), "g", f64::from(n), 300_000).to_string()).collect();
    let facts = |n: usize| Stored::of(whole[n].as_bytes(), 0).unwrap();
    let asked: Vec<Value> = (0..2)
        .map(|n| json!({"uid": format!("u{n}"), "xxh3": format!("{:016x}", facts(n).digest)}))
        .collect();
    let (status, told) = client.post(&uploads, &json!({"rollouts": asked}));
    assert_eq!((status, &told["inline_bytes_max"]), (200, &json!(65536)), "{told}");
    let claim = told["claim"].as_u64().unwrap();
    let reference = |n: usize| {
        String::from_utf8(reference::of_rollout(whole[n].as_bytes(), claim).unwrap().unwrap().0).unwrap()
    };
    for n in 0..2 {
        // Not before it is there.
        let (_, early) = client.try_post(&rollouts, &reference(n)).unwrap();
        assert_eq!(
            (&early["rejected"][0]["code"], &early["rejected"][0]["field"]),
            (&json!("not_stored"), &json!("stored")),
            "{early}"
        );
        let url = told["urls"][n].as_str().unwrap();
        assert!(url.contains("X-Amz-Signature") && url.starts_with(&bucket.endpoint()), "{url}");
        let put = agent().put(url).send(&whole[n]).unwrap();
        assert_eq!(put.status().as_u16(), 200);
        let (_, written) = client.try_post(&rollouts, &reference(n)).unwrap();
        assert_eq!(written["accepted"], 1, "{written}");
    }
    assert_eq!(direct_bytes(&yard, 0) + direct_bytes(&yard, 1), 0, "no node has seen the bytes");
    let read = rows(&client, &run, 2);
    let padding = |n: usize| serde_json::from_str::<Value>(&whole[n]).unwrap()["padding"].clone();
    assert_eq!((&read[0]["padding"], &read[1]["padding"]), (&padding(0), &padding(1)));
    // Asked again after all is over, it is still the same rollout.
    within(10.0, "the read is acked", || client.get(&format!("/api/runs/{run}/books")).1["trained"] == 2);
    assert_eq!(client.try_post(&rollouts, &reference(0)).unwrap().1["duplicates"], 1);
    for (bad, part) in [
        (json!({"rollouts": [{"uid": "u", "xxh3": "12"}]}), "\"12\""),
        (json!({"rollouts": vec![asked[0].clone(); 1001]}), "1000"),
        (json!({"rollout": []}), "rollout"),
    ] {
        let (status, told) = client.post(&uploads, &bad);
        assert!(status == 400 && told["error"]["message"].as_str().unwrap().contains(part), "{told}");
    }
}

#[test]
fn a_server_that_keeps_payloads_itself_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = crate::program::Server::start(dir.path(), &[]);
    let client = server.client();
    let whole = large("u", "g", 1.0, 100_000).to_string();
    let (reference, _) = reference::of_rollout(whole.as_bytes(), 1).unwrap().unwrap();
    let (status, told) = client.try_post("/buffer/write", std::str::from_utf8(&reference).unwrap()).unwrap();
    assert_eq!(
        (status, &told["error"]["code"], &told["error"]["field"]),
        (400, &json!("no_blobs"), &json!("stored")),
        "{told}"
    );
    let (status, told) = client.post("/api/runs/default/uploads", &json!({"rollouts": []}));
    assert_eq!((status, &told["error"]["code"]), (409, &json!("no_uploads")), "{told}");
    // JetStream's own store has no addresses either; there a node puts them.
    let yard = Yard::start(1);
    let (status, told) = yard
        .ask(0)
        .post("/api/runs/default/uploads", &json!({"rollouts": [{"uid": "u", "xxh3": "0".repeat(16)}]}));
    assert_eq!((status, &told["error"]["code"]), (409, &json!("no_uploads")), "{told}");
}
