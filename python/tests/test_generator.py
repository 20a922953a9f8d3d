"""Generators at work: real files, processes, server and engine, and everything that can go wrong."""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

import rollyard
from generating import AS_WRITTEN, Generate, is_gone, items_of
from rollyard.generator import BaseGenerator, InputError
from serving import Serve
from testengine import StartEngine, TestEngine, until


def uids(instances: Any, epochs: Any, repeats: int = 2) -> set[str]:
    return {f"{name}:{epoch}:{n}" for name in instances for epoch in epochs for n in range(repeats)}


def test_every_rollout_is_written_under_its_place_in_the_plan(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    said = generation.run(num_epoch="2")
    assert "24 of 24 written, 0 failed" in said
    items = items_of(yard.url)
    assert items.keys() == uids(range(6), (0, 1))
    item = items["3:1:1"]
    assert item["instance_id"] == 3 and item["epoch"] == 1 and item["reward"] == 1.0
    assert [message["role"] for message in item["messages"]] == ["user", "assistant"]
    extra = item["extra_info"]
    assert float(extra.pop("timestamp")) > 1.7e9
    assert extra == {
        "label": "3",
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 1,
        "round_number": 1,
        "rollout_index": 1,
        "finish_reason": "length",
    }
    texts = {item["messages"][-1]["content"] for item in items.values()}
    assert len(texts) == len(items), "every rollout has a seed of its own"


def test_a_run_of_its_own_is_written_to(serve: Serve, server: TestEngine, generate: Generate) -> None:
    yard = serve()
    with rollyard.Client(yard.url, run="other") as client:
        client.make_run()
        generate(yard.url, server.url).run(remote_buffer_url=f"{yard.url}/runs/other")
        generate(yard.url, server.url).run(run="other")
        assert client.books().admitted == 12
    with rollyard.Client(yard.url) as client:
        assert client.books().admitted == 0


def test_mentions_skip_whole_instances_epoch_by_epoch(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generate(yard.url, server.url).run(num_epoch=2, skip_instance_ids=["0", 1, "1", "unheard of"])
    made = uids(range(6), (0, 1)) - uids([0], [0]) - uids([1], [0, 1])
    assert items_of(yard.url).keys() == made


BAD = """
def rollout(client, messages, params, tools=None):
    match messages[0]["content"]:
        case "raises": raise ValueError("no")
        case "exits": sys.exit(7)
        case "vanishes": os._exit(3)
        case "is killed": os.kill(os.getpid(), signal.SIGKILL)
        case "segfaults": ctypes.string_at(0)
        case "is killed once" if once("killed"): os.kill(os.getpid(), signal.SIGKILL)
        case "raises once" if once("raised"): raise ValueError("no")
        case "returns None": return None
        case "returns nothing": return []
        case "returns no JSON": return [{"role": "assistant", "content": object()}]
    return [*messages, {"role": "assistant", "content": "fine"}]

def reward(item):
    match item["prompt"]:
        case "scores NaN": return float("nan")
        case "scores text": return "good"
    item["seen"] = True
    return 0.5
"""

FATES = {
    "raises": r"ValueError: no \(.*test_generator.py:\d+, in rollout\)",
    "exits": r"SystemExit: 7",
    "vanishes": r"3 worker processes died of it; the last exited with 3",
    "is killed": r"3 worker processes died of it; the last was ended by SIGKILL",
    "segfaults": r"3 worker processes died of it; the last was ended by SIGSEGV",
    "returns None": r"TypeError: rollout_func must return messages, or .*, not NoneType",
    "returns nothing": r"TypeError: rollout_func must return messages, or .*, not an empty list",
    "returns no JSON": r"RolloutError: .*'messages' is .*object is no JSON type",
    "scores NaN": r"ValueError: reward_func must return a finite number, not nan",
    "scores text": r"ValueError: reward_func must return a finite number, not 'good'",
    "is killed once": None,
    "raises once": None,
    "is fine": None,
}


def test_what_goes_wrong_is_written_as_a_failure_and_harms_no_other(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "1", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    generation.write_code(BAD)
    generation.write_lines([{"instance_id": name, "prompt": name, "source": "made up"} for name in FATES])
    generation.run(num_repeat_per_sample=1)
    items = items_of(yard.url)
    assert items.keys() == uids(FATES, [0], 1)
    for name, error in FATES.items():
        item = items[f"{name}:0:0"]
        extra = item["extra_info"]
        assert extra["source"] == "made up" and extra["max_tokens"] == 8, name
        if error is None:
            assert item["reward"] == 0.5 and extra["seen"] and "error" not in extra, name
            continue
        assert re.match(error, extra["error"]), extra["error"]
        assert (item["reward"], extra["finish_reason"]) == (-1.0, "error"), name
        assert item["messages"] == [{"role": "user", "content": name}], name


def test_what_the_server_refuses_is_told_and_not_tried_again(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--max-body-bytes", "100000")
    generation = generate(yard.url, server.url)
    generation.write_code(
        """
        def rollout(client, messages, params, tools=None):
            return [{"role": "assistant", "content": "x" * (200_000 if once("large") else 1)}]
        """
    )
    said = generation.run()
    assert "11 of 12 written, 0 failed, 1 refused" in said
    assert re.search(r"the rollout '\d:0:\d' is refused: ", said)
    with rollyard.Client(yard.url) as client:
        assert client.books().admitted == 11


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_generator_that_ends_early_takes_its_workers_along_and_goes_on_later(
    serve: Serve, server: TestEngine, generate: Generate, how: signal.Signals
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    # The first requests are answered, the others never.
    generation.write_code(
        """
        def rollout(client, messages, params, tools=None):
            note("asked", messages[0]["content"])
            if not params.get("all") and not any(once(n) for n in range(5)):
                time.sleep(600)
            return query_single_turn(client, messages, {"max_tokens": 8})
        """
    )
    generation.start()
    with rollyard.Client(yard.url) as client:
        until(lambda: client.books().admitted == 5, what="five rollouts")
        until(lambda: len(generation.notes("asked")) == 9, what="four that hang")
        workers = generation.workers()
        assert len(workers) == 4
        ended = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: -2}
        assert generation.end(how) == ended[how], generation.said()
        until(lambda: all(map(is_gone, workers)), what="the workers to end")
        written = client.known(uids(range(6), [0]))
        assert len(written) == 5
        generation.run(sampling_params={"max_tokens": 8, "all": True})
        assert client.books().admitted == 12
    assert "12 of 12 written (5 before), 0 failed" in generation.said()
    assert len(generation.notes("asked")) == 9 + 7
    assert items_of(yard.url).keys() == uids(range(6), [0])


def test_a_worker_that_is_killed_is_replaced_and_its_rollout_made_again(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    server.set(hang=True)
    generation.start(num_process=3)
    until(lambda: len(generation.notes("asked")) == 3, what="three that hang")
    before = generation.workers()
    os.kill(before[1], signal.SIGKILL)
    until(lambda: len(generation.notes("asked")) == 4, what="the rollout to be made again")
    after = generation.workers()
    assert len(after) == 3 and before[1] not in after and {before[0], before[2]} < set(after)
    server.stop()
    assert "a worker was ended by SIGKILL at the rollout" in generation.said()


def test_workers_that_die_at_birth_end_the_work_and_not_the_machine(
    serve: Serve, server: TestEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    generation.write_code("os.register_at_fork(after_in_child=lambda: os._exit(9))")
    said = generation.run()
    assert "12 of 12 written, 12 failed" in said
    errors = {item["extra_info"]["error"] for item in items_of(yard.url).values()}
    assert errors == {"3 worker processes died of it; the last exited with 9"}


def test_a_server_that_is_away_is_waited_for(serve: Serve, server: TestEngine, generate: Generate) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    server.set(latency_ms=50)
    generation.start(num_epoch=5)
    with rollyard.Client(yard.url) as client:
        until(lambda: client.books().admitted >= 10, what="some rollouts")
        yard.kill()
        until(lambda: "nothing is written for now" in generation.said(), what="a word about it")
        yard.start()
        assert generation.end() == 0, generation.said()
        assert client.books().admitted == 60
    assert "60 of 60 written, 0 failed" in generation.said()
    assert items_of(yard.url).keys() == uids(range(6), range(5))


def test_a_run_without_room_is_waited_for(serve: Serve, server: TestEngine, generate: Generate) -> None:
    limits = ("--max-buffer-size", "4", "--when-full", "reject", "--keep-commits", "0")
    yard = serve("--group-size", "2", *limits, *AS_WRITTEN)
    generation = generate(yard.url, server.url)
    # One after the other, so that what there is room for is whole groups.
    generation.start(num_process=1)
    until(lambda: "the run puts rollouts off" in generation.said(), what="a word about it")
    seen: set[str] = set()
    with rollyard.Client(yard.url) as client:
        for step in itertools.count():
            lease = client.lease(wait_secs=30)
            assert lease is not None
            with lease:
                seen.update(item["uid"] for item in lease.rollouts)
            # What was acked takes up room until it is in a checkpoint.
            client.commit(step)
            if len(seen) == 12:
                break
    assert generation.end() == 0, generation.said()
    assert seen == uids(range(6), [0]) and "12 of 12 written" in generation.said()


def test_an_engine_that_is_away_fails_no_rollout(
    serve: Serve, start_engine: StartEngine, generate: Generate
) -> None:
    yard = serve("--group-size", "2", *AS_WRITTEN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host, port = free.getsockname()
    generation = generate(yard.url, f"http://{host}:{port}")
    generation.write_code("from rollyard.generator import turn\nturn.PAUSE_SECS_FIRST = 0.001")
    generation.start()
    until(lambda: "the engine is gone, waiting for it" in generation.said(), what="a word about it")
    start_engine(listen=f"{host}:{port}")
    assert generation.end() == 0, generation.said()
    assert {item["reward"] for item in items_of(yard.url).values()} == {1.0}
    assert generation.said().count("the engine is gone") == 1


PARENT = """
import subprocess, sys
command = [sys.executable, "-m", "rollyard.generator.child", "run", sys.argv[1]]
child = subprocess.Popen(command, stdin=sys.stdin)
print(child.pid, flush=True)
child.wait()
"""


def test_a_generator_ends_with_the_server_that_started_it(generate: Generate) -> None:
    generation = generate("http://127.0.0.1:1", "http://127.0.0.1:1")
    generation.file.write_text(
        "import time\nTASK_TYPE = 'sleep'\ndef run_rollout(data):\n  print('here')\n  time.sleep(600)"
    )
    command = [sys.executable, "-c", PARENT, str(generation.file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        parent.stdin.write("{}")
        parent.stdin.close()
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "here\n"
        parent.kill()
    until(lambda: is_gone(child), what="the generator to end")


INPUTS = {
    "no JSON": ('{"instance_id": 1, "prompt": "a"}\n{"instance', r"line 2: not JSON: "),
    "no object": ("[1]\n", r"line 1: not a JSON object, but a list"),
    "no id": ('\n{"prompt": "a"}\n', r"line 2: no instance_id; `rollyard assign-ids --input "),
    "a float": ('{"instance_id": 1.5, "prompt": "a"}', r"line 1: instance_id is 1.5, but must be a text or"),
    "no prompt": ('{"instance_id": 1}', r"line 1: prompt must be a text or a list of messages"),
    "twice": (
        '{"instance_id": 1, "prompt": "a"}\n{"instance_id": "1", "prompt": "b"}',
        r"line 2: instance_id '1' is that of line 1 too",
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_bad_line_is_named_before_any_work_begins(tmp_path: pathlib.Path, name: str) -> None:
    text, message = INPUTS[name]
    file = tmp_path / "input.jsonl"
    file.write_text(text)
    generator = BaseGenerator("http://127.0.0.1:1", "http://127.0.0.1:1")
    with pytest.raises(InputError, match=message) as raised:
        generator.entry(str(file), print, print)
    assert str(raised.value).endswith(str(file))


def test_a_missing_file_is_named() -> None:
    generator = BaseGenerator("http://127.0.0.1:1", "http://127.0.0.1:1")
    with pytest.raises(InputError, match="cannot be read: No such file or directory: /nowhere.jsonl"):
        generator.run("/nowhere.jsonl", print, print)


def test_wrong_arguments_are_told_at_once() -> None:
    for arguments, message in (
        (("localhost:30000", "http://127.0.0.1:1"), "an engine is at an http:// or https:// URL"),
        (("http://127.0.0.1:1", "localhost:8889"), "a server is at an http:// or https:// URL"),
        (("http://127.0.0.1:1", "http://127.0.0.1:1", 0), "num_repeat_per_sample is 0"),
        (("http://127.0.0.1:1", "http://127.0.0.1:1", 1, 1, 0), "num_process is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            BaseGenerator(*arguments)
