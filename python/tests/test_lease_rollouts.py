"""From a lease to tensors: tokens are read from the server's bytes, the same for every rank that asks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import rollyard
from rollyard import AsyncClient, Client, MultiTurnLossMaskGenerator, Rollout, Tokenizer
from serving import Serve
from trainer import make_item

FLAGS = ("--group-size", "4")


def make_items(groups: int) -> list[dict[str, Any]]:
    """Items with tokens, each of another length."""
    items = []
    for n in range(groups * 4):
        tokens = list(range(n + 5))
        said = {"tokens": tokens, "response_length": 3, "rollout_log_probs": [-0.5, -0.25, -0.125]}
        items.append(make_item(f"i{n // 4}", reward=n % 2) | said)
    return items


def take(client: Client, **terms: Any) -> rollyard.Lease:
    lease = client.lease(wait_secs=10, **terms)
    assert lease is not None
    return lease


def test_a_lease_becomes_a_batch_and_is_committed(serve: Serve) -> None:
    with Client(serve(*FLAGS).url) as client:
        client.write_many(make_items(2))
        with take(client, groups=2) as lease:
            rollouts = lease.to_rollouts()
            batch = rollyard.training_batch(rollouts, [each.episode_reward for each in rollouts])
        client.commit(1)
        assert client.books().trained == 8
    assert batch["input_ids"].shape == (8, 12)
    assert (batch["policy_logprobs"].sum(1) == -0.875).all()
    # Rewards are normalised by the pipeline: in each group the good ones weigh what the bad ones do.
    assert batch["loss_weights"].sum() == 0 and batch["loss_weights"].any()


def test_rollouts_are_those_of_the_items(serve: Serve) -> None:
    with Client(serve(*FLAGS).url) as client:
        client.write_many(make_items(3))
        lease = take(client)
        rollouts = lease.to_rollouts()
        assert rollouts == [Rollout.from_item(item) for group in lease for item in group.items]
        assert rollouts == [Rollout.from_item(item) for item in lease.rollouts]
        assert [json.loads(item) for group in lease for item in group.items] == lease.rollouts
        assert all(rollout.exact for rollout in rollouts) and len(lease.groups[0]) == 4
        assert "rollouts=12" in repr(lease)


def test_what_is_changed_in_a_decoded_rollout_stays_changed(serve: Serve) -> None:
    with Client(serve(*FLAGS).url) as client:
        client.write_many(make_items(1))
        lease = take(client)
        lease.rollouts[0]["advantage"] = 1.5
        assert lease.rollouts[0]["advantage"] == 1.5


def test_a_rollout_gets_the_version_of_its_group(serve: Serve) -> None:
    with Client(serve(*FLAGS).url) as client:
        client.configure(version_spread_max=1)
        client.set_version(7)
        first, *others = make_items(2)
        client.write_many(others[3:])
        lease = take(client)
        [group] = lease
        assert (group.versions, group.version) == ((7, 7), 7)
        for rollout in lease.to_rollouts():
            assert rollout.metadata.weight_step == 7 and rollout.versions.tolist() == [7, 7, 7]
        # What a rollout says itself is what counts.
        client.write_many([first | {"weight_version": 6}, *others[:3]])
        lease = take(client)
        assert [group.versions for group in lease] == [(6, 7)] and lease.groups[0].version is None
        assert sorted(rollout.metadata.weight_step for rollout in lease.to_rollouts()) == [-1, -1, -1, 6]


def test_every_rank_gets_the_same_bytes(serve: Serve) -> None:
    url = serve(*FLAGS).url
    with Client(url) as first, Client(url) as second:
        first.write_many(make_items(8))
        lease = take(first, groups=8)
        told = []
        for client in (first, second):
            rollouts = client.fetch(lease.id).to_rollouts()
            batch = rollyard.tensor_dict(rollouts)
            shares = rollyard.balance([len(each) for each in rollouts], 4, equal_size=True)
            told.append((rollyard.digest(batch), shares))
        assert told[0] == told[1]
        assert told[0][0] == rollyard.digest(rollyard.tensor_dict(lease.to_rollouts()))
        assert sorted(row for rows in told[0][1] for row in rows) == list(range(32))


def test_text_becomes_tokens_only_with_masks(serve: Serve, tokenizer: Tokenizer) -> None:
    with Client(serve(*FLAGS).url) as client:
        with_tokens = make_items(1)
        items = [*with_tokens[:2], *(make_item("i0", reward=n) for n in (0, 1))]
        client.write_many(items)
        lease = take(client)
        bare = {item["uid"] for item in items[2:]}
        first = next(n for n, row in enumerate(lease.rollouts) if row["uid"] in bare)
        with pytest.raises(rollyard.RolloutError, match=rf"rollout {first} \(.*\): .* carries no tokens"):
            lease.to_rollouts()
        for kind in ("auto", "qwen3"):
            rollouts = lease.to_rollouts(MultiTurnLossMaskGenerator(tokenizer, kind))
            both = zip(lease.rollouts, rollouts, strict=True)
            assert {row["uid"] for row, rollout in both if not rollout.exact} == bare
        own = LastMessage(tokenizer, "last_message")
        assert sum(not rollout.exact and len(rollout) == 1 for rollout in lease.to_rollouts(own)) == 2


class LastMessage(MultiTurnLossMaskGenerator):
    """One token, however much was said."""

    def get_loss_mask(self, messages: Any, **_: Any) -> tuple[list[int], list[int]]:  # type: ignore[override]
        return [7], [1]


def test_an_awaited_lease_has_the_same_rollouts(serve: Serve) -> None:
    async def run(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.write_many(make_items(2))
            lease = await client.lease(groups=2, wait_secs=10)
            assert lease is not None
            async with lease:
                rollouts = lease.to_rollouts()
                assert rollouts == (await client.fetch(lease.id)).to_rollouts() and len(rollouts) == 8
            await client.commit(1)
            assert (await client.books()).trained == 8

    asyncio.run(run(serve(*FLAGS).url))
