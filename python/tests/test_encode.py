"""Rollouts as lines, and lines as bodies: nothing is changed, lost or put in another order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollyard import errors
from rollyard.client import encode, flow

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, values))
def test_a_rollout_arrives_as_it_was(rollout: dict[str, Any]) -> None:
    before = json.dumps(rollout)
    line = encode.encode(rollout)
    assert json.dumps(rollout) == before
    arrived = json.loads(line.content)
    assert b"\n" not in line.content and arrived["uid"] is not None
    assert str(arrived["uid"]) == line.uid
    uid = arrived["uid"] if rollout.get("uid") is None else rollout["uid"]
    assert arrived == rollout | {"uid": uid}


@given(st.lists(st.integers(min_value=0, max_value=3 * encode.BODY_BYTES_MAX), max_size=30))
def test_bodies_keep_the_order_and_their_limits(sizes: list[int]) -> None:
    class Sized(bytes):
        """Stands for many bytes."""

        size = 0

        def __len__(self) -> int:
            return self.size

    lines: list[encode.Line | encode.BadLine] = []
    for index, size in enumerate(sizes):
        content = Sized()
        content.size = size
        lines.append(encode.Line(index, str(index), content))
    bodies = list(encode.bodies(lines))
    assert [line for body in bodies for line in body] == lines
    for body in bodies:
        total = sum(len(line.content) + 1 for line in body if isinstance(line, encode.Line))
        assert len(body) == 1 or total <= encode.BODY_BYTES_MAX


@pytest.mark.parametrize(
    ("rollout", "field"),
    [
        ({"uid": "a", "x": float("inf")}, "x"),
        ({"uid": "a", "x": [1, {"y": object()}]}, "x"),
        ({"uid": "a", "x": "\ud800"}, "x"),
        ([("uid", "a")], None),
    ],
)
def test_what_is_not_json_is_refused_by_its_field(rollout: Any, field: str | None) -> None:
    with pytest.raises(errors.RolloutError) as caught:
        encode.encode(rollout)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("said", "secs"),
    [("7", 7.0), ("", 0.0), ("soon", 0.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("-3", 0.0)],
)
def test_retry_after_is_read_as_seconds_or_a_date(said: str, secs: float) -> None:
    assert flow.retry_after_secs({"retry-after": said}) == secs


def test_pauses_grow_and_heed_the_server() -> None:
    answer = flow.Answer(429, {"retry-after": "9"}, b"")
    assert flow.pause_secs(0, answer) == 9
    for attempt in range(20):
        longest = min(flow.PAUSE_SECS_FIRST * 2**attempt, flow.PAUSE_SECS_MAX)
        assert longest / 2 <= flow.pause_secs(attempt, flow.Answer(503, {}, b"")) <= longest
