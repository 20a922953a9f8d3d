"""What a workflow returned, taken apart into numbers and JSON, to go to Rust or through a pipe."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Mapping
from typing import Any

from rollyard import tensors
from rollyard.errors import EngineError, RollyardError
from rollyard.workflow import Interaction

# Tensors, reward, messages, prompt and completion, extra fields; JSON where it is not numbers.
Part = tuple[list[tensors._Given] | None, float | None, list[str], tuple[str, str] | None, str]


class WrongTypeError(RollyardError, TypeError):
    """The workflow returned something that no trajectory can be made of."""


def parts_of(returned: Any) -> tuple[str, list[Part]]:
    """Whose arrays they are, and the parts: one for tensors, one for each interaction, none for `None`."""
    if returned is None:
        return "numpy", []
    if not isinstance(returned, Mapping):
        raise WrongTypeError(_article(type(returned).__qualname__))
    if not returned:
        raise WrongTypeError("an empty dict")
    are_interactions = [hasattr(value, "to_tensor_dict") for value in returned.values()]
    if all(are_interactions):
        parts = [_interaction(str(key), value) for key, value in returned.items()]
        return next((arrays for arrays, _ in parts if arrays), "numpy"), [part for _, part in parts]
    if any(are_interactions):
        raise WrongTypeError("a dict of interactions and of other things")
    arrays, given = _tensors(returned)
    return arrays, [(given, None, [], None, "{}")]


def told(error: BaseException) -> tuple[str, bool]:
    """The exception in a line, with the place that raised it, and whether another attempt may go better."""
    text = str(error)
    kind = type(error).__qualname__
    where = traceback.extract_tb(error.__traceback__)
    line = f" ({where[-1].filename}:{where[-1].lineno}, in {where[-1].name})" if where else ""
    may_pass = error.may_pass if isinstance(error, EngineError) else True
    return f"{kind}: {text}{line}" if text else f"{kind}{line}", may_pass


def plain(value: Any) -> Any:
    """What a function returned, if JSON can say it; numpy's and torch's numbers are numbers too."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "item") and not isinstance(value, list):
        try:
            value = value.item()
        except (RuntimeError, ValueError):
            return f"<{type(value).__qualname__}>"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN"
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return f"<{type(value).__qualname__}>"
    return value


def _interaction(key: str, given: Any) -> tuple[str | None, Part]:
    response = getattr(given, "response", None)
    messages = list(getattr(given, "messages", None) or [])
    reward = getattr(given, "reward", None)
    if isinstance(given, Interaction):
        answer = given.response.message
        if answer is None and given.response.text is not None:
            answer = {"role": "assistant", "content": given.response.text}
        if answer is not None and messages:
            messages.append(answer)
    if reward is not None and not math.isfinite(reward):
        raise WrongTypeError(f"the interaction {key!r} with the reward {reward}, which is no finite number")
    arrays, rows = None, None
    if not isinstance(given, Interaction) or given.response.is_exact:
        arrays, rows = _tensors(given.to_tensor_dict())
    written = [json.dumps(message, default=repr) for message in messages]
    extra = {"interaction": key}
    text = getattr(response, "text", None)
    if isinstance(text, str) and rows is None and not messages:
        written = [json.dumps({"role": "assistant", "content": text})]
    return arrays, (rows, None if reward is None else float(reward), written, None, json.dumps(extra))


def _tensors(by_name: Mapping[Any, Any]) -> tuple[str, list[tensors._Given]]:
    """The arrays as bytes, and whose they are."""
    for key, value in by_name.items():
        if isinstance(value, (str, bytes, Mapping)) or value is None:
            raise WrongTypeError(f"a dict whose {str(key)!r} is {_article(type(value).__qualname__)}")
    try:
        given, backs = tensors._given(by_name)
    except (RollyardError, TypeError, ValueError) as error:
        raise WrongTypeError(f"a dict that is not of tensors ({error})") from error
    kinds = {back: name for name, back in tensors.BACKS.items()}
    return kinds[next(iter(backs.values()))], given


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
