"""Where the server is, and how hard to try to reach it."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

DEFAULT_URL = "http://127.0.0.1:8889"


# After so long it is tried again.
DETOUR_CLOSED_SECS = 60.0


@dataclass(slots=True)
class Detour:
    """Whether large rollouts may go past the server."""

    closed_until: float = 0.0

    def close(self) -> None:
        self.closed_until = time.monotonic() + DETOUR_CLOSED_SECS


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Settings of a client, resolved once: arguments, then the environment, then defaults."""

    url: httpx.URL = field(repr=False)
    run: str
    token: str | None = field(repr=False)
    timeout_secs: float
    retries: int
    # Learned on the way.
    detour: Detour = field(default_factory=Detour, repr=False, compare=False)

    @classmethod
    def resolve(
        cls, *, url: str | None, run: str, token: str | None, timeout_secs: float, retries: int
    ) -> Site:
        where = httpx.URL(url or os.environ.get("ROLLYARD_URL") or DEFAULT_URL)
        if where.scheme not in ("http", "https") or not where.host:
            raise ValueError(f"a server is at an http:// or https:// URL, not at {shown(where)!r}")
        if timeout_secs <= 0:
            raise ValueError(f"timeout_secs is {timeout_secs}, but must be above 0")
        if retries < 0:
            raise ValueError(f"retries is {retries}, but must be 0 or more")
        token = token or os.environ.get("ROLLYARD_TOKEN") or None
        return cls(url=where, run=run, token=token, timeout_secs=timeout_secs, retries=retries)

    @property
    def shown_url(self) -> str:
        """The URL without the secret that may be in it."""
        return shown(self.url)

    @property
    def run_path(self) -> str:
        return f"/api/runs/{quote(self.run, safe='')}"

    @property
    def buffer_path(self) -> str:
        return f"/runs/{quote(self.run, safe='')}/buffer"

    def in_haste(self) -> Site:
        """One short try, for a caller that is already on its way out."""
        return dataclasses.replace(self, retries=0, timeout_secs=min(self.timeout_secs, 5.0))

    def http_options(self) -> dict[str, Any]:
        """What both kinds of HTTP client are made with."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {
            "base_url": self.url,
            "headers": headers,
            # Waiting for groups holds a connection, and every thread may wait.
            "limits": httpx.Limits(max_connections=None, max_keepalive_connections=32),
            # A proxy for the outside world does not lead back to this machine.
            "trust_env": not _is_loopback(self.url.host),
        }


def shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"")).rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
