"""The queries of the guide, run by DuckDB over an archive on a disk."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import duckdb
import pytest

import rollyard
from serving import ROOT, Serve
from trainer import make_item

GUIDE = (ROOT / "docs/guide/lake.md").read_text()


def queries() -> list[str]:
    part = GUIDE.split("<!-- duckdb: begin -->")[1].split("<!-- duckdb: end -->")[0]
    return re.findall(r"```sql\n(.*?)```", part, re.DOTALL)


@pytest.fixture
def archive(serve: Serve, tmp_path: pathlib.Path) -> str:
    place = tmp_path / "lake"
    server = serve("--group-size", "2", "--archive", str(place), "--archive-format", "both")
    with rollyard.Client(server.url) as client:
        items = [{**make_item(f"i{n // 2}", reward=n % 2), "weight_version": n // 4} for n in range(9)]
        client.write_many(items)
        lease = client.lease(groups=2)
        assert lease is not None
        client.ack(lease)
        client.commit(5)
        client.drop(items[8]["uid"])
    server.stop()
    return str(place)


def ask(place: str, query: str) -> list[tuple[Any, ...]]:
    return duckdb.connect().execute(query.replace("PLACE", place)).fetchall()


def test_duckdb_runs_the_guides_queries(archive: str) -> None:
    by_step, by_fate, by_record = queries()
    assert ask(archive, by_step) == [(0, 0.5, 4), (1, 0.5, 4), (2, 0.0, 1)]
    fates = {(status, reason): n for status, reason, n, _ in ask(archive, by_fate)}
    assert fates == {("held", None): 4, ("trained", None): 4, ("dropped", "requested"): 1}
    rows = ask(archive, by_record)
    assert len(rows) == 9 and {role for _, _, role in rows} <= {"user", "system", "assistant"}


def test_jsonl_and_parquet_tell_the_same(archive: str) -> None:
    parquet = f"SELECT record FROM read_parquet('{archive}/rollouts/*/*/*.parquet') ORDER BY rollout_n"
    [path] = pathlib.Path(archive, "default").glob("2*/*.jsonl")
    assert [record for (record,) in ask(archive, parquet)] == path.read_text().splitlines()
