"""What slime's trainer hands to a rollout function: its arguments and its data buffer."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from rollyard import Client
from serving import Serve, Server
from trainer import make_item

# A task of one's own: rollouts come from the tests, no generator is started for it.
TASK = "mine"


def serve_slime(serve: Serve, folder: pathlib.Path, *flags: str) -> Server:
    """A server that may read the input file of `make_args`."""
    return serve("--root", str(folder), "--allow-task-type", TASK, "--group-size", "2", *flags)


def make_args(url: str, folder: pathlib.Path, **changes: Any) -> argparse.Namespace:
    """The arguments of a small training: two groups of two rollouts a step."""
    prompts = folder / "prompts.jsonl"
    if not prompts.exists():
        prompts.write_text('{"instance_id": "i0", "prompt": "2+2?", "label": "4"}\n')
    given: dict[str, Any] = {
        "rollout_batch_size": 2,
        "n_samples_per_prompt": 2,
        "num_epoch": 1,
        "prompt_data": str(prompts),
        "rollout_max_response_len": 64,
        "rollout_temperature": 0.8,
        "rollout_top_p": 0.9,
        "hf_checkpoint": str(folder / "no-model-is-needed"),
        "loss_mask_type": "qwen",
        "fetch_trajectory_retry_times": -1,
        "rollout_num_process": 4,
        "rollout_task_type": TASK,
        "rollout_buffer_url": url,
        "sglang_router_ip": "127.0.0.1",
        "sglang_router_port": 1,
        "use_wandb": False,
        "use_tensorboard": False,
        "disable_rewards_normalization": True,
        "save_interval": 2,
    }
    return argparse.Namespace(**(given | changes))


class DataBuffer:
    """Slime's data source with a buffer, as far as a rollout function sees it."""

    def __init__(self, size: int = 2, metadata: dict[str, list[str]] | None = None) -> None:
        self._size = size
        self._metadata = dict(metadata or {})
        self._groups: list[list[Any]] = []

    def get_metadata(self) -> dict[str, list[str]]:
        return self._metadata

    def update_metadata(self, metadata: dict[str, list[str]]) -> None:
        self._metadata.update(metadata)

    def get_buffer_length(self) -> int:
        return len(self._groups)

    def add_samples(self, samples: list[list[Any]]) -> None:
        for group in samples:
            assert len(group) == self._size, f"a group of {len(group)}, but groups have {self._size}"
            self._groups.append(group)

    def get_samples(self, num_samples: int) -> list[list[Any]]:
        assert len(self._groups) >= num_samples, f"{len(self._groups)} groups, but {num_samples} are wanted"
        taken, self._groups = self._groups[:num_samples], self._groups[num_samples:]
        return taken


def make_items(groups: int, *, size: int = 2, first: int = 0) -> list[dict[str, Any]]:
    """Items with tokens, in groups that have something to learn."""
    said = {"tokens": [1, 2, 3, 4, 5], "response_length": 3, "rollout_log_probs": [-0.5, -0.25, -0.125]}
    return [
        make_item(f"i{first + n // size}", reward=n % 2)
        | {"uid": f"i{first + n // size}:0:{n % size}"}
        | said
        for n in range(groups * size)
    ]


def write(url: str, items: list[dict[str, Any]]) -> None:
    with Client(url) as client:
        client.write_many(items).raise_for_rejected()


def uids_of(groups: list[list[Any]]) -> list[str]:
    return [sample.prompt for group in groups for sample in group]
