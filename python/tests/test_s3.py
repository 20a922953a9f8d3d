"""Files of rollouts on a server that checks who asks; moto, in test_storage.py, takes any secret."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest
from s3server import S3Server, serve_s3

from rollyard import (
    FileRolloutReader,
    FileRolloutWriter,
    RolloutBatch,
    RolloutGroup,
    RolloutMetadata,
    StorageError,
)
from samples import make_rollout

METADATA = RolloutMetadata("host_1", 12.5, 7)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty home of somebody who has set nothing."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def make_batch() -> RolloutBatch:
    return RolloutBatch([RolloutGroup([make_rollout("a", metadata=METADATA)])], METADATA)


@pytest.mark.parametrize("source", ["environment", "dotenv", "profile"])
def test_keys_are_found_where_tools_for_s3_look(
    source: str, s3: S3Server, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "environment":
        for name, value in s3.environment.items():
            monkeypatch.setenv(name, value)
    elif source == "dotenv":
        lines = [f"export {name}='{value}'" for name, value in s3.environment.items()]
        (home / ".env").write_text("\n".join(lines))
    else:
        keys = f"aws_access_key_id = {s3.access_key}\naws_secret_access_key = {s3.secret_key}"
        (home / ".aws").mkdir()
        (home / ".aws/credentials").write_text(f"[default]\n{keys}\n")
        (home / ".aws/config").write_text(f"[default]\nendpoint_url = {s3.endpoint}\nregion = us-east-1\n")
    FileRolloutWriter(f"s3://yard/{source}").write_batch(make_batch())
    assert FileRolloutReader(f"s3://yard/{source}").read_batch() == make_batch()


def test_a_wrong_secret_and_no_keys_at_all_are_told(
    s3: S3Server, home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StorageError, match=r"tried the environment \(AWS_ACCESS_KEY_ID is not set\), ~/.env"):
        FileRolloutReader("s3://yard/run").read_batch()
    for name, value in (s3.environment | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StorageError, match="SignatureDoesNotMatch") as raised:
        FileRolloutReader("s3://yard/run").read_batch()
    assert "not-the-secret" not in str(raised.value)
