"""Worker processes: killed, replaced, told, ended; and what their user code returns, raises and prints."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import rollyard
import yarns
from rollyard import RolloutExecutor, _rollyard, stats
from testengine import TestEngine, until


@pytest.fixture
def executor(engine: rollyard.SGLangEngine) -> Iterator[RolloutExecutor]:
    with RolloutExecutor(
        engine, processes=2, threads=2, max_head_offpolicyness=None, max_concurrent_rollouts=32, attempts=2
    ) as executor:
        yield executor


def pids(executor: RolloutExecutor) -> list[int]:
    assert executor._host is not None
    return executor._host.pids()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended is there until somebody asks how.
    return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_episodes_run_in_all_processes_and_know_where_they_are(executor: RolloutExecutor) -> None:
    until(lambda: len(pids(executor)) == 2, what="two workers")
    batch = executor.rollout_batch([{}] * 8, "yarns.Told", group_size=2)
    assert set(batch["process"].tolist()) == set(pids(executor)) and os.getpid() not in pids(executor)
    tasks = batch["input_ids"][:, 0].tolist()
    assert batch["input_ids"][:, 1].tolist() == [0, 1] * 8 and len(set(tasks)) == 8


def test_what_is_sampled_and_recorded_comes_back(
    executor: RolloutExecutor, engine: rollyard.SGLangEngine
) -> None:
    stats.export()
    data = [{"reward": n, "tokens": [n + 1, 2]} for n in range(6)]
    hosted = executor.rollout_batch(data, yarns.Plain, workflow_kwargs={"max_new_tokens": 5})
    assert stats.export()["rollout"]["reward"] == {"count": 6, "mean": 2.5, "min": 0, "max": 5}
    with RolloutExecutor(engine, consumer_batch_size=8) as local:
        here = local.rollout_batch(data, yarns.Plain, workflow_kwargs={"max_new_tokens": 5})
    # To the byte the same as in this process.
    assert rollyard.digest(hosted) == rollyard.digest(here)


def test_interactions_come_back_as_rows(executor: RolloutExecutor) -> None:
    batch = executor.rollout_batch([{}], "yarns.Talk")
    assert batch["loss_mask"].sum(1).tolist() == [3, 5] and batch["rewards"].tolist() == [0, 1]


DEADLY = ({"how": "die", "times": 9}, "ended in the middle of the episode: process .*signal: 9")


@pytest.mark.parametrize(("data", "told"), [*yarns.WRONG, DEADLY])
def test_an_episode_that_goes_wrong_fails_by_itself(
    executor: RolloutExecutor, data: dict[str, Any], told: str
) -> None:
    bad = executor.submit(data, "yarns.Bad")
    with pytest.raises(rollyard.EpisodeError, match=told):
        executor.wait_for_task(bad, timeout=60)
    assert executor.rollout_batch([{"reward": 5}], "yarns.Plain", timeout=60)["rewards"].tolist() == [5]


def test_a_worker_that_is_killed_is_replaced_and_its_episode_runs_again(executor: RolloutExecutor) -> None:
    until(lambda: len(pids(executor)) == 2, what="two workers")
    before = set(pids(executor))
    batch = executor.rollout_batch([{"how": "die"}], "yarns.Bad", timeout=60)
    assert batch["rewards"].tolist() == [1]
    after = until(lambda: len(pids(executor)) == 2 and set(pids(executor)), what="the new worker")
    assert len(before & after) == 1


def test_a_kill_from_outside_loses_no_task(executor: RolloutExecutor, server: TestEngine) -> None:
    server.set(hang=True)
    tasks = [executor.submit({"reward": n}, "yarns.Plain") for n in range(6)]
    until(lambda: server.counters()["in_flight"] == 6, what="the requests")
    server.set(hang=False)
    for pid in pids(executor):
        os.kill(pid, signal.SIGKILL)
    batch = executor.wait(6, timeout=60)
    assert sorted(batch["rewards"]) == list(range(len(tasks)))


def test_prints_of_user_code_break_nothing(executor: RolloutExecutor) -> None:
    assert executor.rollout_batch([{"how": "print"}], "yarns.Bad", timeout=60)["rewards"].tolist() == [1]


def test_a_version_is_known_everywhere_when_set_version_returns(
    executor: RolloutExecutor, server: TestEngine
) -> None:
    server.set(gives_version=False)
    until(lambda: len(pids(executor)) == 2, what="two workers")
    for version in (3, 4):
        executor.set_version(version)
        batch = executor.rollout_batch([{}] * 6, "yarns.Plain")
        assert set(batch["versions"][batch["loss_mask"] == 1].tolist()) == {version}
    # One that comes later is told before it does anything.
    executor.rollout_batch([{"how": "die"}], "yarns.Bad", timeout=60)
    until(lambda: len(pids(executor)) == 2, what="two workers")
    batch = executor.rollout_batch([{}] * 6, "yarns.Plain")
    assert set(batch["versions"][batch["loss_mask"] == 1].tolist()) == {4}


def test_a_paused_engine_pauses_the_workers_too(executor: RolloutExecutor, server: TestEngine) -> None:
    executor.engine.pause()
    before = server.counters()["requests"]
    task = executor.submit({}, "yarns.Plain")
    until(lambda: executor.running(), what="the task")
    with pytest.raises(rollyard.WaitTimeoutError):
        executor.wait_for_task(task, timeout=0.3)
    assert server.counters()["requests"] == before
    executor.engine.resume()
    assert executor.wait_for_task(task, timeout=30) is not None


def test_cancelling_reaches_the_request_of_a_worker(executor: RolloutExecutor, server: TestEngine) -> None:
    server.set(hang=True)
    task = executor.submit({}, "yarns.Plain", group_size=4)
    until(lambda: server.counters()["in_flight"] == 4, what="the requests")
    assert executor.cancel(task)
    until(lambda: server.counters()["in_flight"] == 0, what="their end")


NOT_IMPORTED: list[tuple[Any, dict[str, Any] | None, str]] = [
    ("yarns.Plian", None, "the module yarns has no Plian; it has Agent, Bad, Chats, NotAsync, Plain"),
    ("nowhere.Plain", None, "there is no module nowhere"),
    ("yarns.Told", {"color": "red"}, "Told cannot be made with color"),
    ("yarns.Agent", None, "an agent needs the model's tokenizer"),
    (yarns.Plain(), None, "cannot be given a Plain that is made already"),
    ("yarns.Plain", {"f": len}, "workflow_kwargs cannot leave this process: .*builtin"),
]


@pytest.mark.parametrize(("workflow", "kwargs", "told"), NOT_IMPORTED)
def test_what_workers_cannot_import_is_told_at_once(
    executor: RolloutExecutor, workflow: Any, kwargs: dict[str, Any] | None, told: str
) -> None:
    with pytest.raises(rollyard.WorkflowError, match=told):
        executor.submit({}, workflow, workflow_kwargs=kwargs)
    with pytest.raises(rollyard.WorkflowError, match="data cannot leave this process"):
        executor.submit({"image": object()}, "yarns.Plain")


def start_host(**config: Any) -> _rollyard.Host:
    usual = {"python": sys.executable, "processes": 1, "threads": 2, "engine": None, "sys_path": sys.path}
    return _rollyard.Host(json.dumps(usual | config))


def test_functions_run_in_threads_with_their_arguments() -> None:
    host = start_host()
    function = host.function("yarns.length_reward")

    def call(**data: Any) -> str:
        return host.call(function, json.dumps({"args": ["p", "c", [1], [2, 3]], "kwargs": data}))

    assert [call(), call(answer=True), call(answer=0.5), call(answer="nan")] == [
        "2.0",
        "true",
        "0.5",
        '"NaN"',
    ]
    with pytest.raises(rollyard.WorkflowError, match="ValueError: cannot be judged"):
        call(answer="raise")
    where = host.function("yarns.where")
    assert host.call(where, '{"args": [], "kwargs": {}}') == str(host.pids()[0])
    with pytest.raises(rollyard.WorkflowError, match="the module yarns has no when; it has"):
        host.function("yarns.when")
    host.close()


def test_python_that_cannot_be_used_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(
        rollyard.WorkerError, match="Python cannot be started .*set ROLLYARD_PYTHON.*: /no/python"
    ):
        start_host(python="/no/python")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(rollyard.WorkerError, match="the package rollyard is not installed there: .*/python"):
        start_host(python=str(bare))
    bare.write_text("#!/bin/sh\necho out of coffee >&2\nexit 7\n")
    with pytest.raises(
        rollyard.WorkerError, match="end as soon as they are started.*exit status: 7; out of coffee"
    ):
        start_host(python=str(bare))


def test_no_worker_outlives_the_host() -> None:
    host = start_host(processes=2)
    until(lambda: len(host.pids()) == 2, what="two workers")
    workers = host.pids()
    host.close()
    assert not any(is_alive(pid) for pid in workers)
    with pytest.raises(rollyard.WorkerError, match="stopped"):
        host.function("yarns.where")


ORPHANS = """
import json, os, sys
from rollyard import _rollyard
config = {"python": sys.executable, "processes": 2, "threads": 1, "engine": None, "sys_path": sys.path}
host = _rollyard.Host(json.dumps(config))
while len(host.pids()) < 2:
    pass
print(*host.pids(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_a_parent_that_is_ended(how: signal.Signals) -> None:
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", ORPHANS], env=surroundings, text=True, **pipes) as parent:  # type: ignore[call-overload]
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2 and all(is_alive(pid) for pid in workers)
        parent.send_signal(how)
        parent.wait(timeout=30)
    until(lambda: not any(is_alive(pid) for pid in workers), what="the end of the workers")
