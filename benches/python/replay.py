"""The replay buffer against the same work in Python and numpy, in one process, and beside dm-reverb.

Rounds alternate between the two. `benches/baselines/numpy_replay.py` is the baseline; it is given the same
rollouts, and both keep them alive elsewhere, so that what is measured is the buffer and not the freeing of
tokens. Reverb runs in an environment of its own (`make bench-replay` installs it).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "benches" / "baselines"))

import numpy_replay as plain  # noqa: E402

import rollyard  # noqa: E402

ENVS = ("math", "code", "chat", "tools")
NOW = 1_000_000.0
STEPS = 100
BATCH = 512
ALPHA = 3.0


def clock() -> float:
    return NOW


def ours_of(count: int, *, batch: int = BATCH, delay: int = STEPS - 1) -> rollyard.ReplayBuffer:
    return rollyard.ReplayBuffer(count, batch, ALPHA, 1, -1, delay, 3600.0, seed=7, clock=clock)


def theirs_of(count: int, *, batch: int = BATCH, delay: int = STEPS - 1) -> plain.NumpyReplay:
    return plain.NumpyReplay(capacity=count, alpha=ALPHA, batch_size=batch, max_step_delay=delay, seed=7)


def as_batch(groups: list[list[rollyard.Rollout]]) -> rollyard.RolloutBatch:
    return rollyard.RolloutBatch([rollyard.RolloutGroup(group) for group in groups])


def short_rollouts(count: int) -> list[list[rollyard.Rollout]]:
    """Groups of 8 with few tokens; weights get newer as they come."""
    tokens = np.arange(8, dtype=np.int32)
    groups = []
    for first in range(0, count, 8):
        metadata = rollyard.RolloutMetadata("host_1", NOW, first * STEPS // count)
        env = ENVS[first // 8 % len(ENVS)]
        groups.append(
            [
                rollyard.Rollout(env, "task", tokens, tokens, episode_reward=n % 2, metadata=metadata)
                for n in range(8)
            ]
        )
    return groups


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def alternate(ways: dict[str, Callable[[], Any]], rounds: int, *, each: int = 1) -> dict[str, list[float]]:
    """The times of each way, on average over `each` times in a row; the first round warms up."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, work in ways.items():
            took = statistics.mean(timed(work) for _ in range(each))
            if number > 0:
                times[way].append(took)
    return times


def row(what: str, theirs: list[float], ours: list[float], bar: str) -> None:
    ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
    print(
        f"{what:58} {statistics.median(theirs):11.2f} {statistics.median(ours):10.3f} "
        f"{statistics.median(ratios):8.1f} ({min(ratios):.1f} to {max(ratios):.1f}) {bar}",
        flush=True,
    )


def sample_and_step(count: int, rounds: int) -> None:
    groups = short_rollouts(count)
    ours, theirs = ours_of(count), theirs_of(count)
    for buffer in (ours, theirs):
        set_step = buffer.set_current_step if isinstance(buffer, rollyard.ReplayBuffer) else buffer.set_step
        set_step(STEPS - 1)
    theirs.add(groups)
    ours.add_batches([as_batch(groups)])
    assert len(ours) == count == sum(len(entries) for entries in theirs.envs.values())
    # Neither pays for the garbage collector's walk over what the other holds.
    gc.collect()
    gc.freeze()

    def look() -> None:
        rows = ours.sample_rollouts()
        assert rows is not None and sum(row.rollout.episode_reward for row in rows) > 0

    ways: dict[str, Callable[[], Any]] = {
        "theirs": theirs.sample,
        "rows": ours.sample_rollouts,
        "looked at": look,
        "picked": lambda: ours._native.skip(NOW),
    }
    times = alternate(ways, rounds, each=10)
    what = f"sample {BATCH} of {count:,}"
    row(f"{what}: sample_rollouts()", times["theirs"], times["rows"], "200")
    row(f"{what}: and the rollout of each row", times["theirs"], times["looked at"], "")
    row(f"{what}: picked, no Python objects", times["theirs"], times["picked"], "200")

    step = {"ours": STEPS - 1, "theirs": STEPS - 1}

    def advance(name: str, go: Callable[[int], Any]) -> Callable[[], None]:
        def work() -> None:
            step[name] += 1
            go(step[name])

        return work

    moves = {"theirs": advance("theirs", theirs.set_step), "ours": advance("ours", ours.set_current_step)}
    times = alternate(moves, rounds)
    assert len(ours) == sum(len(entries) for entries in theirs.envs.values()) < count
    row(f"a step that expires 1% of {count:,}", times["theirs"], times["ours"], "50")


