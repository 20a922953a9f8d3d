"""Large rollouts go from here to the bucket of a yard, where it has one, and the server gets references.

Where that cannot be, they go whole, as they would without this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rollyard import errors
from rollyard._rollyard import reference_of
from rollyard.client import encode, flow
from rollyard.client.flow import Answer, Flow, Request, Send
from rollyard.client.site import Site

# The server says how large is large; below this it is not worth asking.
LARGE_BYTES = 64 << 10
# The server takes no more in one call.
UPLOADS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Sendable:
    """A rollout, and what is sent of it."""

    line: encode.Line
    content: bytes

    def whole(self) -> Sendable:
        return Sendable(self.line, self.line.content)


def lighten(site: Site, lines: Sequence[encode.Line]) -> Flow[list[Sendable]]:
    """What to send: references in place of those that could be put elsewhere."""
    sendable = [Sendable(line, line.content) for line in lines]
    if time.monotonic() < site.detour.closed_until:
        return sendable
    references = {at: reference for at, one in enumerate(sendable) if (reference := referring(one.line))}
    places = list(references)[:UPLOADS_MAX]
    if not places:
        return sendable
    wanted = [{"uid": sendable[at].line.uid, "xxh3": references[at]["stored"]["xxh3"]} for at in places]
    asked = Request("POST", f"{site.run_path}/uploads", json.dumps({"rollouts": wanted}).encode())
    try:
        answer = yield from flow.ask(site, asked)
    except (errors.RefusedError, errors.UnknownError):
        # It keeps payloads itself, or is of an age that knows of nothing else.
        site.detour.close()
        return sendable
    told = answer.json(site)
    for at, url in zip(places, told["urls"], strict=True):
        content = sendable[at].line.content
        if len(content) <= told["inline_bytes_max"]:
            continue
        put = Request("PUT", url, content, "application/octet-stream", is_elsewhere=True)
        outcome = yield Send(put, site.timeout_secs)
        if not isinstance(outcome, Answer) or outcome.status >= 300:
            flow.logger.warning("large rollouts go through the server: %s", described(outcome))
            site.detour.close()
            return sendable
        references[at]["stored"]["claim"] = told["claim"]
        sendable[at] = Sendable(sendable[at].line, encode.to_json(references[at]))
    return sendable


def referring(line: encode.Line) -> dict[str, dict[str, object]] | None:
    """What stands for a rollout, if it is large and can be stood for."""
    if len(line.content) <= LARGE_BYTES:
        return None
    try:
        reference = reference_of(line.content)
    except errors.RolloutError:
        # The server says what is wrong with it.
        return None
    return None if reference is None else json.loads(reference)


def described(outcome: flow.Outcome) -> str:
    if isinstance(outcome, flow.Failure):
        return str(outcome.cause) or type(outcome.cause).__name__
    return f"the bucket answers {outcome.status}" if outcome is not None else "the bucket does not answer"
