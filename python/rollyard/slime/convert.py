"""Groups of a lease as slime's samples.

Tokens that a rollout carries are the tokens that are trained on, with their log-probs and versions. Where it
carries none they are made of its messages, with the mask type that the trainer was started with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rollyard._rollyard import Rollout
from rollyard.client.contents import LeaseBase
from rollyard.client.flow import logger
from rollyard.client.results import Group
from rollyard.errors import RolloutError
from rollyard.masks import MultiTurnLossMaskGenerator
from rollyard.slime.sample import make_sample

MASK_TYPE_DEFAULT = "qwen"


def to_samples(lease: LeaseBase, args: Any) -> list[list[Any]]:
    """The samples of a lease, in slime's groups of `n_samples_per_prompt`."""
    rollouts = iter(to_rollouts(lease, args))
    groups: list[list[Any]] = []
    for group in lease.groups:
        samples = [to_sample(group, row, next(rollouts)) for row in group.rollouts]
        groups.extend(cut(group, samples, args.n_samples_per_prompt))
    agree_on_log_probs([sample for samples in groups for sample in samples])
    return groups


def to_rollouts(lease: LeaseBase, args: Any) -> list[Rollout]:
    try:
        return lease.to_rollouts()
    except RolloutError:
        # Some carry no tokens; only now is a tokenizer worth its time.
        kind = getattr(args, "loss_mask_type", None) or MASK_TYPE_DEFAULT
        return lease.to_rollouts(masks_of(os.fspath(args.hf_checkpoint), kind))


@lru_cache(maxsize=8)
def masks_of(model: str, kind: str) -> MultiTurnLossMaskGenerator:
    """Kept, because a large vocabulary takes a second to read."""
    return MultiTurnLossMaskGenerator(model, kind)


def to_sample(group: Group, row: Mapping[str, Any], rollout: Rollout) -> Any:
    mask: list[int] = rollout.loss_mask.tolist()
    if not any(mask):
        raise RolloutError(
            f"rollout {row['uid']!r} of instance {group.instance_id!r} has no token to train on; if it is "
            "of no use, `Client.drop` takes it out of the run"
        )
    # A row that only fills up its group: it has its place in the batch and no part in the loss.
    is_filler = row.get("loss_weight", 1) == 0
    extra_info: dict[str, Any] = row.get("extra_info") or {}
    is_truncated = rollout.is_truncated or extra_info.get("finish_reason") == "length"
    log_probs = rollout.response_logprobs if rollout.exact else None
    versions = [str(version) for version, _ in rollout.version_runs if version >= 0] if rollout.exact else []
    fields = {
        "group_index": group.group,
        "index": row["instance_id"],
        "prompt": row["uid"],
        "tokens": rollout.tokens.tolist(),
        "response": last_answer(row.get("messages") or []),
        "response_length": len(mask),
        "label": row.get("label", extra_info.get("label")),
        "reward": row["reward"],
        "loss_mask": [0] * len(mask) if is_filler else mask,
        "remove_sample": is_filler,
        "weight_versions": versions,
        "rollout_log_probs": None if log_probs is None else log_probs.tolist(),
        "metadata": {**extra_info, "raw_reward": row.get("raw_reward", row["reward"])},
    }
    return make_sample("TRUNCATED" if is_truncated else "COMPLETED", fields)


def last_answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the last message of the assistant, also where it is told in parts."""
    for message in reversed(messages):
        if message.get("role") == "assistant":
            content = message.get("content")
            if isinstance(content, list):
                return "".join(str(part.get("text", "")) for part in content)
            return str(content or "")
    return ""


def cut(group: Group, samples: list[Any], size: int) -> list[list[Any]]:
    """A group in the size that slime's buffer takes; one of twice the size is two."""
    if len(samples) % size:
        raise RolloutError(
            f"the group of instance {group.instance_id!r} has {len(samples)} rollouts, which do not go into "
            f"groups of --n-samples-per-prompt {size}; the run's knobs group_size and pad set their number"
        )
    return [samples[begin : begin + size] for begin in range(0, len(samples), size)]


def agree_on_log_probs(samples: list[Any]) -> None:
    """Slime looks at the first sample to see whether a batch has log-probs: all have them, or none."""
    lacking = [sample for sample in samples if getattr(sample, "rollout_log_probs", None) is None]
    if not lacking or len(lacking) == len(samples):
        return
    logger.warning(
        "%d of %d samples have no log-probs of their own (the first is %r), so the batch goes without",
        len(lacking),
        len(samples),
        lacking[0].prompt,
    )
    for sample in samples:
        sample.rollout_log_probs = None
