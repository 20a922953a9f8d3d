"""A loader feeds a buffer from a reader and wakes whoever waits; trouble is not swallowed."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from replaying import foreign_batch, make_buffer, many, names
from rollyard import PacedError, Queue, ReplayBuffer, ReplayDataLoader, ReplayError
from samples import run_python


class Script:
    """A reader that gives what it is told, call by call: batches, or an exception. Then nothing more."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.dry = threading.Event()

    def read_all_available(self) -> list[Any]:
        self.calls += 1
        if not self.answers:
            self.dry.set()
            return []
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


def make_loader(*answers: Any, interval: float = 0.001, **knobs: Any) -> ReplayDataLoader:
    return ReplayDataLoader(Script(*answers), make_buffer(**knobs), rollout_fetch_interval=interval)


def test_what_the_reader_has_can_be_sampled() -> None:
    with make_loader([many(2)], [], [many(1, first=2), many(1, first=3)]) as loader:
        assert sorted(names(loader.get_rollouts(timeout=30))) == ["0", "1", "2", "3"]
        batch = loader.get_batch(30, max_tokens=8, pad_token_id=0, pad_to_multiple=4)
    assert batch is not None and batch.input_ids.shape == (4, 8)


def test_a_getter_that_waits_is_woken_by_whoever_adds() -> None:
    buffer = make_buffer()
    got: list[Any] = []
    # It reads once and then not for an hour: only the direct add can bring what is missing.
    with ReplayDataLoader(Script([many(2)]), buffer, 3600.0) as loader:
        waiting = threading.Thread(target=lambda: got.append(loader.get_rollouts(timeout=60)))
        waiting.start()
        begin = time.monotonic()
        buffer.add_batches([many(2, first=2)])
        waiting.join(30)
        assert len(names(got[0])) == 4 and time.monotonic() - begin < 10
    assert time.monotonic() - begin < 20, "stopping does not wait for the next fetch"


def test_nothing_in_time_is_none() -> None:
    begin = time.monotonic()
    with make_loader() as loader:
        assert loader.get_rollouts(timeout=0.05) is None
        assert time.monotonic() - begin >= 0.05
        assert loader.get_rollouts(timeout=0.0) is None


def test_a_reader_that_failed_once_is_asked_again() -> None:
    with make_loader(OSError("the disk is away"), OSError("again"), [many(4)]) as loader:
        assert len(names(loader.get_rollouts(timeout=30))) == 4
    assert (loader.problems_total, loader.problem) == (2, None)


def test_trouble_is_raised_if_nothing_else_comes(caplog: pytest.LogCaptureFixture) -> None:
    troubles = [OSError("the disk is away") for _ in range(50)]
    with caplog.at_level(logging.ERROR, "rollyard"), make_loader(*troubles) as loader:
        with pytest.raises(OSError, match="the disk is away"):
            loader.get_rollouts(timeout=0.02)
        assert isinstance(loader.rollout_reader, Script) and loader.rollout_reader.dry.wait(30)
        assert loader.problems_total == 50
    assert [record.getMessage() for record in caplog.records] == [
        "loading rollouts failed: OSError: the disk is away"
    ]


def test_a_problem_is_raised_once() -> None:
    loader = make_loader(OSError("away"))
    with loader:
        assert isinstance(loader.rollout_reader, Script) and loader.rollout_reader.dry.wait(30)
        with pytest.raises(OSError):
            loader.get_rollouts(timeout=0.0)
        assert loader.get_rollouts(timeout=0.0) is None


def test_a_bad_batch_does_not_affect_the_others() -> None:
    with make_loader([many(2), foreign_batch(metadata="nowhere"), many(2, first=2)]) as loader:
        assert sorted(names(loader.get_rollouts(timeout=30))) == ["0", "1", "2", "3"]
    assert loader.problems_total == 1
    with (
        make_loader([many(2), foreign_batch(metadata="nowhere")]) as loader,
        pytest.raises(ReplayError, match="has no metadata"),
    ):
        loader.get_rollouts(timeout=1.0)


def test_what_the_limiter_holds_back_is_added_later() -> None:
    batches = [many(1, first=n) for n in range(12)]
    with make_loader(batches, limiter=Queue(4), max_samples=1, select="oldest") as loader:
        drawn = [names(loader.get_rollouts(timeout=30)) for _ in range(3)]
    assert drawn == [[str(n) for n in range(first, first + 4)] for first in (0, 4, 8)]


def test_a_loader_stops_while_the_limiter_holds_it_back() -> None:
    loader = make_loader([many(4), many(4, first=4)], limiter=Queue(4), interval=3600.0)
    loader.start()
    buffer = loader.replay_buffer
    wait_for_size(buffer, 4)
    loader.stop()
    assert buffer.size() == 4
    with pytest.raises(PacedError):
        buffer.add_batches([many(1)])
    # What was read already is added when it goes on.
    buffer.sample_rollouts()
    loader.start()
    wait_for_size(buffer, 8)
    loader.stop()


def wait_for_size(buffer: ReplayBuffer, size: int) -> None:
    deadline, seen = time.monotonic() + 30, -1
    while buffer.size() != size:
        assert time.monotonic() < deadline
        seen = buffer._native.wait(seen, 1.0)


def test_a_loader_that_does_not_run_says_so() -> None:
    loader = make_loader([many(4)])
    with pytest.raises(ReplayError, match="does not run in this process; start it, or use a with block"):
        loader.get_rollouts()
    loader.start()
    loader.start()
    assert threading.active_count() >= 2 and len(names(loader.get_rollouts(30))) == 4
    loader.stop()
    loader.stop()
    with pytest.raises(ReplayError, match="does not run"):
        loader.get_rollouts()
    loader.start()
    assert len(names(loader.get_rollouts(30))) == 4
    loader.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "rollyard-loader"]


def test_an_error_of_sampling_comes_at_once() -> None:
    with make_loader([many(2)], capacity=2) as loader:
        wait_for = time.monotonic() + 30
        with pytest.raises(ReplayError, match="a batch of 4 can never be drawn"):
            while time.monotonic() < wait_for:
                loader.get_rollouts(timeout=5)


FORKING = """
import os, rollyard
from test_loader import make_loader, many, names
with make_loader([many(4)]) as loader:
    assert len(names(loader.get_rollouts(30))) == 4
    child = os.fork()
    if child == 0:
        try:
            loader.get_rollouts()
        except rollyard.ReplayError:
            loader.start()
            assert len(names(loader.get_rollouts(30))) == 4
            loader.stop()
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("done")
"""


def test_a_forked_child_starts_a_loader_of_its_own() -> None:
    assert run_python(FORKING) == "done"
