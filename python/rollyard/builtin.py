"""Workflows that run in Rust: no episode of theirs waits for Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollyard import _rollyard
from rollyard._rollyard import Tokenizer
from rollyard.errors import WorkflowError
from rollyard.importing import import_name
from rollyard.workflow import GenerationConfig

Function = Callable[..., Any]


class SingleTurnWorkflow:
    """One question, one answer, one reward.

    The data has `messages`, a `prompt`, or `input_ids`. With a tokenizer the prompt is rendered here and the
    tokens are exact; without one the messages are sent as they are, and the text is all there is.

    `reward` is "math", "exact", "none", "cmd:COMMAND", a URL, or a function of a module, which runs in a
    worker process: `reward(prompt, completion, prompt_ids, completion_ids, **data)`.
    """

    def __init__(
        self,
        gconfig: GenerationConfig | None = None,
        *,
        reward: str | Function = "none",
        tokenizer: Tokenizer | None = None,
        system: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._recipe: dict[str, Any] = {
            "gconfig": _gconfig(gconfig or GenerationConfig()),
            "reward": reward if isinstance(reward, str) else import_name(reward),
            "system": system,
            "template_kwargs": dict(template_kwargs or {}),
        }
        # What cannot be is said here, and not by every episode.
        _rollyard.needs_python(self.recipe)

    @property
    def recipe(self) -> str:
        """Its settings, as JSON."""
        try:
            return json.dumps(self._recipe, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise WorkflowError(f"the workflow's settings cannot be written as JSON: {error}") from error


class MultiTurnWorkflow(SingleTurnWorkflow):
    """Several answers in one episode: the model calls tools, or is told `feedback` and tries again.

    A tool is a function of a module, which runs in a worker process and whose signature and docstring are
    told to the model, or a JSON file with `function` (its schema) and `command`. Tokens are exact over all
    turns.
    """

    def __init__(
        self,
        gconfig: GenerationConfig | None = None,
        *,
        reward: str | Function = "none",
        tokenizer: Tokenizer | None = None,
        system: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        tools: Sequence[str | Function] = (),
        syntax: str = "auto",
        max_turns: int = 8,
        max_tokens: int | None = None,
        feedback: str | None = None,
        good_enough: float = 1.0,
        turn_discount: float = 1.0,
    ) -> None:
        super().__init__(
            gconfig, reward=reward, tokenizer=tokenizer, system=system, template_kwargs=template_kwargs
        )
        self._recipe["turns"] = {
            "tools": [tool if isinstance(tool, str) else import_name(tool) for tool in tools],
            "syntax": syntax,
            "max_turns": max_turns,
            "max_tokens": max_tokens,
            "feedback": feedback,
            "good_enough": good_enough,
            "turn_discount": turn_discount,
        }
        _rollyard.needs_python(self.recipe)


def _gconfig(gconfig: GenerationConfig) -> dict[str, Any]:
    """Without `n_samples`, which is a group's size here, and the seed, which every episode has for itself."""
    stop = [gconfig.stop] if isinstance(gconfig.stop, str) else list(gconfig.stop or [])
    fields = {
        name: getattr(gconfig, name)
        for name in (
            "max_new_tokens",
            "min_new_tokens",
            "greedy",
            "temperature",
            "top_p",
            "top_k",
            "frequency_penalty",
            "presence_penalty",
            "json_schema",
        )
    }
    return fields | {"stop": stop, "stop_token_ids": list(gconfig.stop_token_ids)}
