"""Limiters of a replay buffer, with the names and the meaning of Reverb's; what is counted is rollouts.

A fast generator fills memory, a fast trainer reuses old data. A limiter holds `added * samples_per_insert -
sampled` inside a band: sampling gives nothing, or adding waits, until the other side has caught up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleToInsertRatio:
    """Each rollout is sampled `samples_per_insert` times on average.

    Nothing is sampled before `min_size_to_sample` rollouts are held. `error_buffer` says how far the two
    sides may be apart, counted in samples, from where they stand then.
    """

    samples_per_insert: float
    min_size_to_sample: int
    error_buffer: float


@dataclass(frozen=True)
class MinSize:
    """Nothing is sampled before `min_size_to_sample` rollouts are held; adding never waits."""

    min_size_to_sample: int


@dataclass(frozen=True)
class Queue:
    """Each rollout is sampled once on average, and at most `size` are ahead of the samples."""

    size: int
