"""`log_raw_info`: how the policy did before any group was filtered, on the charts of the training.

A chart is never worth a training: whatever fails here is a line in the log.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

from rollyard.client.flow import logger

STEP_KEY = "rollout/step"

Sender: TypeAlias = Callable[[Any, Mapping[str, float]], None]


def log_raw_info(args: Any, all_meta_info: Iterable[Mapping[str, Any]], rollout_id: int) -> None:
    """Logs how many rollouts came in and their mean reward, weighted by how many each read had.

    Goes where slime's own metrics go, if slime is installed; else to the run of wandb that is open in this
    process (`args.use_wandb`) and to TensorBoard (`args.use_tensorboard`).
    """
    values = summary(all_meta_info)
    if values is None:
        return
    for send in senders(args):
        try:
            values[STEP_KEY] = chart_step(args, rollout_id)
            send(args, values)
        except Exception as trouble:
            # One line for each kind of trouble, or a long training is mostly that line.
            warn_once(f"metrics are not logged by {send.__name__}: {type(trouble).__name__}: {trouble}")


def summary(all_meta_info: Iterable[Mapping[str, Any]]) -> dict[str, float] | None:
    """The two values, or `None` if nothing came in."""
    counted = [meta for meta in all_meta_info if meta.get("total_samples")]
    total = sum(meta["total_samples"] for meta in counted)
    if not total:
        return None
    rewards = sum(meta.get("avg_reward", 0.0) * meta["total_samples"] for meta in counted)
    return {"rollout/no_filter/total_samples": total, "rollout/no_filter/avg_reward": rewards / total}


def chart_step(args: Any, rollout_id: int) -> int:
    """The rollout's number, or that of the first training step it is used in, as slime counts them."""
    if not getattr(args, "wandb_always_use_train_step", False):
        return rollout_id
    return int(rollout_id * args.rollout_batch_size * args.n_samples_per_prompt // args.global_batch_size)


def senders(args: Any) -> list[Sender]:
    """Where the values go. Slime's own logging knows of more places than we do, and ours beside it would be
    a second point on the same chart."""
    if slime_logging() is not None:
        return [to_slime]
    wanted = {to_wandb: "use_wandb", to_tensorboard: "use_tensorboard"}
    return [to_log, *(send for send, flag in wanted.items() if getattr(args, flag, False))]


@cache
def slime_logging() -> Any | None:
    try:
        module = importlib.import_module("slime.utils.logging_utils")
    except ImportError:
        return None
    # Early versions of slime logged to wandb directly.
    return module if hasattr(module, "log") else None


def to_slime(args: Any, values: Mapping[str, float]) -> None:
    module = slime_logging()
    assert module is not None, "it is chosen only where it is there"
    module.log(args, dict(values), step_key=STEP_KEY)


def to_log(_args: Any, values: Mapping[str, float]) -> None:
    logger.info("before filtering: %s", dict(values))


def to_wandb(_args: Any, values: Mapping[str, float]) -> None:
    try:
        import wandb
    except ImportError:
        warn_once("metrics do not go to wandb, which is not installed: pip install wandb")
        return
    if wandb.run is None:
        warn_once("metrics do not go to wandb: this process has no run; call wandb.init() before it trains")
        return
    # Our steps go back when a training does, which wandb's own may not.
    wandb.run.define_metric("rollout/*", step_metric=STEP_KEY)
    wandb.run.log(dict(values))


def to_tensorboard(args: Any, values: Mapping[str, float]) -> None:
    writer = tensorboard_writer(tensorboard_folder(args), os.getpid())
    if writer is None:
        warn_once("metrics do not go to TensorBoard, which is not installed: pip install tensorboardX")
        return
    for name, value in values.items():
        writer.add_scalar(name, value, int(values[STEP_KEY]))


def tensorboard_folder(args: Any) -> str:
    """Where slime writes its own."""
    project, experiment = getattr(args, "tb_project_name", None), getattr(args, "tb_experiment_name", None)
    return os.environ.get("TENSORBOARD_DIR") or os.path.join(
        "tensorboard_log", project or "rollyard", experiment or "rollout"
    )


@cache
def tensorboard_writer(folder: str, _pid: int) -> Any | None:
    """A writer of this process: one that was forked with us would write into its parent's file."""
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            # Its thread writes soon by itself; `flush` does not wait for what is still on the way to it.
            return importlib.import_module(module).SummaryWriter(folder, flush_secs=1)
        except ImportError:
            continue
    return None


@cache
def warn_once(message: str) -> None:
    logger.warning(message)
