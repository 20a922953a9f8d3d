"""The loggers: every sample once, whole lines, whatever shares the file."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import pathlib
import subprocess
import sys
from typing import Any

import boto3  # type: ignore[import-untyped]
import numpy as np
import pytest
from s3server import serve_s3

from rollyard import Message, RolloutLogger, RolloutSample, S3RolloutLogger, SampleAttributes, StorageError


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def attributes(n: int = 0) -> SampleAttributes:
    return SampleAttributes(0, 1, n, 0.5, "math", "exp")


def test_a_sample_is_written_as_the_seed_does(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "deep" / "log.jsonl"
    messages = [Message("user", "2+2?"), Message("assistant", "<think>\n</think>\n4", tool_calls=[{"id": 1}])]
    sample = RolloutSample(
        messages=messages, attributes=attributes(7), timestamp="2026-01-16T11:33:10.744140"
    )
    with RolloutLogger(str(path)) as logger:
        logger.log(sample)
    [line] = read(path)
    assert line == {
        "messages": [
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "<think>\n</think>\n4", "tool_calls": [{"id": 1}]},
        ],
        "attributes": {
            "sample_index": 0,
            "step": 1,
            "rollout_n": 7,
            "reward": 0.5,
            "data_source": "math",
            "experiment_name": "exp",
            "validate": False,
        },
        "timestamp": "2026-01-16T11:33:10.744140",
    }
    assert json.loads(sample.to_json()) == line


def test_log_rollout_takes_the_seeds_arguments_and_keeps_more(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    logger = RolloutLogger(path)
    logger.log_rollout([{"role": "user", "content": "?"}], 3, 1.0)
    logger.log_rollout([{"role": "user", "content": "?"}], 4, 1.0, 100, 2, "d", "e", True, advantage=-0.5)
    logger.flush()
    first, second = read(path)
    assert first["attributes"] == {
        "sample_index": 0,
        "step": 1,
        "rollout_n": 3,
        "reward": 1.0,
        "data_source": "unknown",
        "experiment_name": "experiment",
        "validate": False,
    }
    assert list(second["attributes"].values()) == [2, 100, 4, 1.0, "d", "e", True, -0.5]
    logger.close()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (10**30, 10**30),
        ((1, None, True), [1, None, True]),
        ("ä\n\ud800", "ä\n\ufffd"),
        ({1: {"a": 1.0}}, {"1": {"a": 1.0}}),
    ],
)
def test_odd_values_become_json_that_every_reader_takes(
    tmp_path: pathlib.Path, value: Any, written: Any
) -> None:
    path = tmp_path / "log.jsonl"
    with RolloutLogger(path) as logger:
        logger.log({"messages": [], "value": value})
    [line] = read(path)
    if isinstance(value, str):
        assert line["value"].startswith("ä\n")
    else:
        assert line["value"] == written


def test_what_is_no_json_is_refused_and_nothing_is_written(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    with RolloutLogger(path) as logger:
        with pytest.raises(TypeError, match="object cannot be logged"):
            logger.log({"messages": [object()]})
        loop: list[Any] = []
        loop.append(loop)
        with pytest.raises(ValueError, match="nested"):
            logger.log({"messages": loop})
    assert path.read_text() == ""


def log_some(path: str, who: int, count: int) -> None:
    logger = RolloutLogger(path)
    for n in range(count):
        logger.log_rollout([{"role": "user", "content": "x" * (n % 3000)}], n, 1.0, data_source=str(who))
    logger.close()


def test_processes_share_a_file_without_tearing_lines(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=log_some, args=(str(path), who, 500)) for who in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    seen = [(line["attributes"]["data_source"], line["attributes"]["rollout_n"]) for line in read(path)]
    assert sorted(seen) == sorted((str(who), n) for who in range(3) for n in range(500))


CHILD = """
import os, sys
from rollyard import RolloutLogger
logger = RolloutLogger(sys.argv[1])
logger.log({"messages": [], "who": "parent"})
child = os.fork()
logger.log({"messages": [], "who": "child" if child == 0 else "parent"})
if child == 0:
    logger.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_writes_its_own_lines_and_the_end_writes_the_rest(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.jsonl"
    subprocess.run([sys.executable, "-c", CHILD, str(path)], check=True, timeout=60)
    assert sorted(line["who"] for line in read(path)) == ["child", "parent", "parent"]


def test_what_cannot_be_written_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    logger = RolloutLogger("/dev/full")
    logger.log({"messages": []})
    with pytest.raises(StorageError, match="1 lines are not written yet.*/dev/full"):
        logger.flush()
    with caplog.at_level(logging.ERROR):
        logger.log({"messages": []})
    assert "/dev/full" in caplog.text
    with pytest.raises(OSError, match="2 lines"):
        logger.close()


def test_a_place_that_cannot_be_opened_is_refused_at_once() -> None:
    with pytest.raises(StorageError, match="/proc/nothing"):
        RolloutLogger("/proc/nothing/log.jsonl")


def test_an_object_can_be_read_after_each_flush(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_s3(tmp_path) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        store = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
            region_name="us-east-1",
        )

        def ids(key: str) -> list[int]:
            body = store.get_object(Bucket="yard", Key=key)["Body"].read().decode()
            return [json.loads(line)["n"] for line in body.splitlines()]

        logger = S3RolloutLogger("yard", "logs", "exp")
        assert logger.key.startswith("logs/exp/2") and logger.key.endswith(".jsonl")
        logger.log({"messages": [], "n": 0})
        logger.flush()
        assert ids(logger.key) == [0]
        for n in range(1, 150):
            logger.log({"messages": [], "n": n})
        logger.close()
        keys = [found["Key"] for found in store.list_objects_v2(Bucket="yard", Prefix="logs/")["Contents"]]
        assert sorted(n for key in keys for n in ids(key)) == list(range(150))
        assert logger.key.replace(".jsonl", ".0001.jsonl") in keys
        assert capsys.readouterr().out == f"Logged 150 samples to s3://yard/{logger.key}\n"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        refused = S3RolloutLogger("yard", "logs", "exp")
        refused.log({"messages": [], "n": 0})
        with pytest.raises(StorageError, match="1 lines are not written yet"):
            refused.flush()
        with pytest.raises(StorageError, match="1 lines"):
            refused.close()
