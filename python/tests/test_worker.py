"""Workers stamp what an environment returned; the environment knows nothing of it."""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rollyard import Rollout, RolloutBatch, RolloutGroup, RolloutMetadata, attach_metadata
from samples import make_rollout, run_python


def ticks() -> Any:
    """A clock that is a second later every time it is looked at."""
    return iter(range(100, 200)).__next__


def stamps(batch: RolloutBatch) -> list[list[tuple[str, float, int]]]:
    return [
        [(r.metadata.worker_id, r.metadata.timestamp, r.metadata.weight_step) for r in group]
        for group in batch
    ]


def test_every_rollout_is_stamped_and_the_batch_has_the_last_stamp() -> None:
    groups = [RolloutGroup([make_rollout("a"), make_rollout("a")]), RolloutGroup([make_rollout("b")])]
    batch = attach_metadata(groups, weight_step=7, worker_id="host_1", clock=ticks())
    assert stamps(batch) == [[("host_1", 100, 7), ("host_1", 101, 7)], [("host_1", 102, 7)]]
    assert batch.metadata == RolloutMetadata("host_1", 102, 7)
    assert batch.groups[0].rollouts[0].versions.tolist() == [7, 7, 7]
    assert groups[0].rollouts[0].metadata == RolloutMetadata(), "what the environment holds is its own"
    assert pickle.loads(pickle.dumps(batch)) == batch


def test_the_time_and_the_weights_are_those_when_a_rollout_was_taken() -> None:
    step = 3

    def rollouts(count: int) -> Iterator[Rollout]:
        nonlocal step
        for _ in range(count):
            step += 1
            yield make_rollout()

    batch = attach_metadata(
        (rollouts(count) for count in (2, 1)), weight_step=lambda: step, worker_id="w", clock=ticks()
    )
    assert stamps(batch) == [[("w", 100, 4), ("w", 101, 5)], [("w", 102, 6)]]
    assert batch.metadata.weight_step == 6


def test_what_a_rollout_says_of_itself_is_kept() -> None:
    own = [RolloutMetadata("other_9"), RolloutMetadata(timestamp=5.0), RolloutMetadata(weight_step=0)]
    rollouts = [make_rollout(metadata=metadata) for metadata in own]
    batch = attach_metadata([rollouts], weight_step=7, worker_id="w", clock=lambda: 9.0)
    assert stamps(batch) == [[("other_9", 9, 7), ("w", 5, 7), ("w", 9, 0)]]


def test_a_worker_is_named_by_its_host_and_process() -> None:
    before = time.time()
    batch = attach_metadata([[make_rollout()]], weight_step=1)
    ((stamp,),) = stamps(batch)
    assert stamp[0] == f"{socket.gethostname()}_{os.getpid()}"
    assert before <= stamp[1] <= time.time()


FORKING = """
import os, rollyard
from samples import make_rollout
name = lambda: rollyard.attach_metadata([[make_rollout()]], weight_step=1).metadata.worker_id
assert name().endswith(f"_{os.getpid()}")
child = os.fork()
if child == 0:
    os._exit(0 if name().endswith(f"_{os.getpid()}") else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_forked_worker_has_its_own_name() -> None:
    run_python(FORKING)


def test_rollouts_of_another_program_become_ours() -> None:
    other = SimpleNamespace(
        env_name="math",
        env_example_id="a",
        prompt_tokens=[1, 2],
        response_tokens=[3],
        response_logprobs=[-0.5],
        token_rewards=[1.0],
        episode_reward=1.0,
        metadata=SimpleNamespace(worker_id="", timestamp=0.0, weight_step=4),
    )
    batch = attach_metadata([SimpleNamespace(rollouts=[other])], weight_step=7, worker_id="w", clock=ticks())
    metadata = RolloutMetadata("w", 100, 4)
    made = Rollout("math", "a", [1, 2], [3], [-0.5], [1.0], 1.0, metadata=metadata)
    assert batch.groups == [RolloutGroup([made])]
    del other.episode_reward
    with pytest.raises(TypeError, match="a SimpleNamespace was given, which has no episode_reward"):
        attach_metadata([[other]], weight_step=7)


def test_an_environment_that_returned_nothing_gives_an_empty_batch() -> None:
    batch = attach_metadata([], weight_step=lambda: 7, worker_id="w", clock=ticks())
    assert batch == RolloutBatch([], RolloutMetadata("w", 100, 7))
