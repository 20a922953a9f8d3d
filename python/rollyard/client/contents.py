"""What a client and a lease are before it matters whether they block or await."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from rollyard._rollyard import Rollout, rollouts_of
from rollyard.client.results import Granted, Group, Sample
from rollyard.client.site import Detour, Site
from rollyard.masks import MultiTurnLossMaskGenerator


class ClientBase:
    """A client's settings. Pickled and copied without its connections; a token in them goes along."""

    def __init__(
        self,
        url: str | None = None,
        *,
        run: str = "default",
        token: str | None = None,
        timeout_secs: float = 60.0,
        retries: int = 8,
    ) -> None:
        self.__setstate__(
            Site.resolve(url=url, run=run, token=token, timeout_secs=timeout_secs, retries=retries)
        )

    def __getstate__(self) -> Site:
        return self._site

    def __setstate__(self, site: Site) -> None:
        # What another process has learned on its way, by its own clock, does not count here.
        self._site = dataclasses.replace(site, detour=Detour())
        self._closed = False

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._site.shown_url

    @property
    def run(self) -> str:
        """The run that all calls are about."""
        return self._site.run

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, run={self.run!r})"

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"the client is closed: {self!r}")


class LeaseBase:
    """Groups that nobody else gets until the lease is acked, given back, or over."""

    __slots__ = ("_granted", "_settled")

    def __init__(self, granted: Granted) -> None:
        self._granted = granted
        # Acked or given back: leaving the `with` block has nothing left to do.
        self._settled = False

    @property
    def id(self) -> int:
        """The lease's number."""
        return self._granted.lease

    @property
    def groups(self) -> tuple[Group, ...]:
        return self._granted.groups

    @property
    def rollouts(self) -> list[dict[str, Any]]:
        """The rollouts of all groups, in order."""
        return [rollout for group in self.groups for rollout in group.rollouts]

    def to_rollouts(self, masks: MultiTurnLossMaskGenerator | None = None) -> list[Rollout]:
        """The rollouts of all groups, in order, to the token.

        They are read from the server's bytes, without the GIL. `masks` makes the tokens of those that carry
        none; without it such a rollout is an error that names it. Where a rollout does not say its weight
        version and its group has one, it gets that one.
        """
        items = [item for group in self.groups for item in group.items]
        versions = [group.version for group in self.groups for _ in group.items]
        return rollouts_of(items, versions, None if masks is None else masks.item_masks)

    @property
    def meta(self) -> dict[str, Any]:
        """Statistics of all that was written since the last read; empty for a lease fetched again."""
        return self._granted.meta

    @property
    def until_ms(self) -> int:
        """When it runs out, in milliseconds since 1970 on the server's clock, as it was granted."""
        return self._granted.until_ms

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __repr__(self) -> str:
        rollouts = sum(len(group) for group in self.groups)
        return f"{type(self).__name__}(id={self.id}, groups={len(self.groups)}, rollouts={rollouts})"


def lease_number(lease: LeaseBase | Sample | int) -> int:
    match lease:
        case LeaseBase():
            return lease.id
        case Sample():
            return lease.lease
        case _:
            return lease
