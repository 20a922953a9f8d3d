"""Replay buffers in many threads and after a fork."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from replaying import NOW, batch_of, made, make_buffer
from rollyard import (
    Rollout,
    RolloutMetadata,
    RolloutWithCount,
)
from samples import run_python


def test_eight_threads_add_and_sample_at_once() -> None:
    buffer = make_buffer(capacity=300, max_samples=3, max_rollout_step_delay=20, local_batch_size=8)
    step_after: list[int] = [0]
    until = time.monotonic() + 1.0
    drawn: list[list[tuple[int, RolloutWithCount]]] = [[] for _ in range(4)]
    troubles: list[BaseException] = []

    def add(worker: int) -> None:
        n = 0
        while time.monotonic() < until:
            n += 1
            step = step_after[0]
            buffer.add_batches([batch_of([made(f"{worker}/{n}/{k}", step=step) for k in range(4)])])
            if worker == 0:
                buffer.set_current_step(step + 1)
                # Only now: what is sampled after this was sampled at this step or a later one.
                step_after[0] = step + 1

    def sample(worker: int) -> None:
        while time.monotonic() < until:
            at_least = step_after[0]
            drawn[worker].extend((at_least, row) for row in buffer.sample_rollouts() or [])

    def guarded(work: Callable[[int], None], worker: int) -> None:
        try:
            work(worker)
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=guarded, args=(work, n)) for work in (add, sample) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    rows = [pair for each in drawn for pair in each]
    assert len(rows) > 100
    assert all(row.weight_step >= at_least - 20 for at_least, row in rows), "a stale rollout was sampled"
    uses: dict[str, list[int]] = {}
    for _, row in rows:
        uses.setdefault(row.rollout.env_example_id, []).append(row.usage_count)
    assert all(sorted(counts) == list(range(1, len(counts) + 1)) for counts in uses.values())
    assert max(len(counts) for counts in uses.values()) <= 3
    stats = buffer.get_stats()
    assert stats["sampled"] == len(rows)
    gone = stats["retired"] + sum(stats["dropped"].values())
    refused = stats["lengths"]["math"]["generated"]["count"] - stats["added"]
    assert stats["added"] == stats["total_size"] + gone - refused


def test_others_run_while_a_batch_is_made() -> None:
    buffer = make_buffer(local_batch_size=256, max_rollout_timestamp_delay=-1.0)
    tokens = np.arange(16_384, dtype=np.int32)
    metadata = RolloutMetadata("w", NOW, 0)
    rollouts = [Rollout("math", str(n), tokens, tokens, metadata=metadata) for n in range(256)]
    buffer.add_batches([batch_of(rollouts)])
    during: list[int] = []
    making = threading.Event()
    done = threading.Event()

    def count() -> None:
        making.wait()
        while not done.is_set():
            during.append(1)
            # Without a rest this thread would only measure who holds the GIL for longer.
            done.wait(0.0005)

    counting = threading.Thread(target=count)
    counting.start()
    making.set()
    begin = time.perf_counter()
    buffer.sample_batch(32_768, 0)
    took = time.perf_counter() - begin
    made_during = len(during)
    done.set()
    counting.join()
    assert took > 0.01, "too fast to tell"
    assert made_during >= 3


FORKING = """
import os, threading, rollyard
from replaying import make_buffer, many, names
buffer = make_buffer(seed=3)
buffer.add_batches([many(50)])
child = os.fork()
if child == 0:
    buffer.add_batches([many(50, first=50)])
    os._exit(0 if buffer.size() == 100 and len(names(buffer.sample_rollouts())) == 4 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert buffer.size() == 50

# Forks while other threads hold the lock: the child can use the buffer, or is told that it cannot.
# Counting many takes long enough to be caught in the act.
buffer.add_batches([many(900)])
going = threading.Event()
stopping = threading.Event()
def work():
    while not stopping.is_set():
        buffer.get_stats()
        going.set()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
going.wait()
for _ in range(40):
    child = os.fork()
    if child == 0:
        try:
            buffer.sample_rollouts()
        except rollyard.ReplayError as error:
            os._exit(0 if "when the process was forked" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stopping.set()
for thread in threads:
    thread.join()
assert len(names(buffer.sample_rollouts())) == 4
print("done")
"""


def test_a_buffer_outlives_a_fork() -> None:
    assert run_python(FORKING) == "done"
