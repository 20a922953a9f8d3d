"""An unmodified slime-style client, pointed at Rollyard."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest
import requests

import trainer
from serving import Serve


def books(url: str) -> dict[str, int]:
    return requests.get(f"{url}/api/runs/default/books", timeout=10).json()


def test_a_training_step_gets_every_group_once(serve: Serve) -> None:
    url = serve("--allow-task-type", "math").url
    started = trainer.start_rollout(url, task_type="math", num_repeat_per_sample="4", num_process=8)
    assert started["message"] == "Rollout started"

    def generate(instance: int) -> None:
        for n in range(4):
            trainer.send_item(url, trainer.make_item(instance, reward=n % 2))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(generate, range(50)))
        items = asyncio.run(trainer.collect(url, count=200))

    assert Counter(str(item["instance_id"]) for item in items) == {str(n): 4 for n in range(50)}
    assert len({item["uid"] for item in items}) == 200
    assert all(abs(item["reward"]) == pytest.approx(1.0) for item in items)
    assert {item["raw_reward"] for item in items} == {0, 1}


def test_writers_and_a_trainer_at_once_across_kill_minus_nine(serve: Serve) -> None:
    server = serve("--group-size", "4")
    items = [trainer.make_item(f"i{n // 4}", reward=n % 2) for n in range(400)]
    answered: set[str] = set()

    def write(item: dict) -> None:
        # A client that retries until it is answered, with the same uid.
        for _ in range(200):
            try:
                trainer.send_item(server.url, item)
            except requests.RequestException:
                threading.Event().wait(0.05)
            else:
                answered.add(item["uid"])
                return
        raise AssertionError("never answered")

    with ThreadPoolExecutor(16) as pool:
        writing = [pool.submit(write, item) for item in items]
        while len(answered) < 100:
            threading.Event().wait(0.005)
        server.kill()
        server.start()
        for future in writing:
            future.result()
    delivered = asyncio.run(trainer.collect(server.url, count=400))
    assert Counter(item["uid"] for item in delivered) == {item["uid"]: 1 for item in items}


def test_a_trainer_that_is_cancelled_loses_nothing(serve: Serve) -> None:
    url = serve("--group-size", "2").url
    big = "x" * 1_000_000
    for n in range(16):
        trainer.send_item(url, trainer.make_item(f"i{n // 2}", reward=n % 2, text=big))

    async def hang_up() -> None:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{url}/get_rollout_data", json={})
            await answer.content.read(1000)
            # Gone before the answer is read.
            answer.close()

    asyncio.run(hang_up())
    items = asyncio.run(trainer.collect(url, count=16))
    assert len({item["uid"] for item in items}) == 16


def test_a_write_that_waits_for_room_is_let_in_by_a_read(serve: Serve) -> None:
    url = serve("--group-size", "2", "--max-buffer-size", "2").url
    for reward in (0, 1):
        trainer.send_item(url, trainer.make_item("a", reward))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(trainer.send_item, url, trainer.make_item("b", 1))
        assert len(asyncio.run(trainer.collect(url, count=2))) == 2
        assert waiting.result()["success"]


def test_nan_from_python_is_a_clear_error(serve: Serve) -> None:
    url = serve().url
    body = json.dumps(trainer.make_item("a", float("nan")))
    answer = requests.post(
        f"{url}/buffer/write", data=body, headers={"Content-Type": "application/json"}, timeout=10
    )
    assert answer.status_code == 400
    assert "NaN" in answer.json()["message"] and "reward" in answer.json()["message"]
    assert books(url)["admitted"] == 0


def test_a_gigabyte_is_refused_in_words(serve: Serve) -> None:
    url = serve().url

    def body() -> Iterator[bytes]:
        for _ in range(1024):
            yield b" " * (1 << 20)

    # With a declared length, and without one.
    sized = {"Content-Length": str(1 << 30)}
    for headers in (sized, {}):
        request = requests.Request("POST", f"{url}/buffer/write", data=body(), headers=headers)
        with requests.Session() as session:
            prepared = session.prepare_request(request)
            if headers:
                prepared.headers.pop("Transfer-Encoding", None)
                prepared.headers["Content-Length"] = headers["Content-Length"]
            answer = session.send(prepared, timeout=60)
        assert answer.status_code == 413
        assert "max-body-bytes" in answer.json()["message"]


def test_a_server_beyond_loopback_is_reached_by_a_url_with_the_token(serve: Serve) -> None:
    server = serve("--token", "s3cret")
    assert requests.get(f"{server.url}/buffer/stats", timeout=10).status_code == 401
    with_token = server.url.replace("http://", "http://me:s3cret@")
    trainer.send_item(with_token, trainer.make_item("a", 1))
    assert asyncio.run(trainer.get_rollout_data(with_token)) == ([], {})


def test_stats_have_the_names_the_dashboards_know(serve: Serve) -> None:
    url = serve("--group-size", "2").url
    trainer.send_item(url, trainer.make_item("a", 1))
    stats = requests.get(f"{url}/buffer/stats", timeout=10).json()
    expected = {"current_size": 1, "max_size": 1_000_000_000, "total_written": 1, "total_read": 0}
    assert {name: stats[name] for name in expected} == expected
