"""`start_rollout` and `get_rollout_data`: slime's two calls, with the errors it documents."""

from __future__ import annotations

import asyncio
import json
import pathlib
import pickle
import threading
import time
from typing import Any

import aiohttp
import pytest

import rollyard
from rollyard import Client
from rollyard.client.address import Address
from rollyard.slime import ClientError, RolloutTimeoutError, get_rollout_data, start_rollout
from rollyard.slime.read import check
from rollyard.slime.start import start_payload
from serving import Serve
from slimetrainer import TASK, make_args, make_items, serve_slime, write


def test_the_start_says_what_the_seed_says(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    args = make_args(url, tmp_path, num_epoch=None, n_samples_per_prompt=8)
    answer = start_rollout(url, args, {"0": ["a", "b"], "1": [], "2": [7, "a"]})
    assert (answer["message"], answer["run"], answer["group_size"]) == ("Rollout started", "default", 8)
    with Client(url) as client:
        told = client.stats().start
        assert client.stats().config["keep_commits"] == 4
    assert told == {
        "num_process": 4,
        "num_epoch": 3,
        "remote_engine_url": "http://127.0.0.1:1",
        "remote_buffer_url": url,
        "task_type": TASK,
        "input_file": str(tmp_path / "prompts.jsonl"),
        "num_repeat_per_sample": 8,
        "max_tokens": 64,
        "sampling_params": {"max_tokens": 64, "temperature": 0.8, "top_p": 0.9},
        "tokenizer_path": args.hf_checkpoint,
        "skip_instance_ids": ["a", "b", 7, "a"],
        "keep_commits": 4,
    }


KEEP: list[tuple[int | None, int]] = [(None, 2), (0, 2), (1, 3), (20, 22)]


@pytest.mark.parametrize(("save_interval", "expected"), KEEP)
def test_what_lies_after_a_checkpoint_is_kept(
    tmp_path: pathlib.Path, save_interval: int | None, expected: int
) -> None:
    args = make_args("http://h", tmp_path, save_interval=save_interval)
    assert start_payload(args, {})["keep_commits"] == expected


def test_a_run_that_keeps_more_goes_on_doing_so(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    with Client(url) as client:
        client.configure(keep_commits=9)
        start_rollout(url, make_args(url, tmp_path), {})
        assert client.stats().config["keep_commits"] == 9


@pytest.mark.parametrize(("host", "expected"), [("::1", "http://[::1]:1"), ("[::1]", "http://[::1]:1")])
def test_a_router_may_have_an_address_of_ipv6(tmp_path: pathlib.Path, host: str, expected: str) -> None:
    args = make_args("http://h", tmp_path, sglang_router_ip=host)
    assert start_payload(args, {})["remote_engine_url"] == expected


def test_a_refusal_is_raised_at_once(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    with pytest.raises(rollyard.RefusedError, match="known are.*math"):
        start_rollout(url, make_args(url, tmp_path, rollout_task_type="juggling"), {})
    with pytest.raises(rollyard.RefusedError, match="no-such-file"):
        start_rollout(url, make_args(url, tmp_path, prompt_data=str(tmp_path / "no-such-file")), {})


def test_a_server_that_is_not_there_yet_is_waited_for(
    serve: Serve, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve_slime(serve, tmp_path)
    server.stop()
    told: dict[str, Any] = {}
    args = make_args(server.url, tmp_path)
    trainer = threading.Thread(target=lambda: told.update(start_rollout(server.url, args, {})))
    trainer.start()
    deadline = time.monotonic() + 30
    while not any("starting the rollouts is tried until it works" in line for line in caplog.messages):
        assert time.monotonic() < deadline, caplog.messages
        time.sleep(0.02)
    server.start()
    trainer.join(timeout=30)
    assert told["message"] == "Rollout started"


ADDRESSES: list[tuple[str, tuple[str, str]]] = [
    ("http://h:8889", ("http://h:8889", "default")),
    ("http://h:8889/", ("http://h:8889", "default")),
    ("http://h:8889/runs/seven", ("http://h:8889", "seven")),
    ("http://h:8889/runs/seven/", ("http://h:8889", "seven")),
    ("http://any:secret@h/runs/a.b", ("http://any:secret@h", "a.b")),
    ("https://h/yard/runs/seven", ("https://h/yard", "seven")),
]


@pytest.mark.parametrize(("url", "expected"), ADDRESSES)
def test_a_url_names_a_server_and_a_run(url: str, expected: tuple[str, str]) -> None:
    address = Address.of(url)
    assert (address.server, address.run) == expected
    assert "secret" not in address.shown and "secret" not in repr(address)


def test_a_url_that_names_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match="/runs/NAME"):
        Address.of("http://h/runs/a/get_rollout_data")


def test_a_read_takes_what_is_ready(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(3))
    some, meta = asyncio.run(get_rollout_data(url, num=2))
    assert [item["uid"] for item in some] == ["i0:0:0", "i0:0:1"] and meta["total_samples"] == 6
    rest, _ = asyncio.run(get_rollout_data(f"{url}/runs/default"))
    assert len(rest) == 4


def test_a_read_waits(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url

    async def read() -> int:
        reading = asyncio.create_task(get_rollout_data(url, timeout=30))
        await asyncio.to_thread(write, url, make_items(1))
        return len((await reading)[0])

    assert asyncio.run(read()) == 2


def test_a_read_ends_with_the_errors_that_slime_documents(serve: Serve, tmp_path: pathlib.Path) -> None:
    server = serve_slime(serve, tmp_path)
    with pytest.raises(asyncio.TimeoutError, match=r"within 0.05 seconds: 4 rollouts of .*/runs/default"):
        asyncio.run(get_rollout_data(server.url, num=4, timeout=0.05))
    with pytest.raises(aiohttp.ClientError, match="unknown|no run"):
        asyncio.run(get_rollout_data(f"{server.url}/runs/nobody"))
    server.stop()
    with pytest.raises(aiohttp.ClientError, match="no server is reached") as caught:
        asyncio.run(get_rollout_data(server.url))
    assert isinstance(caught.value, ConnectionError) and isinstance(caught.value, ClientError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), ClientError)
    assert issubclass(RolloutTimeoutError, TimeoutError)


def test_an_item_without_a_field_is_named() -> None:
    item = make_items(1)[0]
    check(item)
    for name in ("instance_id", "messages", "reward", "extra_info"):
        with pytest.raises(ValueError, match=f"'i0:0:0' has no {name}"):
            check({key: value for key, value in item.items() if key != name})
    with pytest.raises(ValueError, match="None has no uid, no reward"):
        check(json.loads('{"instance_id": 1, "messages": [], "extra_info": {}}'))
