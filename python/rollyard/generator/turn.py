"""One answer of the engine to a conversation, however often the engine was interrupted."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from rollyard.errors import RollyardError

Message = dict[str, Any]

ATTEMPTS = 6
PAUSE_SECS_FIRST = 0.25
PAUSE_SECS_MAX = 8.0
_BUDGETS = ("max_tokens", "max_completion_tokens")
# Refusals of a moment: too slow, too early, too many.
_PASSING = (408, 409, 425, 429)
_KEPT = ("reasoning_content", "tool_calls")


class QueryError(RollyardError):
    """The engine gave no answer, for as often as it was asked."""


def query_single_turn(
    client: Any,
    messages: list[Message],
    sampling_params: Mapping[str, Any],
    tools: list[dict[str, Any]] | None = None,
) -> tuple[list[Message], str]:
    """The conversation with the assistant's answer, and why the answer ended.

    An answer that was aborted goes on from what there is of it, with as many tokens less. If the last message
    is the assistant's, it is the beginning of the answer. A refusal, or six requests in a row that gave
    nothing, are a `QueryError`. The caller's messages are left alone.
    """
    asked = list(messages)
    begun = ""
    if asked and asked[-1]["role"] == "assistant":
        begun = asked.pop()["content"] or ""
    payload: dict[str, Any] = {
        **sampling_params,
        "model": "custom",
        "stream": False,
        # The same one for every repeat would make the members of a group equal.
        "seed": random.randint(1, 10_000_000),
        "tools": tools,
    }
    extra = dict(payload.pop("extra_body", None) or {})
    text, used, failures = begun, 0, 0
    while True:
        budget = {name: int(sampling_params[name]) - used for name in _BUDGETS if name in sampling_params}
        if used and any(left <= 0 for left in budget.values()):
            return [*asked, {"role": "assistant", "content": text}], "length"
        try:
            answer = client.chat.completions.create(**payload | budget | _conversation(asked, text, extra))
            choice = answer.choices[0]
        except Exception as error:
            if _is_refusal(error):
                raise QueryError(f"the engine refuses the request: {error}") from error
            failures += 1
            _pause_or_raise(failures, f"{type(error).__name__}: {error}", error)
            continue
        content = choice.message.content or ""
        text += content
        if choice.finish_reason != "abort":
            return [*asked, _message(choice.message, text)], choice.finish_reason
        if content:
            # As often as new weights come: an answer that grows is not a failure.
            used += answer.usage.completion_tokens if answer.usage else 0
            failures = 0
            time.sleep(PAUSE_SECS_FIRST)
        else:
            failures += 1
            _pause_or_raise(failures, "aborted before the first token", None)


def _conversation(asked: list[Message], text: str, extra: dict[str, Any]) -> dict[str, Any]:
    if not text:
        return {"messages": asked, "extra_body": extra}
    begun = {"role": "assistant", "content": text}
    # vLLM goes on with a message only if it is told not to begin another.
    going_on = {"continue_final_message": True, "add_generation_prompt": False}
    return {"messages": [*asked, begun], "extra_body": extra | going_on}


def _message(given: Any, text: str) -> Message:
    fields = given.model_dump(exclude_none=True)
    return {"role": "assistant", "content": text} | {name: fields[name] for name in _KEPT if fields.get(name)}


def _is_refusal(error: Exception) -> bool:
    """The request itself is at fault, for example a prompt that is too long. `openai` says `status_code`."""
    status = getattr(error, "status", None) or getattr(error, "status_code", None) or 0
    return 400 <= status < 500 and status not in _PASSING


def _pause_or_raise(failures: int, why: str, error: Exception | None) -> None:
    if failures >= ATTEMPTS:
        raise QueryError(f"no answer in {ATTEMPTS} attempts; the last: {why}") from error
    time.sleep(min(PAUSE_SECS_FIRST * 2.0 ** (failures - 1), PAUSE_SECS_MAX))
