"""dm-reverb on items of 10 kB, for `benches/python/replay.py`, which runs it in an environment of its own.

A server in this process, which its client then reaches without a network, and a client that inserts items one
by one and samples them in one stream. Prints the items a second of each as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import reverb


def main() -> None:
    items, samples = (int(word) for word in sys.argv[1:])
    table = reverb.Table(
        name="rollouts",
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=items,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server([table], port=None)
    client = reverb.Client(f"localhost:{server.port}")
    rng = np.random.default_rng(7)
    tokens = rng.integers(0, 150_000, (items, 2_500), dtype=np.int32)

    begin = time.perf_counter()
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        for row in tokens:
            writer.append({"tokens": row})
            writer.create_item("rollouts", 1.0, {"tokens": writer.history["tokens"][-1:]})
        writer.flush()
    inserted = items / (time.perf_counter() - begin)

    begin = time.perf_counter()
    # One call: a sampler of its own for each batch would cost more than the samples.
    tokens_seen = 0
    for sample in client.sample("rollouts", num_samples=samples, emit_timesteps=False):
        (row,) = sample.data["tokens"] if isinstance(sample.data, dict) else sample.data
        tokens_seen += row.size
    sampled = samples / (time.perf_counter() - begin)
    assert tokens_seen == samples * 2_500
    print(json.dumps({"insert": inserted, "sample": sampled}))


if __name__ == "__main__":
    main()
