//! Shelves that are full, refuse, or break.

use rollyard_engine::task::TaskError;
use rollyard_test_engine::Settings;
use serde_json::json;
use std::sync::Arc;

use super::{MemoryShelf, Problems, begin, engine, four, payload, run, uids};
use crate::engines::until;

#[tokio::test]
async fn a_full_shelf_is_waited_for() {
    let server = engine(four()).await;
    let problems = Problems::new(50);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.set_room(Some(10));
    let running = begin(&payload(&server.url(), &problems.path(), json!({})), &shelf);
    until("the shelf is full", || {
        running.progress.last_error().is_some_and(|error| error.contains("no room"))
    })
    .await;
    assert_eq!(shelf.len(), 10);
    shelf.set_room(None);
    let counts = running.end().await.unwrap().counts;
    assert_eq!((counts.written, counts.refused, counts.last_error), (50, 0, None));
    assert_eq!(shelf.uids(), uids(0..50, 1, 1));
}

#[tokio::test]
async fn a_full_shelf_holds_the_engine_back_and_lets_itself_be_stopped() {
    // As many are made as are under way and as may wait.
    for (problems, made) in [(3000, 1028), (5, 5)] {
        let server = engine(four()).await;
        let problems = Problems::new(problems);
        let shelf = Arc::new(MemoryShelf::default());
        shelf.set_room(Some(0));
        let running = begin(&payload(&server.url(), &problems.path(), json!({"max_concurrent": 4})), &shelf);
        until("nothing more is begun", || running.progress.counts().made == made).await;
        running.stop.cancel();
        let summary = running.end().await.unwrap();
        assert!(summary.stopped);
        assert_eq!((summary.counts.made, summary.counts.written), (made, 0));
        assert_eq!(server.counters().requests, made);
    }
}

#[tokio::test]
async fn a_full_shelf_does_not_keep_an_error_to_itself() {
    let server = engine(Settings { fail_where: Some("What is".into()), fail_status: 400, ..four() }).await;
    let problems = Problems::new(100);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.set_room(Some(0));
    let error = begin(&payload(&server.url(), &problems.path(), json!({})), &shelf).end().await.unwrap_err();
    assert!(matches!(error, TaskError::AllFailed { .. }), "{error}");
}

#[tokio::test]
async fn what_was_written_by_somebody_else_counts_as_done() {
    let server = engine(four()).await;
    let problems = Problems::new(5);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.refuse("p_2:0:0", "uid_taken");
    let counts = run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await.counts;
    assert_eq!((counts.made, counts.written, counts.refused), (5, 5, 0));
}

#[tokio::test]
async fn one_that_is_refused_is_counted_and_told() {
    let server = engine(four()).await;
    let problems = Problems::new(5);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.refuse("p_2:0:0", "too_large");
    let counts = run(&payload(&server.url(), &problems.path(), json!({})), &shelf).await.counts;
    assert_eq!((counts.made, counts.written, counts.refused), (5, 4, 1));
    assert_eq!(counts.last_error.unwrap(), "the yard refused a rollout: p_2:0:0 is not wanted (too_large)");
}

#[tokio::test]
async fn a_yard_that_takes_nothing_ends_the_task() {
    let server = engine(four()).await;
    let problems = Problems::new(500);
    for is_broken in [false, true] {
        let shelf = Arc::new(MemoryShelf::default());
        (0..500).for_each(|n| shelf.refuse(&format!("p_{n}:0:0"), "wrong_mode"));
        if is_broken {
            shelf.break_down();
        }
        let running = begin(&payload(&server.url(), &problems.path(), json!({"max_concurrent": 4})), &shelf);
        let error = running.end().await.unwrap_err();
        match is_broken {
            false => assert!(matches!(error, TaskError::Refused { times: 64, .. }), "{error}"),
            true => assert_eq!(error.to_string(), "the rollouts cannot be written: the disk is gone"),
        }
    }
}

#[tokio::test]
async fn what_finishes_while_the_shelf_is_busy_is_written_together() {
    let server = engine(four()).await;
    let problems = Problems::new(200);
    let shelf = Arc::new(MemoryShelf::default());
    shelf.set_busy(true);
    let running = begin(&payload(&server.url(), &problems.path(), json!({})), &shelf);
    until("all are made", || running.progress.counts().made == 200).await;
    shelf.set_busy(false);
    running.end().await.unwrap();
    let calls = shelf.calls();
    assert_eq!((calls.len(), calls.iter().sum::<usize>()), (2, 200), "{calls:?}");
}
