//! Tasks that are stopped, cut and started again.

use rollyard_test_engine::Settings;
use serde_json::json;
use std::sync::Arc;

use super::{MemoryShelf, Problems, begin, engine, four, payload, run, uids};
use crate::engines::until;
use crate::examples;

#[tokio::test]
async fn started_again_it_makes_what_is_missing_and_nothing_twice() {
    let server = engine(Settings { latency_ms: 3, ..four() }).await;
    let problems = Problems::new(50);
    let over = json!({"num_epoch": 2, "num_repeat_per_sample": 3, "max_concurrent": 8});
    let fields = payload(&server.url(), &problems.path(), over);
    let shelf = Arc::new(MemoryShelf::default());
    for is_killed in [false, true] {
        let running = begin(&fields, &shelf);
        running.written(shelf.len() + 40).await;
        if is_killed {
            running.task.abort();
            continue;
        }
        running.stop.cancel();
        let summary = running.end().await.unwrap();
        assert!(summary.stopped);
        // What was made is there.
        assert_eq!(summary.counts.made, shelf.len() as u64);
        assert!(shelf.len() < 300);
    }
    let before = shelf.len() as u64;
    let counts = run(&fields, &shelf).await.counts;
    assert_eq!(shelf.uids(), uids(0..50, 2, 3));
    assert_eq!(counts.total, 300);
    // A killed one may still have been writing when it was asked what is there.
    assert!(counts.known >= before && counts.known + counts.written == 300, "{counts:?}");
    let counts = run(&fields, &shelf).await.counts;
    assert_eq!((counts.known, counts.made), (300, 0));
}

#[tokio::test]
async fn what_is_there_is_asked_in_blocks_and_not_made() {
    let server = engine(four()).await;
    let problems = Problems::new(3000);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.fill(uids(0..3000, 1, 4));
    let fields = payload(&server.url(), &problems.path(), json!({"num_repeat_per_sample": 4}));
    let counts = run(&fields, &shelf).await.counts;
    assert_eq!((counts.total, counts.known, server.counters().requests), (12_000, 12_000, 0));
    let blocks: Vec<usize> = shelf.asked().iter().map(Vec::len).collect();
    assert_eq!(blocks, [4096, 4096, 12_000 - 2 * 4096]);
}

#[tokio::test]
async fn a_stop_does_not_wait_for_the_engine() {
    let folder = examples::model();
    let server = engine(Settings { hang: true, vocabulary: 600, ..Settings::default() }).await;
    let problems = Problems::new(20);
    let over = json!({"max_concurrent": 5, "tokenizer_path": folder.path()});
    let running = begin(&payload(&server.url(), &problems.path(), over), &Arc::default());
    until("five are under way", || server.counters().in_flight == 5).await;
    running.stop.cancel();
    let summary = running.end().await.unwrap();
    assert!(summary.stopped);
    assert_eq!((summary.counts.written, summary.counts.in_flight), (0, 0));
    until("the engine is told", || server.counters().in_flight == 0).await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_an_engine_that_is_away() {
    let server = engine(four()).await;
    let url = server.url();
    drop(server);
    let problems = Problems::new(3);
    let running = begin(&payload(&url, &problems.path(), json!({})), &Arc::default());
    until("the engine is missed", || running.progress.last_error().is_some()).await;
    running.stop.cancel();
    assert!(running.end().await.unwrap().stopped);
}
