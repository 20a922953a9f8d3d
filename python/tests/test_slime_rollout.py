"""The rollout function against a real server: a step gets its groups, and the books say which."""

from __future__ import annotations

import asyncio
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

import rollyard
from flaky import flaky
from rollyard import Client
from rollyard.slime import OutOfRolloutsError, generate_agent_rollout, generate_rollout, waiting
from rollyard.slime.waiting import is_out
from samples import run_python
from serving import Serve
from slimetrainer import DataBuffer, make_args, make_items, serve_slime, uids_of, write
from testengine import TestEngine


def test_a_step_gets_its_groups_and_commits_them(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    buffer, args = DataBuffer(), make_args(url, tmp_path)
    write(url, make_items(5))
    first = generate_rollout(args, 0, buffer)
    second = generate_rollout(args, 1, buffer)
    assert [[sample.index for sample in group] for group in first + second] == [
        [f"i{n}"] * 2 for n in range(4)
    ]
    with Client(url) as client:
        assert client.stats().commits == (0, 1) and client.leases()[0].status == "acked"
        assert {client.fate(uid).step for uid in uids_of(first)} == {0}
        assert {client.fate(uid).step for uid in uids_of(second)} == {1}
        books = client.books()
    # Exactly as many as a step needs: the fifth group is still the yard's.
    assert (books.trained, books.held, books.leased) == (8, 2, 0)
    assert buffer.get_metadata() == {"0": [f"i{n}" for n in range(5)], "1": []}


def test_groups_that_the_buffer_holds_are_used_first(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    args, buffer = make_args(url, tmp_path), DataBuffer()
    held = [[rollyard.slime.Sample(prompt="held")] * 2 for _ in range(3)]
    buffer.add_samples(held)
    assert generate_rollout(args, 0, buffer) == held[:2]
    write(url, make_items(2))
    assert uids_of(generate_rollout(args, 1, buffer)) == ["held", "held", "i0:0:0", "i0:0:1"]
    with Client(url) as client:
        assert client.stats().commits == (1,) and client.books().held == 2


def test_groups_of_twice_the_size_fill_two_places(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    args, buffer = make_args(url, tmp_path, n_samples_per_prompt=2), DataBuffer()
    with Client(url) as client:
        client.configure(group_size=4)
        client.write_many(make_items(2, size=4))
        # What the trainer's start sets holds for groups that are opened after it.
        assert len(uids_of(generate_rollout(args, 0, buffer))) == 4
        assert buffer.get_buffer_length() == 2 and client.books().trained == 8
    assert len(uids_of(generate_rollout(args, 1, buffer))) == 4


def test_a_step_waits_for_groups_that_are_still_made(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    args = make_args(url, tmp_path)
    with while_waiting(url, lambda: write(url, make_items(2))):
        assert len(generate_rollout(args, 0, DataBuffer())) == 2


def test_a_server_that_restarts_in_the_middle_is_waited_for(serve: Serve, tmp_path: pathlib.Path) -> None:
    server = serve_slime(serve, tmp_path)
    args, buffer = make_args(server.url, tmp_path), DataBuffer()

    def restart() -> None:
        write(server.url, make_items(1))
        server.kill()
        server.start()
        write(server.url, make_items(1, first=1))

    with while_waiting(server.url, restart):
        got = uids_of(generate_rollout(args, 0, buffer))
    assert sorted(got) == ["i0:0:0", "i0:0:1", "i1:0:0", "i1:0:1"]


def test_lost_answers_neither_lose_nor_repeat_a_rollout(serve: Serve, tmp_path: pathlib.Path) -> None:
    server = serve_slime(serve, tmp_path)
    write(server.url, make_items(12))
    with flaky(server.url) as proxy:
        args, buffer = make_args(proxy.url, tmp_path), DataBuffer()
        got = []
        for step in range(6):
            proxy.cut(step)
            got += uids_of(generate_rollout(args, step, buffer))
        assert proxy.cuts_made >= 5
    assert sorted(got) == sorted(item["uid"] for item in make_items(12))
    with Client(server.url) as client:
        assert client.books().trained == 24 and client.stats().commits[-1] == 5


def test_calls_that_fail_are_counted(tmp_path: pathlib.Path, serve: Serve) -> None:
    server = serve_slime(serve, tmp_path)
    args, buffer = make_args(server.url, tmp_path, fetch_trajectory_retry_times=1), DataBuffer()
    write(server.url, make_items(2))
    generate_rollout(args, 0, buffer)
    server.kill()
    with pytest.raises(rollyard.NotReachableError, match="no server is reached"):
        generate_rollout(args, 1, buffer)


def test_samples_that_cannot_be_settled_are_settled_by_the_next_call(
    serve: Serve, tmp_path: pathlib.Path
) -> None:
    server = serve_slime(serve, tmp_path)
    args = make_args(server.url, tmp_path, fetch_trajectory_retry_times=0)
    write(server.url, make_items(4))

    class Dying(DataBuffer):
        def add_samples(self, samples: list[list[Any]]) -> None:
            super().add_samples(samples)
            server.kill()

    buffer = Dying()
    with pytest.raises(rollyard.NotReachableError):
        generate_rollout(args, 0, buffer)
    server.start()
    got = uids_of(generate_rollout(args, 0, buffer))
    with Client(server.url) as client:
        assert [client.fate(uid).step for uid in got] == [0] * 4
        assert client.books().held == 4


def test_a_buffer_that_refuses_gives_the_groups_back(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(2))

    class Refusing(DataBuffer):
        def add_samples(self, samples: list[list[Any]]) -> None:
            raise MemoryError("no room")

    args = make_args(url, tmp_path)
    with pytest.raises(MemoryError):
        generate_rollout(args, 0, Refusing())
    with Client(url) as client:
        assert (client.books().held, client.stats().leases_out) == (4, 0)
    assert len(generate_rollout(args, 0, DataBuffer())) == 2


def test_evaluation_says_what_to_do_instead(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotImplementedError, match="--eval-function-path"):
        generate_rollout(make_args("http://127.0.0.1:1", tmp_path), 0, DataBuffer(), evaluation=True)


def test_a_url_has_to_be_given(tmp_path: pathlib.Path) -> None:
    args = make_args("", tmp_path)
    with pytest.raises(ValueError, match="--rollout-buffer-url"):
        generate_rollout(args, 0, DataBuffer())


def test_the_older_name_of_the_url_and_a_run_in_it(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    with Client(url, run="seven") as client:
        client.make_run(group_size=2)
        client.write_many(make_items(2))
        args = make_args("", tmp_path, agent_rollout_buffer_url=f"{url}/runs/seven")
        assert len(generate_rollout(args, 0, DataBuffer())) == 2
        assert client.stats().commits == (0,)
    with Client(url) as client:
        assert client.books().admitted == 0


def test_it_is_awaited_and_called_from_a_loop_too(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(4))
    args, buffer = make_args(url, tmp_path), DataBuffer()

    async def train() -> list[str]:
        got = uids_of(await generate_agent_rollout(args, 0, buffer))
        return got + uids_of(generate_rollout(args, 1, buffer))

    assert len(set(asyncio.run(train()))) == 8

    async def fail() -> None:
        generate_rollout(args, 2, buffer, evaluation=True)

    with pytest.raises(NotImplementedError):
        asyncio.run(fail())


def test_two_trainers_in_one_process_begin_each_for_itself(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    got = {}
    for name in ("a", "b"):
        with Client(url, run=name) as client:
            client.make_run(group_size=2)
            client.write_many(make_items(4))
    trainers = {name: (make_args(f"{url}/runs/{name}", tmp_path), DataBuffer()) for name in ("a", "b")}
    for step in range(2):
        for name, (args, buffer) in trainers.items():
            got[name, step] = uids_of(generate_rollout(args, step, buffer))
    assert got["a", 0] == got["b", 0] and got["a", 1] == got["b", 1]
    assert not set(got["a", 0]) & set(got["a", 1])
    # A new trainer at the same run, from the checkpoint of step 0.
    args = trainers["a"][0]
    assert uids_of(generate_rollout(args, 1, DataBuffer())) == got["a", 1]


FORKING = """
import os, pathlib, sys
from rollyard.slime import generate_rollout
from slimetrainer import DataBuffer, make_args, uids_of
url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
args, buffer = make_args(url, folder), DataBuffer()
first = uids_of(generate_rollout(args, 0, buffer))
child = os.fork()
if child == 0:
    # A trainer of its own, which begins at the same checkpoint.
    os._exit(0 if uids_of(generate_rollout(args, 1, buffer)) != first else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(*first)
"""


def test_a_child_after_a_fork_begins_for_itself(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(4))
    assert len(run_python(FORKING, url, str(tmp_path)).split()) == 4
    with Client(url) as client:
        assert client.stats().commits == (0, 1)


WAITING = """
import pathlib, sys
from rollyard.slime import generate_rollout
from slimetrainer import DataBuffer, make_args
try:
    generate_rollout(make_args(sys.argv[1], pathlib.Path(sys.argv[2])), 0, DataBuffer())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_the_wait(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WAITING, url, str(tmp_path)]
    trainer = subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True)

    def interrupt() -> None:
        trainer.send_signal(signal.SIGINT)

    with while_waiting(url, interrupt):
        told, _ = trainer.communicate(timeout=30)
    assert told == "interrupted\n"


def test_double_normalisation_is_told_once(
    serve: Serve, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(4))
    args = make_args(url, tmp_path, disable_rewards_normalization=False, rewards_normalization=True)
    buffer = DataBuffer()
    for step in range(2):
        generate_rollout(args, step, buffer)
    assert sum("--disable-rewards-normalization" in told for told in caplog.messages) == 1
    caplog.clear()
    for quiet in ({"disable_rewards_normalization": True}, {"rewards_normalization": False}):
        args = make_args(f"{url}/runs/{len(quiet)}{[*quiet][0]}", tmp_path, **quiet)
        write_to_run(args.rollout_buffer_url, make_items(2))
        generate_rollout(args, 0, DataBuffer())
    assert not caplog.messages


def test_a_checkpoint_that_is_too_old_says_what_to_do(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(8))
    args, buffer = make_args(url, tmp_path, save_interval=None), DataBuffer()
    for step in range(4):
        generate_rollout(args, step, buffer)
    with pytest.raises(rollyard.RefusedError, match=r"/runs/NAME.*keep_commits") as caught:
        generate_rollout(args, 1, DataBuffer())
    assert caught.value.code == "too_far_back" and "step 0" in str(caught.value)


def run(
    state: str | None, *, ready: int = 0, is_open: int = 0, posed: int = 0, out: int = 0
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "ready_groups": ready,
        "open_groups": is_open,
        "posed_groups": posed,
        "leases_out": out,
    }
    return told if state is None else told | {"generator": {"state": state}}


OUT: list[tuple[dict[str, Any], bool]] = [
    (run("finished"), True),
    (run("failed"), True),
    (run("finished", ready=1), True),
    (run("finished", ready=2), False),
    (run("finished", is_open=1), False),
    (run("finished", posed=1), False),
    (run("finished", out=1), False),
    (run("running"), False),
    (run("stopped"), False),
    (run("external"), False),
    (run(None), False),
    (run(None) | {"generator": None}, False),
]


@pytest.mark.parametrize(("told", "expected"), OUT)
def test_when_no_more_groups_can_come(told: dict[str, Any], expected: bool) -> None:
    assert is_out(told, 2) is expected


def test_a_generator_that_has_finished_is_not_waited_for(
    serve: Serve,
    tmp_path: pathlib.Path,
    server: TestEngine,
    model: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECS", 1.0)
    url = serve("--root", str(tmp_path), "--root", str(model)).url
    engine = urlsplit(server.url)
    given = {"sglang_router_ip": engine.hostname, "sglang_router_port": engine.port}
    args = make_args(url, tmp_path, rollout_task_type="math", hf_checkpoint=str(model), **given)
    # All of its one instance is done, as the checkpoint says, so that the generator has nothing to do.
    buffer = DataBuffer(metadata={"0": ["i0"]})
    with pytest.raises(OutOfRolloutsError, match=r"0 are ready.* finished.* 0 trained"):
        asyncio.run(asyncio.wait_for(generate_agent_rollout(args, 1, buffer), 60))


def test_a_wait_tells_where_everything_is(
    serve: Serve,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECS_FIRST", 0.05)
    monkeypatch.setattr(waiting, "WAIT_SECS", 0.1)
    url = serve_slime(serve, tmp_path).url
    items = make_items(2)
    write(url, items[:3])

    def finish() -> None:
        deadline = time.monotonic() + 30
        while not any("1 are ready, 1 open, 0 leases out" in told for told in caplog.messages):
            assert time.monotonic() < deadline, caplog.messages
            time.sleep(0.02)
        write(url, items[3:])

    with while_waiting(url, finish):
        assert len(generate_rollout(make_args(url, tmp_path), 0, DataBuffer())) == 2
    [told, *_] = [told for told in caplog.messages if "waited for" in told]
    assert "2 groups are waited for" in told and "of 3 rollouts 3 are held" in told
    assert told.endswith(f"{url}/runs/default")


class while_waiting:
    """Does something in another thread as soon as a trainer waits for groups of the default run."""

    def __init__(self, url: str, act: Callable[[], object]) -> None:
        self._url, self._act = url, act
        self._thread = threading.Thread(target=self._watch)
        self._trouble: BaseException | None = None

    def _watch(self) -> None:
        try:
            deadline = time.monotonic() + 30
            with Client(self._url) as client:
                while client.stats().start is None:
                    assert time.monotonic() < deadline, "no trainer came"
                    time.sleep(0.02)
            self._act()
        except BaseException as trouble:
            self._trouble = trouble

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(timeout=60)
        if self._trouble is not None:
            raise self._trouble


def write_to_run(url: str, items: list[dict[str, Any]]) -> None:
    server, _, name = url.rpartition("/runs/")
    with Client(server, run=name) as client:
        client.make_run(group_size=2)
        client.write_many(items).raise_for_rejected()


@pytest.fixture(autouse=True)
def quiet_http() -> None:
    logging.getLogger("httpx").setLevel(logging.WARNING)
