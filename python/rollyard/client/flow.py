"""Asking the server, once and again, without saying how bytes travel.

A flow is a generator: it yields requests to send and pauses to make, is sent what became of them, and
returns a result. Whoever carries it out may block or await; what is retried and for how long stands here.
"""

from __future__ import annotations

import email.utils
import itertools
import json
import logging
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

import httpx

from rollyard import errors
from rollyard.client.site import Site

T = TypeVar("T")

logger = logging.getLogger("rollyard")

PAUSE_SECS_FIRST = 0.1
PAUSE_SECS_MAX = 5.0

# The run is full, or somebody between us and the server cannot reach it just now.
RETRIED_STATUSES = frozenset({429, 502, 503, 504})
# The code of an answer that says that a reference is for another owner of the run.
OTHER_CLAIM = "other_claim"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    content: bytes | None = None
    content_type: str = "application/json"
    # How long the server may hold it before it answers.
    wait_secs: float = 0.0
    # `path` is a whole address, and whoever is there is not told our token.
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """A request to send, and how long to wait at each step of it."""

    request: Request
    timeout_secs: float

    def http_options(self) -> dict[str, Any]:
        """What both kinds of HTTP client send it with."""
        request = self.request
        return {
            "method": request.method,
            "url": request.path,
            "content": request.content,
            "headers": {} if request.content is None else {"Content-Type": request.content_type},
            "timeout": httpx.Timeout(self.timeout_secs + request.wait_secs, connect=self.timeout_secs),
        }

    def unsigned(self, request: httpx.Request) -> httpx.Request:
        """The request, without our token where that is nobody's business."""
        if self.request.is_elsewhere:
            request.headers.pop("Authorization", None)
        return request


@dataclass(frozen=True, slots=True)
class Pause:
    secs: float


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self, site: Site) -> Any:
        return self.read(site, json.loads)

    def read(self, site: Site, parse: Callable[[bytes], T]) -> T:
        """What `parse` makes of it, which raises `ValueError` for what is not JSON."""
        try:
            return parse(self.content)
        except ValueError as error:
            shown = self.content[:80].decode(errors="replace")
            message = f"the answer is not JSON, but {shown!r}; is this a Rollyard server? {site.shown_url}"
            raise errors.ServerError(message, status=self.status, code="not_json") from error


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer came."""

    cause: httpx.RequestError


Outcome: TypeAlias = Answer | Failure | None
Step: TypeAlias = Send | Pause
Flow: TypeAlias = Generator[Step, Outcome, T]


def ask(
    site: Site, request: Request, *, before_repeat: Callable[[], Flow[None]] | None = None
) -> Flow[Answer]:
    """The server's yes to a request, sent again for as long as that may help.

    `before_repeat` undoes what a request whose answer was lost may have done.
    """
    for attempt in itertools.count():
        outcome = yield Send(request, site.timeout_secs)
        assert outcome is not None, "what is sent has an outcome"
        if isinstance(outcome, Answer) and not is_put_off(outcome):
            if outcome.status >= 300:
                raise error_of(site, outcome, repeated=attempt > 0)
            return outcome
        if attempt >= site.retries:
            give_up(site, outcome)
        if attempt == 1:
            # A single failure is the fate of an idle connection; two in a row are worth a word.
            logger.warning("trying again, up to %d times: %s", site.retries, describe(site, outcome))
        yield Pause(pause_secs(attempt, outcome))
        if before_repeat is not None:
            yield from before_repeat()
    raise AssertionError("count() does not end")


def is_put_off(answer: Answer) -> bool:
    """Whether the same request may do better later. What was stored for an owner that is gone does not."""
    return answer.status in RETRIED_STATUSES and answer.headers.get("x-rollyard-moved") != OTHER_CLAIM


def pause_secs(attempt: int, outcome: Answer | Failure) -> float:
    """Twice as long each time, with jitter so that many clients do not come back at once."""
    longest = min(PAUSE_SECS_FIRST * 2.0**attempt, PAUSE_SECS_MAX)
    wished = retry_after_secs(outcome.headers) if isinstance(outcome, Answer) else 0.0
    return max(wished, longest * random.uniform(0.5, 1.0))


def retry_after_secs(headers: Mapping[str, str]) -> float:
    """What `Retry-After` says, in seconds or as a date; 0 if it says nothing."""
    text = headers.get("retry-after", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


def give_up(site: Site, outcome: Answer | Failure) -> NoReturn:
    if isinstance(outcome, Answer):
        raise error_of(site, outcome)
    timed_out = isinstance(outcome.cause, httpx.TimeoutException)
    kind = errors.NoAnswerError if timed_out else errors.NotReachableError
    raise kind(describe(site, outcome)) from outcome.cause


def describe(site: Site, outcome: Answer | Failure) -> str:
    if isinstance(outcome, Answer):
        return str(error_of(site, outcome))
    cause = outcome.cause
    if isinstance(cause, httpx.ConnectError):
        where = f"--listen {site.url.host}:{site.url.port or 80}"
        return f"no server is reached ({cause}); `rollyard serve {where}` starts one: {site.shown_url}"
    if isinstance(cause, httpx.TimeoutException):
        return f"no answer within {site.timeout_secs:g} seconds ({type(cause).__name__}): {site.shown_url}"
    return f"the connection broke ({str(cause) or type(cause).__name__}): {site.shown_url}"


ERRORS_BY_STATUS: dict[int, type[errors.ServerError]] = {
    401: errors.UnauthorizedError,
    403: errors.UnauthorizedError,
    404: errors.UnknownError,
    410: errors.LeaseLostError,
    429: errors.FullError,
}


def error_of(site: Site, answer: Answer, *, repeated: bool = False) -> errors.ServerError:
    """The exception for an answer other than yes."""
    try:
        told = json.loads(answer.content)["error"]
        code, message, field = str(told["code"]), str(told["message"]), told.get("field")
    except (ValueError, TypeError, LookupError):
        # Not ours: a proxy, or another server altogether.
        code, field = "not_rollyard", None
        shown = answer.content[:80].decode(errors="replace")
        message = f"status {answer.status} and {shown!r} is not an answer of Rollyard: {site.shown_url}"
    kind = ERRORS_BY_STATUS.get(answer.status)
    if kind is None:
        kind = errors.RefusedError if 400 <= answer.status < 500 else errors.ServerError
    return kind(message, status=answer.status, code=code, field=field, repeated=repeated)
