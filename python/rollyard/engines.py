"""Inference engines: SGLang, vLLM, and whatever speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict

from rollyard import _rollyard, workflow_context
from rollyard._rollyard import ModelResponse
from rollyard.bridge import mailbox_of
from rollyard.errors import EngineError
from rollyard.workflow import ModelRequest

if TYPE_CHECKING:
    from typing_extensions import Self


class ServerStatus(TypedDict):
    """How one server of an engine fares."""

    url: str
    healthy: bool
    in_flight: int
    requests: int
    failures: int
    last_error: str | None


class InferenceEngine:
    """One engine: a server, or several with the same weights.

    Requests go to the server with the least to do; those that fail in a way that may pass are sent again, to
    another server if there is one. A generation that is interrupted goes on where it stopped, and every token
    has the version of the weights that sampled it.
    """

    _dialect = ""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        api_key: str | None = None,
        model: str | None = None,
        exact: bool = True,
        request_timeout_secs: float = 3600.0,
        connect_timeout_secs: float = 5.0,
        attempts: int = 5,
    ) -> None:
        config = {
            "dialect": self._dialect,
            "urls": [urls] if isinstance(urls, str) else list(urls),
            "api_key": api_key,
            "model": model,
            "exact": exact,
            "request_timeout_secs": request_timeout_secs,
            "connect_timeout_secs": connect_timeout_secs,
            "attempts": attempts,
        }
        self._open: _rollyard.Engine | None = _rollyard.Engine(json.dumps(config))
        self._followers: list[_rollyard.Host] = []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InferenceEngine:
        """The engine that another process was configured with."""
        kind = next(
            kind for kind in (SGLangEngine, VLLMEngine, OpenAIEngine) if kind._dialect == config["dialect"]
        )
        engine = kind.__new__(kind)
        engine._open = _rollyard.Engine(json.dumps(config))
        engine._followers = []
        return engine

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        """Generates until the request is done. Cancelling this cancels it on the server too."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ModelResponse] = loop.create_future()
        call = self._native.start(req, _session(), mailbox_of(loop), future)
        try:
            return await future
        except asyncio.CancelledError:
            call.cancel()
            raise

    def generate(self, req: ModelRequest) -> ModelResponse:
        """The same, blocking."""
        return self._native.generate(req, _session())

    def get_version(self) -> int:
        """Of the weights, as the trainer last said."""
        return self._native.version

    def set_version(self, version: int) -> None:
        """What is requested from now on is sampled with these weights."""
        for host in self._followers:
            host.set_version(version)
        self._native.set_version(version)

    def pause(self) -> None:
        """Nothing new is sent; what is under way is interrupted and waits with what it has."""
        for host in self._followers:
            host.pause()
        self._native.pause()

    def resume(self) -> None:
        """Goes on, with whatever weights the engine has now."""
        self._native.resume()
        for host in self._followers:
            host.resume()

    def servers(self) -> list[ServerStatus]:
        """How each server fares."""
        statuses: list[ServerStatus] = json.loads(self._native.servers())
        return statuses

    def _follow(self, host: _rollyard.Host) -> None:
        """Worker processes have engines of their own, made of this one's configuration."""
        self._followers.append(host)

    def _unfollow(self, host: _rollyard.Host) -> None:
        self._followers = [other for other in self._followers if other is not host]

    def close(self) -> None:
        """Gives its connections back. Nothing can be asked of it afterwards."""
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _native(self) -> _rollyard.Engine:
        if self._open is None:
            raise EngineError("the engine is closed")
        return self._open

    def __repr__(self) -> str:
        urls = "closed" if self._open is None else json.loads(self._open.config)["urls"]
        return f"{type(self).__name__}({urls})"


class SGLangEngine(InferenceEngine):
    """SGLang: token ids both ways, log-probs, and the version of the weights."""

    _dialect = "sglang"


class VLLMEngine(InferenceEngine):
    """vLLM: token ids both ways, and log-probs."""

    _dialect = "vllm"


class OpenAIEngine(InferenceEngine):
    """Any server with OpenAI's chat completions. It only speaks text: nothing of it is exact to the token."""

    _dialect = "openai"


def _session() -> str | None:
    """The requests of a group have a prompt in common: one server has it in its cache."""
    context = workflow_context.get()
    return None if context.task_id is None else f"{context.run}/{context.task_id}"
