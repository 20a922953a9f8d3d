"""Asking again for as long as the server may come back.

A training outlives restarts of its server. What asking again cannot change, a refusal, is raised at once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TypeVar

from rollyard import errors
from rollyard.client.flow import Flow, Pause, logger

T = TypeVar("T")

PAUSE_SECS_FIRST = 0.2
PAUSE_SECS_MAX = 5.0
# Between two lines about the same outage.
LINE_SECS = 30.0


def persist(call: Callable[[], Flow[T]], *, what: str, retries: int | None) -> Flow[T]:
    """The result of a call, made again after each failure that may pass; `None` retries are without end."""
    line_due = time.monotonic()
    for failures in itertools.count(1):
        try:
            return (yield from call())
        except errors.RollyardError as trouble:
            if not may_pass(trouble) or (retries is not None and failures > retries):
                raise
            if time.monotonic() >= line_due:
                logger.warning("%s is tried until it works: %s", what, trouble)
                line_due = time.monotonic() + LINE_SECS
        # The exponent is bounded: a long night of failures must not overflow it.
        yield Pause(min(PAUSE_SECS_FIRST * 2.0 ** min(failures, 10), PAUSE_SECS_MAX))
    raise AssertionError("count() does not end")


def may_pass(trouble: errors.RollyardError) -> bool:
    if isinstance(trouble, errors.ServerError):
        return trouble.status >= 500 or isinstance(trouble, errors.FullError)
    return isinstance(trouble, errors.NotReachableError | errors.NoAnswerError)
