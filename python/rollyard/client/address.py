"""One URL that names a server and a run, as slime's programs pass it around."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, unquote

import httpx

from rollyard.client.site import shown

DEFAULT_RUN = "default"


@dataclass(frozen=True, slots=True)
class Address:
    """A server and one of its runs."""

    # May carry a token as its password.
    server: str = field(repr=False)
    run: str

    @classmethod
    def of(cls, url: str) -> Address:
        """From `http://host:8889`, which means the run `default`, or `http://host:8889/runs/NAME`."""
        whole = httpx.URL(url)
        before, named, run = whole.path.rstrip("/").rpartition("/runs/")
        if not named:
            return cls(str(whole).rstrip("/"), DEFAULT_RUN)
        if not run or "/" in run:
            raise ValueError(f"a run is named by http://HOST:PORT/runs/NAME, not by {shown(whole)}")
        return cls(str(whole.copy_with(path=before or "/")).rstrip("/"), unquote(run))

    @property
    def shown(self) -> str:
        """The URL of the run, without the secret that may be in it."""
        return f"{shown(httpx.URL(self.server))}/runs/{quote(self.run, safe='')}"
