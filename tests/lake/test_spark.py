"""The guide's Spark code, run on an archive that a real server wrote. Needs Java."""

from __future__ import annotations

import json
import pathlib
import sys
import urllib.request
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from serving import Server  # noqa: E402


def post(server: Server, path: str, *bodies: dict[str, Any]) -> Any:
    data = "\n".join(json.dumps(body) for body in bodies).encode()
    with urllib.request.urlopen(f"{server.url}/api/runs/default/{path}", data=data) as answer:
        return json.load(answer)


@pytest.fixture
def place(tmp_path: pathlib.Path) -> str:
    place = tmp_path / "lake"
    server = Server(
        tmp_path / "yard", "--group-size", "2", "--archive", str(place), "--archive-format", "parquet"
    )
    message = {"role": "assistant", "content": "4"}
    items = [
        {
            "uid": f"u{n}",
            "instance_id": n // 2,
            "messages": [message],
            "reward": n % 2,
            "weight_version": n // 4,
        }
        for n in range(8)
    ]
    post(server, "rollouts", *items)
    lease = post(server, "lease", {"groups": 2})["lease"]
    post(server, f"leases/{lease}/ack")
    post(server, "commit", {"step": 3})
    server.stop()
    return str(place)


def test_spark_runs_the_guides_code(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs/guide/lake.md").read_text()
    code = guide.split("<!-- spark: begin -->")[1].split("```python\n")[1].split("```")[0]
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        exec(code.replace("PLACE", place), {"spark": spark})
    finally:
        spark.stop()
    by_step, by_status = capsys.readouterr().out.strip().split("\n\n")
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in by_step.splitlines() if "|" in row
    ]
    assert cells == [["step", "avg(reward)"], ["0", "0.5"], ["1", "0.5"]]
    counted = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in by_status.splitlines() if "|" in row
    ]
    assert sorted(counted[1:]) == [["NULL", "4"], ["trained", "4"]]
