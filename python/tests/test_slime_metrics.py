"""What is logged of a rollout: the values, the step they stand at, and that no logger can end a training."""

from __future__ import annotations

import argparse
import importlib
import pathlib
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rollyard.slime import generate_rollout, log_raw_info, metrics
from samples import run_python
from serving import Serve
from slimetrainer import DataBuffer, make_args, make_items, serve_slime, write

META: list[dict[str, Any]] = [
    {"total_samples": 30, "avg_reward": 0.5},
    {},
    {"total_samples": 10, "avg_reward": 0.9},
    {"total_samples": 0, "avg_reward": 0.0},
]
TOTAL, MEAN = 40, 0.6


@pytest.fixture(autouse=True)
def each_test_is_warned_afresh() -> None:
    metrics.warn_once.cache_clear()


def make_log_args(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**({"use_wandb": False, "use_tensorboard": False} | given))


SUMMARIES: list[tuple[list[dict[str, Any]], dict[str, Any] | None]] = [
    ([], None),
    ([{}], None),
    ([{"total_samples": 0, "avg_reward": 0.0}], None),
    (META, {"rollout/no_filter/total_samples": TOTAL, "rollout/no_filter/avg_reward": pytest.approx(MEAN)}),
]


@pytest.mark.parametrize(("given", "expected"), SUMMARIES)
def test_means_are_weighted_by_samples(given: list[dict[str, Any]], expected: dict[str, Any] | None) -> None:
    assert metrics.summary(given) == expected


def test_steps_are_counted_as_slime_counts_them() -> None:
    sizes = {"rollout_batch_size": 16, "n_samples_per_prompt": 8, "global_batch_size": 64}
    assert metrics.chart_step(make_log_args(**sizes), 3) == 3
    assert metrics.chart_step(make_log_args(wandb_always_use_train_step=True, **sizes), 3) == 6


# In a process of its own: wandb has one run for each.
OFFLINE = """
import argparse, json, sys, wandb
from rollyard.slime import log_raw_info
wandb.init(project="yard", mode="offline", dir=sys.argv[1], settings=wandb.Settings(silent=True))
args = argparse.Namespace(use_wandb=True)
for step, reward in ((4, 0.5), (5, 0.75), (4, 0.25)):
    log_raw_info(args, [{"total_samples": 10, "avg_reward": reward}], step)
print(json.dumps(dict(wandb.run.summary)), wandb.run.settings.sync_file)
wandb.finish()
"""


def test_wandb_gets_the_values_offline_too(tmp_path: pathlib.Path) -> None:
    summary, _, file = run_python(OFFLINE, str(tmp_path)).splitlines()[-1].rpartition(" ")
    assert '"rollout/no_filter/avg_reward": 0.25' in summary and '"rollout/step": 4' in summary
    rows = [{item.key or item.nested_key[0]: item.value_json for item in row} for row in wandb_rows(file)]
    logged = [(row["rollout/step"], row["rollout/no_filter/avg_reward"]) for row in rows]
    assert logged == [("4", "0.5"), ("5", "0.75"), ("4", "0.25")]


def wandb_rows(file: str) -> Iterator[Any]:
    """The rows of history in the file that `wandb sync` would send."""
    messages = importlib.import_module("wandb.proto.wandb_internal_pb2")
    for data in wandb_records(pathlib.Path(file).read_bytes()):
        record = messages.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            yield record.history.item


