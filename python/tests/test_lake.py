"""The queries of the guide, run by DuckDB over an archive on a disk and on S3."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import duckdb
import duckdb_extension_httpfs  # type: ignore[import-untyped]
import pytest
from s3server import S3Server, serve_s3

import rollyard
from serving import ROOT, Serve
from trainer import make_item

GUIDE = (ROOT / "docs/guide/lake.md").read_text()


def queries() -> list[str]:
    part = GUIDE.split("<!-- duckdb: begin -->")[1].split("<!-- duckdb: end -->")[0]
    return re.findall(r"```sql\n(.*?)```", part, re.DOTALL)


def fill(serve: Serve, place: str) -> None:
    """Nine rollouts: four trained on, four held, one dropped."""
    server = serve("--group-size", "2", "--archive", place, "--archive-format", "both")
    with rollyard.Client(server.url) as client:
        items = [{**make_item(f"i{n // 2}", reward=n % 2), "weight_version": n // 4} for n in range(9)]
        client.write_many(items)
        lease = client.lease(groups=2)
        assert lease is not None
        client.ack(lease)
        client.commit(5)
        client.drop(str(items[8]["uid"]))
    server.stop()


@pytest.fixture
def archive(serve: Serve, tmp_path: pathlib.Path) -> str:
    place = str(tmp_path / "lake")
    fill(serve, place)
    return place


def ask(place: str, query: str, *before: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for statement in before:
            connection.execute(statement)
        return connection.execute(query.replace("PLACE", place)).fetchall()


def check(place: str, *before: str) -> None:
    by_step, by_fate, by_record = queries()
    assert ask(place, by_step, *before) == [(0, 0.5, 4), (1, 0.5, 4), (2, 0.0, 1)]
    fates = {(status, reason): n for status, reason, n, _ in ask(place, by_fate, *before)}
    assert fates == {("held", None): 4, ("trained", None): 4, ("dropped", "requested"): 1}
    rows = ask(place, by_record, *before)
    assert len(rows) == 9 and {role for _, _, role in rows} <= {"user", "system", "assistant"}


def test_duckdb_runs_the_guides_queries_on_a_disk(archive: str) -> None:
    check(archive)


def secret(server: S3Server) -> str:
    """The guide's, with what stands for the user's own filled in."""
    [statement] = re.findall(r"`(CREATE SECRET \(TYPE s3, KEY_ID.*?)`", GUIDE)
    known = {"KEY_ID '…'": f"KEY_ID '{server.access_key}'", "SECRET '…'": f"SECRET '{server.secret_key}'"}
    for shown, own in known.items():
        assert shown in statement
        statement = statement.replace(shown, own)
    return str(statement.replace("host:port", server.endpoint.removeprefix("http://")))


def test_duckdb_runs_the_guides_queries_on_s3(
    serve: Serve, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From the wheel: tests must not need the network.
    [httpfs] = pathlib.Path(duckdb_extension_httpfs.__path__[0]).glob("extensions/*/httpfs.duckdb_extension")
    folder = tmp_path / "s3"
    folder.mkdir()
    with serve_s3(folder) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        fill(serve, "s3://yard/lake")
        check("s3://yard/lake", f"LOAD '{httpfs}'", secret(server))


def test_jsonl_and_parquet_tell_the_same(archive: str) -> None:
    parquet = f"SELECT record FROM read_parquet('{archive}/rollouts/*/*/*.parquet') ORDER BY rollout_n"
    [path] = pathlib.Path(archive, "default").glob("2*/*.jsonl")
    assert [record for (record,) in ask(archive, parquet)] == path.read_text().splitlines()
