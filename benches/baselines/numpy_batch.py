"""A padded training batch as one would write it with numpy: the baseline of `rollyard-bench batch`.

One rollout a row, one array a key, and a loop that assigns `batch[i, :n] = row`.
The rows are numpy arrays, as a careful worker would keep them, or Python lists, as they come out of JSON.

Its first line of input has the lengths of the rollouts as JSON, and every further line says which rows and
which batch to take; it answers with the seconds that the batch took.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

Rollout = dict[str, Any]
Batch = dict[str, np.ndarray]


def make_rollouts(lengths: list[tuple[int, int, int, int]], *, as_arrays: bool) -> list[Rollout]:
    """Rollouts of these lengths: the prompt, what is sampled, what a tool answers, what is sampled again."""
    rng = np.random.default_rng(7)
    rollouts = []
    for prompt, first, given, second in lengths:
        response = first + given + second
        mask = np.ones(response, dtype=np.int32)
        mask[first : first + given] = 0
        versions = np.full(response, 7, dtype=np.int32)
        versions[first:] = 8
        versions[mask == 0] = -1
        rollout: Rollout = {
            "tokens": rng.integers(0, 150_000, prompt + response, dtype=np.int32),
            "logprobs": -rng.random(response, dtype=np.float32),
            "mask": mask,
            "versions": versions,
        }
        if not as_arrays:
            rollout = {key: values.tolist() for key, values in rollout.items()}
        rollout["prompt"] = prompt
        rollout["advantage"] = float(rng.standard_normal())
        rollout["reward"] = float(rng.random())
        rollouts.append(rollout)
    return rollouts


def sequences(rollouts: list[Rollout], pad: int) -> Batch:
    shape = (len(rollouts), max(len(rollout["tokens"]) for rollout in rollouts))
    batch = {
        "input_ids": np.full(shape, pad, dtype=np.int32),
        "attention_mask": np.zeros(shape, dtype=np.bool_),
        "loss_mask": np.zeros(shape, dtype=np.int32),
        "logprobs": np.zeros(shape, dtype=np.float32),
        "versions": np.full(shape, -1, dtype=np.int32),
        "rewards": np.zeros(len(rollouts), dtype=np.float32),
    }
    for i, rollout in enumerate(rollouts):
        n, p = len(rollout["tokens"]), rollout["prompt"]
        batch["input_ids"][i, :n] = rollout["tokens"]
        batch["attention_mask"][i, :n] = True
        batch["loss_mask"][i, p:n] = rollout["mask"]
        batch["logprobs"][i, p:n] = rollout["logprobs"]
        batch["versions"][i, p:n] = rollout["versions"]
        batch["rewards"][i] = rollout["reward"]
    return batch


def training(rollouts: list[Rollout], pad: int) -> Batch:
    shape = (len(rollouts), max(len(rollout["tokens"]) for rollout in rollouts))
    batch = {
        "input_ids": np.full(shape, pad, dtype=np.int32),
        "attention_mask": np.zeros(shape, dtype=np.bool_),
        "position_ids": np.zeros(shape, dtype=np.int32),
        "loss_masks": np.zeros(shape, dtype=np.float32),
        "loss_weights": np.zeros(shape, dtype=np.float32),
        "policy_logprobs": np.zeros(shape, dtype=np.float32),
        "temperature": np.ones(len(rollouts), dtype=np.float32),
        "top_k": np.full(len(rollouts), -1, dtype=np.int32),
        "truncated": np.zeros(len(rollouts), dtype=np.bool_),
    }
    for i, rollout in enumerate(rollouts):
        n, p = len(rollout["tokens"]), rollout["prompt"]
        batch["input_ids"][i, :n] = rollout["tokens"]
        batch["attention_mask"][i, :n] = True
        batch["position_ids"][i, :n] = np.arange(n)
        batch["loss_masks"][i, p:n] = rollout["mask"]
        batch["loss_weights"][i, p:n] = batch["loss_masks"][i, p:n] * rollout["advantage"]
        batch["policy_logprobs"][i, p:n] = rollout["logprobs"]
    return batch


def main() -> None:
    lengths = json.loads(sys.stdin.readline())
    rows = {
        "arrays": make_rollouts(lengths, as_arrays=True),
        "lists": make_rollouts(lengths, as_arrays=False),
    }
    makers = {"sequences": sequences, "training": training}
    for line in sys.stdin:
        kind, maker = line.split()
        begin = time.perf_counter()
        batch = makers[maker](rows[kind], 0)
        seconds = time.perf_counter() - begin
        assert int(batch["attention_mask"].sum()) == sum(map(sum, lengths))
        del batch
        print(seconds, flush=True)


if __name__ == "__main__":
    main()
