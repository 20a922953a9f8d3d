"""What an engine is asked, and how a trajectory is made of a prompt."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rollyard._rollyard import ModelResponse
from rollyard.errors import WorkflowError
from rollyard.tensors import TensorDict

if TYPE_CHECKING:
    from rollyard.engines import InferenceEngine


@dataclass
class GenerationConfig:
    """How to sample. A request is for one answer; `n_samples` is for workflows that send several."""

    n_samples: int = 1
    max_new_tokens: int = 1024
    min_new_tokens: int = 0
    greedy: bool = False
    """The most likely token every time; `temperature`, `top_p` and `top_k` do not count then."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    """All tokens, if left out."""
    stop: Sequence[str] | str | None = None
    stop_token_ids: Sequence[int] = field(default_factory=list)
    frequency_penalty: float = 0.0
    seed: int | None = None
    presence_penalty: float = 0.0
    json_schema: str | None = None
    """The answer is JSON that this schema allows, which is given as text."""

    def new(self, **changes: Any) -> GenerationConfig:
        """The same with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass
class ModelRequest:
    """What to go on from, in tokens or in messages, and how."""

    rid: str = ""
    """Names the request to the engine. Made up if empty."""
    input_ids: Sequence[int] = field(default_factory=list)
    gconfig: GenerationConfig = field(default_factory=GenerationConfig)
    metadata: dict[str, Any] = field(default_factory=dict)
    """For the workflow itself; the engine does not see it."""
    tokenizer: Any = None
    """Not used, because tokens are sent as they are; workflows written for other programs give it."""
    messages: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Instead of `input_ids`, for engines that only speak text."""
    tools: Sequence[Mapping[str, Any]] | None = None
    session: str | None = None
    """Requests of one session go to one server; by default all of an episode's group are one."""

    def copy(self) -> ModelRequest:
        return dataclasses.replace(self, gconfig=self.gconfig.new(), input_ids=list(self.input_ids))


@dataclass
class Interaction:
    """One answer and what it was worth, as a workflow may return it: `{id: Interaction(...)}`."""

    response: ModelResponse
    reward: float | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    """What the engine was given; the answer is added to it."""

    def to_tensor_dict(self) -> TensorDict:
        """One row. Values sit on the token they belong to."""
        response = self.response
        given, sampled = response.input_len, response.output_len
        tokens = response.input_tokens + response.output_tokens
        logprobs = [0.0] * given + response.output_logprobs
        versions = [-1] * given + response.output_versions
        return {
            "input_ids": np.array([tokens], np.int32),
            "attention_mask": np.ones((1, given + sampled), np.bool_),
            "loss_mask": np.array([[0] * given + [1] * sampled], np.int32),
            "logprobs": np.array([logprobs], np.float32),
            "versions": np.array([versions], np.int32),
            "rewards": np.array([0.0 if self.reward is None else self.reward], np.float32),
        }


class RolloutWorkflow(ABC):
    """How a trajectory is made of a prompt."""

    @abstractmethod
    async def arun_episode(self, engine: InferenceEngine, data: dict[str, Any]) -> Mapping[str, Any] | None:
        """Runs one episode.

        Returns tensors by name (`input_ids` and `attention_mask` at least), interactions by id, or `None` to
        reject the episode. It may run many times at once; `workflow_context.get()` says which episode it is.
        """


class AgentWorkflowError(WorkflowError):
    """This agent cannot be run, or not here; says what to change."""
