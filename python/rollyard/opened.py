"""Files of rollouts, open for questions.

What is at a place (a file, a folder, a glob, `s3://bucket/prefix`) is indexed once in the cache folder and
asked from then on in milliseconds; `rollyard query` and the viewer use the same index.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rollyard._rollyard import Answer, Catalog

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    import polars
    import pyarrow  # type: ignore[import-untyped]

Channel = Literal["system", "user", "assistant", "reasoning", "tool_call", "tool_result"]


def open(*places: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None) -> Rollouts:
    """Opens the rollouts at these places, indexing what is new.

    The index is in `cache`; without it in `ROLLYARD_CACHE`, or the user's cache folder.
    """
    if not places:
        raise ValueError("there is no place to open; give a file, a folder, a glob or s3://bucket/prefix")
    rollouts = Rollouts([os.fspath(place) for place in places], cache=cache)
    rollouts.refresh()
    return rollouts


class Rollouts:
    """The rollouts at some places. Made by `open`."""

    def __init__(self, places: Sequence[str], *, cache: str | os.PathLike[str] | None = None) -> None:
        self.places = tuple(places)
        self._catalog = Catalog(list(places), None if cache is None else os.fspath(cache))
        self._rows, self._bad_rows = 0, 0

    def refresh(self) -> None:
        """Looks at the files again and indexes what was added."""
        self._rows, self._bad_rows = self._catalog.refresh()

    def __len__(self) -> int:
        return self._rows

    @property
    def bad_rows(self) -> int:
        """Rows that could not be read; `select * from bad_rows` lists them."""
        return self._bad_rows

    def query(self, sql: str) -> Table:
        """Answers one SELECT over `rollouts`; its columns are those of `rollyard query --columns`."""
        return Table(self._catalog.sql(sql))

    def search(
        self,
        text: str,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        channels: Sequence[Channel] = (),
        filter: str = "",
        limit: int | None = None,
    ) -> list[Found]:
        """Rollouts in which `text` was said, and by whom; `filter` is as in `reward > 0.5 and step < 9`."""
        hits = self._catalog.search((text, regex, ignore_case, list(channels)), filter, limit)
        return [Found(*hit) for hit in hits]

    def raw(self, id: str) -> bytes:
        """The line of a rollout, byte for byte as it stands in its file."""
        line = self._catalog.raw(id)
        if line is None:
            raise KeyError(f"there is no rollout with the id {id!r} at {', '.join(self.places)}")
        return line

    def rollout(self, id: str) -> Any:
        """A rollout as its line says it."""
        return json.loads(self.raw(id))

    def __repr__(self) -> str:
        return f"<rollyard.Rollouts: {self._rows} at {', '.join(self.places)}>"


@dataclass(frozen=True)
class Found:
    """A rollout in which something was found: the first hit in it, and how many there are."""

    id: str
    message: int
    channel: str
    start: int
    end: int
    snippet: str
    hits: int


class Table:
    """The answer to a query."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    @property
    def columns(self) -> list[str]:
        return self._answer.names

    def __len__(self) -> int:
        return len(self._answer)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._answer.rows())

    def to_dicts(self) -> list[dict[str, Any]]:
        names = self.columns
        return [dict(zip(names, row, strict=True)) for row in self]

    def to_arrow(self) -> pyarrow.Table:
        """Needs pyarrow."""
        import pyarrow.ipc  # type: ignore[import-untyped]

        with pyarrow.ipc.open_stream(self._answer.ipc()) as stream:
            return stream.read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Needs pandas and pyarrow."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Needs polars."""
        import polars

        return polars.read_ipc_stream(self._answer.ipc())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<rollyard.Table: {len(self)} rows of {', '.join(self.columns)}>"
