"""Where a trainer's yard is: one URL, as slime's arguments have it, that names a server and a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import httpx

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
            raise ValueError(f"a run is named by http://HOST:PORT/runs/NAME, not by {_shown(whole)}")
        return cls(str(whole.copy_with(path=before or "/")).rstrip("/"), unquote(run))

    @property
    def shown(self) -> str:
        """The URL of the run, without the secret that may be in it."""
        return f"{_shown(httpx.URL(self.server))}/runs/{quote(self.run, safe='')}"


def buffer_url(args: Any) -> str:
    """The URL in slime's arguments, under its newer or its older name."""
    for name in ("agent_rollout_buffer_url", "rollout_buffer_url"):
        url = getattr(args, name, None)
        if url:
            return str(url)
    raise ValueError("where the yard is was not said; give --rollout-buffer-url http://HOST:8889")


def _shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"")).rstrip("/")
