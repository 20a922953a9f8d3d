"""Agents as workflows: code that asks a model at an address, and knows nothing of tokens.

Every call of an agent goes through a gateway of the executor's own, which records it to the token. What the
agent returns is its reward.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from rollyard import _rollyard
from rollyard._rollyard import Tokenizer
from rollyard.agent_runner import AgentRunner
from rollyard.builtin import Function, _gconfig
from rollyard.errors import WorkflowError
from rollyard.importing import class_name, import_name, import_path
from rollyard.workflow import AgentWorkflowError, GenerationConfig

_WANTED = "a class with async run(data, …) or such a function"


class AgentWorkflow:
    """An agent, and how its calls are sampled and judged.

    `agent` has `async def run(self, data, …)`: an instance, a class (made with `agent_kwargs`), the function
    itself, or its name, "module.Class". It is given those of `base_url`, `api_key`, `http_client`, `model`
    and `context` that it takes. `command` is a program instead, told where to ask by `OPENAI_BASE_URL` and
    `ANTHROPIC_BASE_URL`; `{field}` in it is a field of the data, which it also gets as JSON on standard
    input.

    The reward is what the agent returns, or what the program prints last: a number, a bool, or rewards by the
    ids of answers. `None` (`null`) rejects the episode. With `reward`, as `SingleTurnWorkflow` takes it, the
    last answer is judged instead, and what is returned does not count.

    `gconfig` says how to sample where the agent does not; with `fixed_sampling` its temperature, `top_p` and
    `top_k` count whatever the agent says. With `style="concat"` a conversation is one sample; with
    "individual" each answer is, with what came of it discounted by `discount`. `environment` sets the
    variables of the worker process for a function, which then runs one episode at a time; left out, it does
    for those that take nothing that says where to ask.
    """

    def __init__(
        self,
        agent: Any = None,
        *,
        agent_kwargs: Mapping[str, Any] | None = None,
        command: str | None = None,
        gconfig: GenerationConfig | None = None,
        fixed_sampling: bool = False,
        reward: str | Function | None = None,
        tokenizer: Tokenizer | None = None,
        style: str = "concat",
        discount: float = 1.0,
        keep_thoughts: bool = False,
        max_turns: int = 1000,
        max_sampled_tokens: int = 10_000_000,
        timeout_secs: float = 3600.0,
        environment: bool | None = None,
    ) -> None:
        if (agent is None) == (command is None):
            raise AgentWorkflowError("give either an agent or a command")
        self.agent = agent
        self.agent_kwargs = agent_kwargs
        self.command = command
        self.tokenizer = tokenizer
        self.environment = environment
        recipe = {
            "gconfig": _gconfig(gconfig or GenerationConfig()),
            "fixed_sampling": fixed_sampling,
            "reward": reward if reward is None or isinstance(reward, str) else import_name(reward),
            "style": style,
            "discount": discount,
            "thoughts": "keep" if keep_thoughts else "template",
            "budget": {"turns": max_turns, "tokens": max_sampled_tokens, "secs": timeout_secs},
        }
        self.recipe = json.dumps(recipe, allow_nan=False)
        # What cannot be is said here, and not by every episode.
        self.needs_python = _rollyard.agent_needs_python(self.recipe)

    @functools.cached_property
    def runner(self) -> AgentRunner:
        """The agent, made in this process."""
        runner = AgentRunner(made_agent(self.agent, self.agent_kwargs), environment=self.environment)
        runner.check_here()
        return runner

    def __repr__(self) -> str:
        return f"AgentWorkflow({self.agent if self.command is None else self.command!r})"


def agent_name(agent: Any) -> str:
    """What worker processes import an agent by."""
    if inspect.isfunction(agent):
        return import_name(agent, "put it into one, or use processes=0")
    return class_name(agent)


def is_agent(given: Any) -> bool:
    """Whether it has `run(data)` and no `arun_episode`, or is such a function itself."""
    if callable(getattr(given, "arun_episode", None)):
        return False
    return callable(getattr(given, "run", None)) or inspect.iscoroutinefunction(given)


def is_agent_or_workflow(given: Any) -> bool:
    """Whether it can be run at all."""
    is_workflow = inspect.isclass(given) and callable(getattr(given, "arun_episode", None))
    return is_workflow or is_agent(given) or given is AgentWorkflow


def kind_of(path: str) -> str:
    """Whether "module.name" is an "agent" or a "workflow"."""
    try:
        return "agent" if is_agent(import_path(path, is_agent_or_workflow, _WANTED)) else "workflow"
    except WorkflowError:
        # Whoever loads it as a workflow is told what is wrong with it.
        return "workflow"


def made_agent(agent: Any, kwargs: Mapping[str, Any] | None = None) -> Callable[..., Any]:
    """The function to call, of an instance, a class, a function, or a name."""
    if isinstance(agent, str):
        agent = import_path(agent, is_agent, _WANTED)
    name = getattr(agent, "__qualname__", type(agent).__qualname__)
    if inspect.isclass(agent):
        try:
            agent = agent(**(kwargs or {}))
        except TypeError as error:
            given = ", ".join(kwargs or {}) or "nothing"
            raise WorkflowError(f"{name} cannot be made with {given}: {error}") from error
    elif kwargs:
        raise WorkflowError(f"arguments ({', '.join(kwargs)}) were given with {name}, which is no class")
    run = agent if inspect.iscoroutinefunction(agent) else getattr(agent, "run", None)
    if run is None:
        raise AgentWorkflowError(f"{name} is no agent: it has no async run(data)")
    if not inspect.iscoroutinefunction(run):
        raise AgentWorkflowError(
            f"{name}.run is not async; write async def run(self, data, base_url, api_key)"
        )
    function: Callable[..., Any] = run
    return function
