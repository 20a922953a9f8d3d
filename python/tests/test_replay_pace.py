"""Limiters keep adding and sampling in step."""

from __future__ import annotations

import threading
import time

import pytest

from replaying import make_buffer, many
from rollyard import (
    MinSize,
    PacedError,
    Queue,
    ReplayError,
    SampleToInsertRatio,
)


def test_sampling_gives_none_while_the_limiter_waits_for_inserts() -> None:
    buffer = make_buffer(local_batch_size=2, limiter=MinSize(5))
    buffer.add_batches([many(4)])
    assert buffer.sample_rollouts() is None
    buffer.add_batches([many(1, first=4)])
    assert buffer.sample_rollouts() is not None
    queue = make_buffer(local_batch_size=2, limiter=Queue(4))
    queue.add_batches([many(4)])
    assert [queue.sample_rollouts() is None for _ in range(3)] == [False, False, True]


def test_adding_waits_for_samples_and_then_gives_up() -> None:
    buffer = make_buffer(local_batch_size=2, limiter=Queue(4))
    buffer.add_batches([many(4)])
    begin = time.monotonic()
    with pytest.raises(PacedError, match="the limiter holds 1 inserts back: 4 inserted, 0 sampled.*sample"):
        buffer.add_batches([many(1, first=4)])
    with pytest.raises(TimeoutError):
        buffer.add_batches([many(1, first=4)], timeout=0.05)
    assert 0.05 <= time.monotonic() - begin < 5.0
    assert (buffer.size(), buffer.get_stats()["total_batches_added"]) == (4, 1)
    with pytest.raises(ReplayError, match="5 at once can never pass the limiter: its band is 4 samples wide"):
        buffer.add_batches([many(5, first=4)], timeout=60.0)


def test_a_sample_lets_a_waiting_add_through() -> None:
    buffer = make_buffer(local_batch_size=2, limiter=Queue(4))
    buffer.add_batches([many(4)])
    added: list[int] = []
    adding = threading.Thread(target=lambda: added.append(buffer.add_batches([many(2, first=4)], timeout=60)))
    adding.start()
    buffer.sample_rollouts()
    adding.join(30)
    assert added == [2] and not adding.is_alive()


def test_the_ratio_of_samples_to_inserts_is_held() -> None:
    buffer = make_buffer(local_batch_size=2, limiter=SampleToInsertRatio(2.0, 4, 4.0))
    for n in range(200):
        try:
            buffer.add_batches([many(1, first=n)])
        except PacedError:
            while buffer.sample_rollouts() is not None:
                pass
    stats = buffer.get_stats()
    assert abs(stats["sampled"] - 2 * stats["added"]) <= 2 * 4 + 4
