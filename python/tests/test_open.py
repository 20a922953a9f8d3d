"""Files of rollouts, asked from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollyard


def line(n: int, **attributes: Any) -> str:
    step = n // 10
    return json.dumps(
        {
            "messages": [
                {"role": "user", "content": f"What is {n // 5} + 1?"},
                {"role": "assistant", "content": f"<think>hm, {n}</think>It is {n // 5 + 1}. ✓"},
            ],
            "attributes": {"step": step, "rollout_n": n, "reward": step / 4, "data_source": "math"}
            | attributes,
            "timestamp": "2026-01-16T11:33:10.744140",
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text("".join(line(n) + "\n" for n in range(40)))
    return tmp_path / "a.jsonl"


def opened(place: Path) -> rollyard.Rollouts:
    return rollyard.open(place, cache=place.parent / "cache")


CURVE = "select step, avg(reward) as reward, count(*) as n from rollouts group by step order by step"


def test_a_query_is_a_table_in_every_library(place: Path) -> None:
    table = opened(place).query(CURVE)
    assert table.columns == ["step", "reward", "n"] and len(table) == 4
    assert list(table) == [(0, 0.0, 10), (1, 0.25, 10), (2, 0.5, 10), (3, 0.75, 10)]
    assert table.to_dicts()[1] == {"step": 1, "reward": 0.25, "n": 10}
    arrow = table.to_arrow()
    assert arrow.column("step").to_pylist() == [0, 1, 2, 3]
    assert [str(kind) for kind in arrow.schema.types] == ["int64", "double", "int64"]
    frame = table.to_pandas()
    np.testing.assert_array_equal(frame["reward"].to_numpy(), [0.0, 0.25, 0.5, 0.75])
    assert table.to_polars()["n"].sum() == 40


def test_an_answer_without_rows_keeps_its_columns(place: Path) -> None:
    table = opened(place).query("select step, uid from rollouts where step > 100")
    assert (table.columns, len(table), table.to_dicts()) == (["step", "uid"], 0, [])
    assert table.to_arrow().num_rows == 0 and table.to_pandas().empty and table.to_polars().is_empty()


def test_what_was_said_is_found_by_channel(place: Path) -> None:
    rollouts = opened(place)
    [found] = rollouts.search("hm, 17", channels=["reasoning"])
    assert (found.message, found.channel, found.hits) == (1, "reasoning", 1)
    assert "hm, 17" in found.snippet
    assert json.loads(rollouts.raw(found.id)) == json.loads(line(17)) == rollouts.rollout(found.id)
    assert rollouts.search("hm, 17", channels=["assistant"]) == []
    assert len(rollouts.search(r"hm, \d7", regex=True, filter="step < 3")) == 2
    assert len(rollouts.search("IT IS", ignore_case=True, limit=3)) == 3
    assert len(rollouts.search("✓")) == 40, "json.dumps wrote it as an escape"


def test_new_lines_are_added_by_refresh(place: Path) -> None:
    rollouts = opened(place)
    assert len(rollouts) == 40
    with place.open("a") as file:
        file.write(line(40) + "\nnot json\n")
    rollouts.refresh()
    assert (len(rollouts), rollouts.bad_rows) == (41, 1)
    [bad] = rollouts.query("select line, problem from bad_rows").to_dicts()
    assert bad["line"] == 42 and bad["problem"]


def test_mistakes_are_told_with_their_place(place: Path) -> None:
    rollouts = opened(place)
    with pytest.raises(rollyard.QueryError, match="rewrad") as caught:
        rollouts.query("select rewrad from rollouts")
    assert caught.value.at is not None and caught.value.at[0] == 7
    with pytest.raises(rollyard.QueryError) as caught:
        rollouts.search("x", filter="reward >")
    assert caught.value.at is not None
    with pytest.raises(rollyard.QueryError, match="regex|expression|unclosed"):
        rollouts.search("hm(", regex=True)
    with pytest.raises(rollyard.QueryError, match="tool_call"):
        rollouts.search("x", channels=["tool"])  # type: ignore[list-item]
    with pytest.raises(rollyard.StorageError, match="nowhere"):
        rollyard.open(place.parent / "nowhere.jsonl", cache=place.parent / "cache")
    with pytest.raises(KeyError, match="abc"):
        rollouts.raw("abc")
    with pytest.raises(ValueError, match="no place"):
        rollyard.open()
