"""The test engine as a process: speaks like SGLang, vLLM and OpenAI, and misbehaves on command."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import httpx
import pytest

import rollyard
from serving import TARGET

BINARY = TARGET / "debug" / "rollyard-test-engine"


class TestEngine:
    """One engine on a free port."""

    __test__ = False

    def __init__(self, *flags: str, listen: str = "127.0.0.1:0") -> None:
        command = [str(BINARY), "--listen", listen, *flags]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, f"the test engine did not start: exit code {self._process.wait()}"

    def set(self, **settings: Any) -> None:
        """Behaves like this from now on."""
        httpx.post(f"{self.url}/control", json=settings).raise_for_status()

    def counters(self) -> dict[str, int]:
        counters: dict[str, int] = httpx.get(f"{self.url}/control").json()["counters"]
        return counters

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()


StartEngine: TypeAlias = Callable[..., TestEngine]


@pytest.fixture
def start_engine() -> Iterator[StartEngine]:
    engines: list[TestEngine] = []

    def start(*flags: str, listen: str = "127.0.0.1:0") -> TestEngine:
        engines.append(TestEngine(*flags, listen=listen))
        return engines[-1]

    yield start
    for engine in engines:
        engine.stop()


@pytest.fixture
def server(start_engine: StartEngine) -> TestEngine:
    return start_engine()


@pytest.fixture
def engine(server: TestEngine) -> Iterator[rollyard.SGLangEngine]:
    with rollyard.SGLangEngine(server.url) as engine:
        yield engine


def until(condition: Callable[[], Any], *, what: str, secs: float = 30.0) -> Any:
    """Waits until the condition holds, and gives what it gave."""
    deadline = time.monotonic() + secs
    while not (met := condition()):
        assert time.monotonic() < deadline, f"waited {secs} s for {what}"
        time.sleep(0.01)
    return met


def ask(*tokens: int, **gconfig: Any) -> rollyard.ModelRequest:
    """A short request in tokens."""
    config = rollyard.GenerationConfig(max_new_tokens=8).new(**gconfig)
    return rollyard.ModelRequest(input_ids=list(tokens) or [1, 2, 3], gconfig=config)
