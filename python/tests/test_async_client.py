"""The awaited client: the same calls, and cancelling any of them strands nothing."""

from __future__ import annotations

import asyncio
import gc
import inspect
import random
import time
from collections import Counter
from typing import Any

import pytest

import rollyard
from flaky import flaky
from rollyard import AsyncClient, AsyncLease, Client, Lease
from serving import Serve
from trainer import make_item


def make_rollouts(groups: int, *, text: str = "4") -> list[dict[str, Any]]:
    return [make_item(f"i{n // 2}", reward=n % 2, text=text) for n in range(groups * 2)]


@pytest.mark.parametrize(("blocking", "awaited"), [(Client, AsyncClient), (Lease, AsyncLease)])
def test_both_clients_have_the_same_calls(blocking: type, awaited: type) -> None:
    def calls(kind: type) -> dict[str, list[tuple[str, Any]]]:
        return {
            name: [(each.name, each.kind) for each in inspect.signature(call).parameters.values()]
            for name, call in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert calls(blocking) == calls(awaited)


def test_a_training_loop_with_commit_and_rewind(serve: Serve) -> None:
    async def train(url: str) -> None:
        async with AsyncClient(url) as client:
            assert (await client.write_many(make_rollouts(3))).accepted == 6
            assert not (await client.write(make_item("x", 1))).duplicate
            for step in (1, 2):
                lease = await client.lease(groups=1, wait_secs=10)
                assert lease is not None
                async with lease:
                    assert (await client.books()).leased == 2
                await client.commit(step)
            third = await client.lease()
            assert third is not None
            with pytest.raises(RuntimeError):
                async with third:
                    raise RuntimeError
            books = (await client.rewind(1)).books
            assert books.balanced and (books.trained, books.held, books.leased) == (2, 5, 0)

    asyncio.run(train(serve("--group-size", "2").url))


def test_readers_and_writers_at_once_see_every_rollout_once(serve: Serve) -> None:
    async def run(url: str) -> None:
        rollouts = make_rollouts(100)
        trained: list[str] = []

        async def train() -> None:
            while (lease := await client.lease(groups=1, wait_secs=2)) is not None:
                async with lease:
                    trained.extend(row["uid"] for row in lease.rollouts)

        async with AsyncClient(url) as client:
            await asyncio.gather(*(train() for _ in range(8)), *(client.write(row) for row in rollouts))
            assert Counter(trained) == Counter(row["uid"] for row in rollouts)
            assert (await client.books()).trained == 200

    asyncio.run(run(serve("--group-size", "2").url))


def test_a_lost_answer_is_asked_for_again(serve: Serve) -> None:
    async def run(url: str) -> None:
        with flaky(url) as proxy:
            async with AsyncClient(proxy.url) as client:
                proxy.cut(2)
                assert (await client.write(make_item("a", 1))).duplicate
                assert (await client.books()).admitted == 1

    asyncio.run(run(serve().url))


def test_cancelling_a_lease_at_any_moment_strands_nothing(serve: Serve) -> None:
    # Large enough to be on its way for a while.
    rollouts = make_rollouts(4, text="x" * 200_000)
    moments = random.Random(7)

    async def run(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.write_many(rollouts)
            began = time.perf_counter()
            lease = await client.lease()
            assert lease is not None
            usual_secs = time.perf_counter() - began
            await lease.give_back()
            cancelled = 0
            for _ in range(150):
                asking = asyncio.create_task(client.lease(groups=4, wait_secs=10))
                await asyncio.sleep(moments.uniform(0, usual_secs * 1.2))
                asking.cancel()
                [got] = await asyncio.gather(asking, return_exceptions=True)
                if isinstance(got, AsyncLease):
                    await got.give_back()
                    continue
                assert isinstance(got, asyncio.CancelledError)
                cancelled += 1
                await all_are_back(client)
            assert cancelled > 20

    asyncio.run(run(serve("--group-size", "2").url))


async def all_are_back(client: AsyncClient) -> None:
    deadline = time.monotonic() + 5
    while (books := await client.books()).leased:
        assert time.monotonic() < deadline, f"a lease is stranded: {books}"
        await asyncio.sleep(0.01)
    assert books.held == 8


def test_cancelling_a_wait_for_groups_leaves_the_groups_to_others(serve: Serve) -> None:
    async def run(url: str) -> None:
        async with AsyncClient(url) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.lease(groups=1, wait_secs=60), 0.2)
            await client.write_many(make_rollouts(1))
            lease = await client.lease(groups=1, wait_secs=5)
            assert lease is not None and await lease.ack()

    asyncio.run(run(serve("--group-size", "2").url))


# Nobody can close what belongs to an event loop that has ended.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_serves_one_event_loop_after_another(serve: Serve) -> None:
    client = AsyncClient(serve().url)
    for _ in range(3):
        asyncio.run(look(client))
    del client
    gc.collect()


async def look(client: AsyncClient) -> None:
    assert (await client.stats()).run == "default"


def test_a_server_that_is_down_is_named() -> None:
    async def run() -> None:
        async with AsyncClient("http://127.0.0.1:1", retries=0) as client:
            with pytest.raises(rollyard.NotReachableError, match="rollyard serve"):
                await client.stats()

    asyncio.run(run())
