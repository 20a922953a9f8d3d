//! A gateway that died, and the one after it.

use rollyard_test_engine::Settings as EngineSettings;
use serde_json::json;
use std::sync::atomic::Ordering;

use super::house::{House, chat};

#[tokio::test]
async fn sessions_go_on_after_a_crash_with_their_tokens() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({"instance_id": "i"})).await;
    house.says(&["one", "two"]);
    let mut body = chat("Go");
    let (_, said) = house.ask(&keys.api_key, &body).await;
    let before = house.gateway.find(&keys.session).unwrap().view();
    let house = house.restarted();
    let live = house.gateway.find(&keys.session).unwrap();
    let after = live.view();
    assert_eq!(serde_json::to_value(&after.turns).unwrap(), serde_json::to_value(&before.turns).unwrap());
    // The client whose connection broke asks once more, and gets what it would have got.
    let (_, again) = house.ask(&keys.api_key, &body).await;
    assert_eq!(again["choices"], said["choices"]);
    body["messages"]
        .as_array_mut()
        .unwrap()
        .extend([said["choices"][0]["message"].clone(), json!({"role": "user", "content": "And?"})]);
    let (_, next) = house.ask(&keys.api_key, &body).await;
    assert_eq!(next["choices"][0]["message"]["content"], "two");
    assert_eq!(live.view().turns.last().unwrap().follows, Some(0));
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    assert_eq!(house.yard.items().len(), 1);
    // Whoever did not hear that it was delivered says it again, to the next gateway too.
    let house = house.restarted();
    let live = house.gateway.by_reward_key(&keys.reward_key).unwrap();
    house.gateway.finish(&live, Some(1.0)).await.unwrap();
    house.gateway.sweep().await;
    assert!(live.row().facts.is_delivered);
    assert_eq!(house.yard.items().len(), 1);
}

#[tokio::test]
async fn a_rollout_that_could_not_be_delivered_is_delivered_later_and_is_the_same() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    house.ask(&keys.api_key, &chat("Go")).await;
    house.yard.is_away.store(true, Ordering::Relaxed);
    let live = house.gateway.find(&keys.session).unwrap();
    house.gateway.finish(&live, Some(0.25)).await.unwrap();
    assert!(!live.row().facts.is_delivered);
    let house = house.restarted();
    house.yard.is_away.store(false, Ordering::Relaxed);
    house.gateway.sweep().await;
    house.gateway.sweep().await;
    let items = house.yard.items();
    assert_eq!(items.len(), 1);
    assert_eq!((&items[0]["uid"], &items[0]["reward"]), (&json!(keys.session), &json!(0.25)));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_stops_the_start() {
    let house = House::new(EngineSettings::default()).await;
    assert!(house.gateway.recover([b"nonsense".to_vec()]).unwrap_err().contains("cannot be read"));
}