def wandb_records(content: bytes) -> Iterator[bytes]:
    """Blocks of 32 KB, in which a record is one fragment or several: a checksum (4 bytes), the length (2),
    and whether it is whole (1), the first (2), one between (3) or the last (4)."""
    at, record = 7, b""
    while at < len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def test_tensorboard_gets_the_values(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_DIR", str(tmp_path))
    for step in (4, 5):
        log_raw_info(make_log_args(use_tensorboard=True), META, step)
    [file] = tmp_path.iterdir()
    deadline = time.monotonic() + 30
    # The library writes in a thread of its own.
    while len(told := {(step, name): value for step, name, value in tensorboard_scalars(file)}) < 6:
        assert time.monotonic() < deadline, told
        time.sleep(0.02)
    assert told == {
        (step, name): pytest.approx(value)
        for step in (4, 5)
        for name, value in {
            "rollout/no_filter/total_samples": TOTAL,
            "rollout/no_filter/avg_reward": MEAN,
            "rollout/step": step,
        }.items()
    }


def tensorboard_scalars(file: pathlib.Path) -> Iterator[tuple[int, str, float]]:
    """Each record is its length (8 bytes), a checksum (4), the event, and a checksum (4)."""
    messages = importlib.import_module("tensorboardX.proto.event_pb2")
    content = file.read_bytes()
    while len(content) >= 8:
        (length,) = struct.unpack("<Q", content[:8])
        if len(content) < 16 + length:
            return
        event = messages.Event.FromString(content[12 : 12 + length])
        for value in event.summary.value:
            yield event.step, value.tag, value.simple_value
        content = content[16 + length :]


def test_where_tensorboard_goes_is_where_slime_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSORBOARD_DIR", raising=False)
    args = make_log_args(tb_project_name="p", tb_experiment_name="e")
    assert metrics.tensorboard_folder(args) == "tensorboard_log/p/e"
    assert metrics.tensorboard_folder(make_log_args()) == "tensorboard_log/rollyard/rollout"


OF_SLIME = """
import argparse, sys, types
for name in ("slime", "slime.utils", "slime.utils.logging_utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["slime.utils.logging_utils"].log = lambda args, values, step_key: print(values, step_key)
from rollyard.slime import log_raw_info
log_raw_info(argparse.Namespace(use_wandb=True), [{"total_samples": 2, "avg_reward": 1.0}], 3)
"""


def test_where_slime_is_installed_its_own_logging_is_used() -> None:
    values = {"rollout/no_filter/total_samples": 2, "rollout/no_filter/avg_reward": 1.0, "rollout/step": 3}
    assert run_python(OF_SLIME) == f"{values} rollout/step"


# A name that is set to None cannot be imported, as if it were not installed.
MISSING = """
import argparse, logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
for name in ("wandb", "tensorboardX", "torch", "torch.utils.tensorboard"):
    sys.modules[name] = None
from rollyard.slime import log_raw_info
args = argparse.Namespace(use_wandb=True, use_tensorboard=True)
for step in range(3):
    log_raw_info(args, [{"total_samples": 2, "avg_reward": 1.0}], step)
"""


def test_a_library_that_is_not_there_is_told_once() -> None:
    told = run_python(MISSING).splitlines()
    assert [line.split()[5] for line in told] == ["wandb,", "TensorBoard,"], told


def test_a_logger_that_fails_does_not_stop_the_other(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_args: Any, _values: Any) -> None:
        raise ConnectionError("the charts are on fire")

    monkeypatch.setattr(metrics, "to_wandb", fail)
    monkeypatch.setenv("TENSORBOARD_DIR", str(tmp_path))
    for step in range(3):
        log_raw_info(make_log_args(use_wandb=True, use_tensorboard=True), META, step)
    assert sum("on fire" in told for told in caplog.messages) == 1
    assert any(tmp_path.iterdir())


def test_a_training_goes_on_without_its_charts(
    serve: Serve, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(2))
    # No run of wandb is open in this process, and the step cannot be calculated either.
    args = make_args(url, tmp_path, use_wandb=True, wandb_always_use_train_step=True)
    assert len(generate_rollout(args, 0, DataBuffer())) == 2
    assert any("metrics are not logged" in told and "global_batch_size" in told for told in caplog.messages)
    args = make_args(f"{url}/runs/two", tmp_path, use_wandb=True)
    log_raw_info(args, META, 0)
    assert any("wandb.init()" in told for told in caplog.messages)
