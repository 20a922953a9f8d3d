"""Sampling from a real server: ranks, retries, rewinds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import numpy as np
import pytest

import rollyard
from rollyard import AsyncClient, Client, Rollout, RolloutBatch, RolloutGroup, RolloutMetadata
from serving import Serve


def make_rollout(example: str, reward: float, *, weight_step: int = 0) -> Rollout:
    metadata = RolloutMetadata("worker_1", time.time(), weight_step)
    logprobs = np.array([-0.5, -0.25, -0.125], np.float32)
    return Rollout("maths", example, [1, 2], [3, 4, 5], logprobs, episode_reward=reward, metadata=metadata)


def make_batch(examples: range, **kwargs: int) -> RolloutBatch:
    groups = [
        RolloutGroup([make_rollout(str(n), reward, **kwargs) for reward in (0.0, 1.0, 1.0)]) for n in examples
    ]
    return RolloutBatch(groups)


@pytest.fixture
def client(serve: Serve) -> Iterator[Client]:
    with Client(serve().url, run="sampled") as client:
        client.make_run(mode="replay", max_samples=2, max_rollout_step_delay=3, max_token_step_delay=2)
        yield client


def test_rollouts_come_back_to_the_token_with_their_advantages(client: Client) -> None:
    written = client.add_batches([make_batch(range(4))])
    assert (written.accepted, written.rejected) == (12, ())
    sample = client.sample(0, 12)
    assert sample is not None and len(sample) == 12 and sample.oldest_version == -2
    rollouts = sample.to_rollouts()
    assert {rollout.env_example_id for rollout in rollouts} == {"0", "1", "2", "3"}
    for rollout, advantage in zip(rollouts, sample.advantages, strict=True):
        assert rollout.response_tokens.tolist() == [3, 4, 5]
        assert rollout.response_logprobs is not None
        assert rollout.response_logprobs.tolist() == [-0.5, -0.25, -0.125]
        assert rollout.metadata.weight_step == 0 and rollout.metadata.worker_id == "worker_1"
        assert advantage == pytest.approx(-1.0 if rollout.episode_reward == 0 else 0.5)
    batch = rollyard.training_batch(rollouts, sample.advantages, oldest_version=sample.oldest_version)
    assert batch["input_ids"].shape == (12, 5)
    assert set(sample.usage_counts) == {1}


def test_ranks_see_disjoint_shares_of_one_batch_and_the_same_again(client: Client) -> None:
    client.add_batches([make_batch(range(10))])
    shares = [client.sample(1, 12, process_id=rank, total_processes=4) for rank in range(4)]
    uids = [{row["uid"] for row in share.rollouts} for share in shares if share is not None]
    assert [len(share) for share in uids] == [3, 3, 3, 3]
    assert len(set.union(*uids)) == 12
    again = client.sample(1, 12, process_id=2, total_processes=4)
    assert again is not None and {row["uid"] for row in again.rollouts} == uids[2]
    assert client.ack(again).books.trained == 0, "used once of two times"
    assert client.pool()["lengths"]["maths"]["trained"]["count"] == 12


def test_a_rewind_gives_uses_back(client: Client) -> None:
    client.add_batches([make_batch(range(2))])
    uid = ""
    for step in (1, 2):
        sample = client.sample(step, 6)
        assert sample is not None
        uid = sample.rollouts[0]["uid"]
        client.ack(sample)
        client.commit(step)
    assert client.fate(uid).usage_count == 2 and client.books().trained == 6
    client.rewind(1)
    assert client.fate(uid).usage_count == 1 and client.books().held == 6


def test_what_is_too_old_is_dropped_with_its_reason(client: Client) -> None:
    client.add_batches([make_batch(range(2))])
    assert client.set_step(4).books.dropped_by_reason == {"stale_step": 6}
    assert client.sample(4, 6) is None
    with pytest.raises(rollyard.RefusedError, match="step 3 is before step 4"):
        client.set_step(3)


def test_a_rollout_of_later_weights_is_refused_by_name(client: Client) -> None:
    written = client.add_batches([make_batch(range(1), weight_step=7)])
    assert {one.code for one in written.rejected} == {"future_step"}
    infinite = make_rollout("x", 0.0)
    bad = Rollout("maths", "x", [1], [2], [-np.inf], metadata=infinite.metadata)
    [refused] = client.add_batches([RolloutBatch([RolloutGroup([bad])])]).rejected
    assert "infinite" in refused.message


def test_old_batches_give_their_rollouts_metadata(client: Client) -> None:
    bare = Rollout("maths", "x", [1], [2], [-0.5])
    batch = RolloutBatch([RolloutGroup([bare])], RolloutMetadata("old_1", time.time(), 0))
    client.add_batches([batch])
    sample = client.sample(0, 1)
    assert sample is not None and sample.to_rollouts()[0].metadata.worker_id == "old_1"


def test_the_awaited_client_samples_too(client: Client) -> None:
    async def go() -> int:
        async with AsyncClient(client.url, run="sampled") as awaited:
            waiting = asyncio.create_task(awaited.sample(0, 3, wait_secs=30))
            await awaited.add_batches([make_batch(range(1))])
            sample = await waiting
            assert sample is not None
            await awaited.ack(sample)
            assert (await awaited.pool())["batches_drawn"] == 1
            return len(sample)

    assert asyncio.run(go()) == 3