def add(count: int, rounds: int) -> None:
    """Rollouts of 2,000 tokens out of arrays that exist: ours copies and checks them, theirs does neither."""
    rng = np.random.default_rng(7)
    tokens = rng.integers(0, 150_000, (count, 2_000), dtype=np.int32)
    logprobs = -rng.random((count, 1_500), dtype=np.float32)
    rewards = np.zeros((count, 1_500), dtype=np.float32)
    ours_stamp, theirs_stamp = rollyard.RolloutMetadata("w", NOW, 0), plain.Metadata("w", NOW, 0)

    def made(kind: Any, stamp: Any) -> list[list[Any]]:
        def one(n: int) -> Any:
            env = ENVS[n // 8 % len(ENVS)]
            prompt, response = tokens[n, :500], tokens[n, 500:]
            fields = (env, "task", prompt, response, logprobs[n], rewards[n], float(n % 2))
            return kind(*fields, metadata=stamp)

        return [[one(n) for n in range(first, first + 8)] for first in range(0, count, 8)]

    theirs_made = made(plain.Rollout, theirs_stamp)
    ours_made = [as_batch(made(rollyard.Rollout, ours_stamp))]
    ways: dict[str, Callable[[], Any]] = {
        "theirs": lambda: theirs_of(count).add(theirs_made),
        "ours": lambda: ours_of(count).add_batches(ours_made),
    }
    times = alternate(ways, rounds)
    what = f"add {count:,} of 2,000 tokens"
    row(f"{what}: rollouts that exist", times["theirs"], times["ours"], "10")
    theirs_made.clear()
    ours_made.clear()
    whole: dict[str, Callable[[], Any]] = {
        "theirs": lambda: theirs_of(count).add(made(plain.Rollout, theirs_stamp)),
        "ours": lambda: ours_of(count).add_batches([as_batch(made(rollyard.Rollout, ours_stamp))]),
    }
    times = alternate(whole, max(rounds // 3, 1))
    row(f"{what}: made of arrays first (ours copies)", times["theirs"], times["ours"], "")


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def memory(count: int) -> None:
    """In a process of its own: bytes a rollout that the process grew by, beyond the arrays."""
    tokens, logprobs = np.arange(2_000, dtype=np.int32), -np.ones(1_500, dtype=np.float32)
    arrays = tokens.nbytes + logprobs.nbytes
    stamp = rollyard.RolloutMetadata("host_12345", NOW, 0)

    def one(n: int) -> rollyard.Rollout:
        return rollyard.Rollout(
            ENVS[n % 4], f"task_{n}", tokens[:500], tokens[500:], logprobs, metadata=stamp
        )

    def many(first: int) -> rollyard.RolloutBatch:
        return as_batch([[one(n) for n in range(start, start + 8)] for start in range(first, first + 800, 8)])

    def settled() -> int:
        """What stays when the allocator has given back what growing left behind, which it does with time."""
        for _ in range(20):
            for n in range(50):
                one(n)
            time.sleep(0.1)
        gc.collect()
        return resident()

    print(f"{count:,} rollouts of 2,000 tokens: bytes a rollout that the process grew by, beyond its arrays")
    again = many(0)
    for size in (count, 10 * count):
        own, before = ours_of(size), settled()
        for _ in range(size // 800):
            own.add_batches([again])
        at_once, later = (resident() - before) / len(own), (settled() - before) / len(own)
        print(f"  the buffer's own, of {size:9,}                {later:8.1f}   (bar 120)")
        print(f"  the same, right after adding                   {at_once:8.1f}")
        del own
    before, everything = settled(), ours_of(count)
    for first in range(0, count // 800 * 800, 800):
        everything.add_batches([many(first)])
    grown = settled() - before
    print(f"  everything, with what the allocator rounds up  {grown / len(everything) - arrays:8.1f}")
    print(f"  of which fields of the rollout (size_bytes)    {one(99_999).size_bytes - arrays:8.1f}")


def threads(seconds: float) -> None:
    """4 threads add groups of 8, 4 sample 64 rows as tensors; a ninth asks how long the lock takes."""
    tokens, logprobs = np.arange(2_000, dtype=np.int32), -np.ones(1_500, dtype=np.float32)
    stamp = rollyard.RolloutMetadata("w", NOW, 0)
    group = [
        rollyard.Rollout("math", "t", tokens[:500], tokens[500:], logprobs, metadata=stamp) for _ in range(8)
    ]
    batch = as_batch([group])
    buffer = ours_of(100_000, batch=64)
    buffer.add_batches([as_batch([group] * 1_000)])
    until = time.perf_counter() + seconds
    counts = {"added": 0, "sampled": 0}
    waits: list[float] = []
    guard = threading.Lock()

    def repeat(what: str, work: Callable[[], Any], size: int) -> None:
        done = 0
        while time.perf_counter() < until:
            work()
            done += size
        with guard:
            counts[what] += done

    def ask() -> None:
        while time.perf_counter() < until:
            waits.append(timed(buffer.size))

    workers = [threading.Thread(target=ask)]
    for _ in range(4):
        workers.append(
            threading.Thread(target=repeat, args=("added", lambda: buffer.add_batches([batch]), 8))
        )
        workers.append(
            threading.Thread(target=repeat, args=("sampled", lambda: buffer.sample_batch(2_000, 0), 64))
        )
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    batch_ms = statistics.median(timed(lambda: buffer.sample_batch(2_000, 0)) for _ in range(20))
    waits.sort()
    print(
        f"8 threads: {counts['added'] / seconds:,.0f} rollouts added and "
        f"{counts['sampled'] / seconds:,.0f} rows of 2,000 tokens sampled a second"
    )
    print(
        f"  asking for the size meanwhile, GIL included: median {statistics.median(waits):.4f} ms, "
        f"99.9% within {waits[int(len(waits) * 0.999)]:.2f} ms, while batches of {batch_ms:.2f} ms are filled"
    )


def reverb(python: Path, items: int) -> None:
    if not python.exists():
        print(f"dm-reverb: not compared, because it is not installed: there is no {python}")
        return
    command = [str(python), str(REPOSITORY / "benches/baselines/reverb_replay.py"), str(items), str(items)]
    quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"dm-reverb: not compared, because it failed: {done.stderr.strip().splitlines()[-1]}")
        return
    theirs = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))

    rng = np.random.default_rng(7)
    tokens = rng.integers(0, 150_000, (items, 2_500), dtype=np.int32)
    stamp = rollyard.RolloutMetadata("w", NOW, 0)
    buffer = rollyard.ReplayBuffer(items, 64, 0.0, 1, -1, 1, 3600.0, select="uniform", clock=clock)

    def insert() -> None:
        # One by one, as Reverb's items come.
        for tokens_of_one in tokens:
            rollout = rollyard.Rollout("math", "t", tokens_of_one[:500], tokens_of_one[500:], metadata=stamp)
            buffer.add_batches([as_batch([[rollout]])])

    def draw() -> None:
        for _ in range(items // 64):
            rows = buffer.sample_rollouts()
            assert rows is not None and sum(row.rollout.tokens.size for row in rows) == 64 * 2_500

    def tensors() -> None:
        for _ in range(items // 64):
            buffer.sample_batch(2_500, 0)

    inserted = items / timed(insert) * 1e3
    rows, filled = items / timed(draw) * 1e3, items / timed(tensors) * 1e3
    print("beside dm-reverb 0.14.0, items of 10 kB a second, both in one process (bar 2):")
    for what, ours, name in (
        ("insert, one by one", inserted, "insert"),
        ("sample, rows that share memory", rows, "sample"),
        ("sample, copied into a padded batch with its masks", filled, "sample"),
    ):
        print(f"  {what:50} {theirs[name]:10,.0f} {ours:10,.0f} {ours / theirs[name]:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held", type=int, default=1_000_000)
    parser.add_argument("--added", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--items", type=int, default=20_000, help="items given to Reverb")
    parser.add_argument("--reverb", type=Path, default=REPOSITORY / ".venv/reverb/bin/python")
    parser.add_argument("--memory", action="store_true", help="measure only memory, in this process")
    options = parser.parse_args()
    if options.memory:
        memory(options.added)
        return
    print(f"{'':58} {'Python ms':>11} {'ours ms':>10} {'ratio':>8} {'':14} bar")
    sample_and_step(options.held, options.rounds)
    add(options.added, options.rounds)
    command = [sys.executable, __file__, "--memory", "--added", str(options.added)]
    subprocess.run(command, check=True)
    threads(3.0)
    reverb(options.reverb, options.items)


if __name__ == "__main__":
    main()
