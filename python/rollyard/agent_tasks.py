"""What an executor keeps of agents: a gateway for each tokenizer, and what was made of each workflow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rollyard import _rollyard
from rollyard._rollyard import Tokenizer
from rollyard.agents import AgentWorkflow, agent_name
from rollyard.bridge import EpisodeLoop
from rollyard.engines import InferenceEngine
from rollyard.workflow import AgentWorkflowError

# Settings and tokenizer: what is the same for all agents of a plan.
_Key: TypeAlias = tuple[str, int]
_Functions: TypeAlias = Callable[[], _rollyard.Host]


class AgentTasks:
    """Made with the executor; nothing is opened before the first agent comes.

    `functions` gives worker processes, for rewards that are functions.
    """

    def __init__(self, engine: InferenceEngine, tokenizer: Tokenizer | None) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._desks: list[tuple[Tokenizer, _rollyard.AgentDesk]] = []
        self._plans: dict[_Key, _rollyard.AgentPlan] = {}
        self._programs: dict[tuple[_Key, str], _rollyard.AgentWorkflow] = {}
        self._hosted: dict[tuple[_Key, str, str, bool | None], _rollyard.AgentWorkflow] = {}

    def program(self, agent: AgentWorkflow, command: str, functions: _Functions) -> _rollyard.AgentWorkflow:
        """A command line."""
        key, plan = self._plan(agent, functions)
        if (key, command) not in self._programs:
            self._programs[key, command] = plan.command(command)
        return self._programs[key, command]

    def hosted(self, agent: AgentWorkflow, host: _rollyard.Host, kwargs: str) -> _rollyard.AgentWorkflow:
        """A function in worker processes; `kwargs` is JSON."""
        plan_key, plan = self._plan(agent, lambda: host)
        key = (plan_key, agent_name(agent.agent), kwargs, agent.environment)
        if key not in self._hosted:
            self._hosted[key] = plan.hosted(host, *key[1:])
        return self._hosted[key]

    def here(
        self, agent: AgentWorkflow, loop: EpisodeLoop, data: Mapping[str, Any], functions: _Functions
    ) -> _rollyard.AgentWorkflow:
        """A function on a loop of this process, on this data."""
        _, plan = self._plan(agent, functions)
        return plan.on_loop(loop.agent(agent.runner, dict(data)))

    def addresses(self) -> list[str]:
        """Where agents ask, once the first has come."""
        return [address for _, desk in self._desks for address in desk.addresses()]

    def close(self) -> None:
        """Returns when all agents have ended and nothing listens any more."""
        for _, desk in self._desks:
            desk.close()

    def _plan(self, agent: AgentWorkflow, functions: _Functions) -> tuple[_Key, _rollyard.AgentPlan]:
        tokenizer = agent.tokenizer or self._tokenizer
        if tokenizer is None:
            raise AgentWorkflowError(
                "an agent needs the model's tokenizer, to record what it asks to the token: "
                'RolloutExecutor(engine, tokenizer=Tokenizer.from_pretrained("…"))'
            )
        # The desk keeps the tokenizer, so that no other gets its place in memory.
        desk = self._desk(tokenizer)
        key = (agent.recipe, id(tokenizer))
        if key not in self._plans:
            self._plans[key] = desk.plan(agent.recipe, functions() if agent.needs_python else None)
        return key, self._plans[key]

    def _desk(self, tokenizer: Tokenizer) -> _rollyard.AgentDesk:
        for known, desk in self._desks:
            if known is tokenizer:
                return desk
        model = json.loads(self._engine._native.config).get("model") or "policy"
        self._desks.append((tokenizer, _rollyard.AgentDesk(tokenizer, model)))
        return self._desks[-1][1]
