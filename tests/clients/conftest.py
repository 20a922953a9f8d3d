"""Fixtures of these tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import sessions
from serving import Server, TinyServer
from serving import serve as serve
from serving import tiny as tiny

# Nothing is told to anybody: no traces, no telemetry, no tokenizers from elsewhere.
os.environ |= {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "*",
}


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sessions.Gateway]:
    """One server for all tests that do not break it: every session is a world of its own."""
    folder = tmp_path_factory.mktemp("house")
    model = sessions.write_model(folder / "chatml")
    engine = sessions.Engine(model)
    flags = ["--engine", engine.url, "--tokenizer", str(model), "--grammar", "qwen", "--model-alias", "other"]
    limits = ["--context-tokens", str(sessions.CONTEXT), "--group-size", "1"]
    server = Server(folder / "yard", *flags, *limits, *sessions.AS_THEY_ARE)
    yield sessions.Gateway(server, engine)
    server.stop()
    engine.stop()


@pytest.fixture
def gateway(house: sessions.Gateway) -> Iterator[sessions.Gateway]:
    """The server with an engine that says what a test wants."""
    yield house
    quiet = {"latency_ms": 0, "latency_ms_per_token": 0.0, "hang": False, "fail_next": 0}
    house.engine.set(token_answers=[], **quiet)


@pytest.fixture(scope="session")
def tiny_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server in front of the small model, which says what its random weights say."""
    folder = tmp_path_factory.mktemp("tiny")
    engine = TinyServer(folder / "unused", "--seed", "7")
    sessions.write_tiny(folder / "rollyard-tiny")
    flags = ["--engine", engine.url, "--tokenizer", str(folder / "rollyard-tiny"), "--group-size", "1"]
    server = Server(folder / "yard", *flags, *sessions.AS_THEY_ARE)
    yield server
    server.stop()
    engine.stop()
