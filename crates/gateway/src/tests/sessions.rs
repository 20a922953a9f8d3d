//! Sessions as those see them who open and reward them.

use rollyard_engine::executor::Pace;
use rollyard_test_engine::Settings as EngineSettings;
use serde_json::json;
use std::num::NonZeroU32;

use super::house::{House, chat};
use crate::delivery::RunLoad;
use crate::refusal::Kind;
use crate::session::opening::Opening;
use crate::settings::Settings;

#[tokio::test]
async fn a_group_goes_out_when_its_last_session_is_over() {
    let house = House::new(EngineSettings::default()).await;
    let mut keys = Vec::new();
    for slot in 0..3 {
        keys.push(house.open(json!({"instance_id": "i", "slot": slot, "group_size": 3})).await);
    }
    for (at, key) in keys.iter().enumerate().take(2) {
        house.ask(&key.api_key, &chat("Go")).await;
        let live = house.gateway.find(&key.session).unwrap();
        house.gateway.finish(&live, Some(at as f64)).await.unwrap();
        assert!(house.yard.items().is_empty(), "one is still open");
    }
    let last = house.gateway.find(&keys[2].session).unwrap();
    house.gateway.abandon(&last, "the sandbox broke").await.unwrap();
    house.gateway.hand_on(&last).await;
    let items = house.yard.items();
    assert_eq!(items.len(), 2);
    assert!(items.iter().all(|item| item["group_size"] == 2));
    let deliveries = house.yard.deliveries.lock().unwrap();
    assert!(deliveries.len() == 1 && deliveries[0].closes_group);
}

#[tokio::test]
async fn passes_over_the_same_prompt_are_groups_of_their_own_however_they_overlap_and_restart() {
    let slot = |slot: u32| json!({"instance_id": "i", "slot": slot, "group_size": 2});
    let mut house = House::new(EngineSettings::default()).await;
    let first = [house.open(slot(0)).await, house.open(slot(1)).await];
    async fn finish(house: &House, keys: &crate::gateway::SessionKeys) {
        house.ask(&keys.api_key, &chat("Go")).await;
        let live = house.gateway.find(&keys.session).unwrap();
        house.gateway.finish(&live, Some(1.0)).await.unwrap();
    }
    finish(&house, &first[0]).await;
    // The second pass begins while the first still waits for its last, and goes on when that is delivered.
    let early = house.open(slot(0)).await;
    finish(&house, &first[1]).await;
    assert_eq!(house.yard.items().len(), 2);
    house = house.restarted();
    let late = house.open(slot(1)).await;
    finish(&house, &early).await;
    finish(&house, &late).await;
    let deliveries = house.yard.deliveries.lock().unwrap();
    assert_eq!(deliveries.iter().map(|one| one.items.len()).collect::<Vec<_>>(), [2, 2]);
}

#[tokio::test]
async fn rewards_may_be_repeated_but_not_after_the_end() {
    let house = House::new(EngineSettings::default()).await;
    let keys = house.open(json!({})).await;
    house.ask(&keys.api_key, &chat("Go")).await;
    let live = house.gateway.find(&keys.session).unwrap();
    let refusal = house.gateway.finish(&live, None).await.unwrap_err();
    assert!(refusal.message.contains("no reward"), "{refusal}");
    for _ in 0..2 {
        house.gateway.reward(&live, None, 0.5).await.unwrap();
        house.gateway.finish(&live, Some(0.5)).await.unwrap();
    }
    assert_eq!(house.yard.items().len(), 1);
    let refusal = house.gateway.reward(&live, None, 0.75).await.unwrap_err();
    assert!(refusal.message.contains("the session is ended"), "{refusal}");
    assert!(house.gateway.reward(&live, None, f64::NAN).await.is_err());
    assert!(house.gateway.abandon(&live, "late").await.is_err());
}

#[tokio::test]
async fn a_session_expires_with_a_reason_and_leaves_what_it_was_told_to() {
    let house = House::new(EngineSettings::default()).await;
    for (opening, left) in [
        (json!({"budget": {"secs": 0.05}}), 0),
        (json!({"budget": {"secs": 0.05}, "reward_if_expired": -1.0}), 1),
    ] {
        let keys = house.open(opening).await;
        house.ask(&keys.api_key, &chat("Go")).await;
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
        house.gateway.sweep().await;
        let row = house.gateway.find(&keys.session).unwrap().row();
        assert_eq!((row.facts.state, row.facts.reason.as_deref()), ("expired", Some("its 0.05 s were over")));
        let (status, said) = house.ask(&keys.api_key, &chat("More")).await;
        assert_eq!(status.as_u16(), 403, "{said}");
        assert_eq!(house.yard.items().len(), left);
    }
}

#[tokio::test]
async fn a_key_is_good_for_its_own_session_and_scope() {
    let house = House::new(EngineSettings::default()).await;
    let (one, two) = (house.open(json!({})).await, house.open(json!({})).await);
    assert_eq!(&*house.gateway.by_key(&one.api_key).unwrap().id, one.session);
    let forged = one.api_key.replace(&one.session, &two.session);
    for wrong in
        [one.reward_key.as_str(), &forged, "sk-", "", "sk-x-y", &one.api_key[..one.api_key.len() - 1]]
    {
        assert_eq!(house.gateway.by_key(wrong).unwrap_err().kind, Kind::Unauthorized, "{wrong}");
    }
    assert_eq!(house.gateway.by_reward_key(&one.api_key).unwrap_err().kind, Kind::Forbidden);
    assert_eq!(&*house.gateway.by_reward_key(&two.reward_key).unwrap().id, two.session);
}

#[tokio::test]
async fn sessions_are_opened_at_the_pace_of_the_trainer() {
    let two = NonZeroU32::new(2).unwrap();
    let pace =
        Pace { max_concurrent: NonZeroU32::new(100).unwrap(), batch: two, max_head_offpolicyness: Some(0) };
    let house =
        House::with(EngineSettings::default(), Settings { pace: Some(pace), ..Settings::default() }).await;
    for _ in 0..2 {
        house.open(json!({})).await;
    }
    let refusal = house.gateway.open(Opening::default()).await.unwrap_err();
    assert_eq!(refusal.kind, Kind::NoCapacity);
    assert!(refusal.retry_after.is_some() && refusal.message.contains("2 are under way"), "{refusal}");
    *house.yard.load.lock().unwrap() = RunLoad { steps: 1, accepted: 0 };
    house.open(json!({})).await;
}

#[tokio::test]
async fn what_a_session_is_opened_with_is_checked() {
    let house = House::new(EngineSettings::default()).await;
    for (opening, expected) in [
        (json!({"budget": {"secs": 0}}), "budget.secs is 0"),
        (json!({"budget": {"turns": 0}}), "budget.turns is 0"),
        (json!({"slot": 4, "group_size": 4}), "slot is 4, but the group has the slots 0 to 3"),
        (json!({"group_size": 0}), "group_size is 0"),
        (json!({"discount": 1.5}), "discount is 1.5"),
    ] {
        let opening: Opening = serde_json::from_value(opening).unwrap();
        let refusal = house.gateway.open(opening).await.unwrap_err();
        assert!(refusal.message.contains(expected), "{refusal}");
    }
}
