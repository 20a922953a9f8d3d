"""Conversations through the gateway, over real tokenizers: what is recorded is what the engine received.

The answers are made of tokens that a tokenizer would not have chosen, as sampling makes them: words in
pieces, spaces apart, beginnings that merge with what stands before them.
"""

from __future__ import annotations

import http.client
import json
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from serving import Server
from testengine import StartEngine

from .models import MODELS, folder, ours

CONVERSATIONS = 60
TURNS = 6

Json = Any

# Where a model's answer ends, and how it writes a call.
ENDS = {
    "qwen2_5": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "llama3_1": "<|eot_id|>",
    "deepseek_v3": "<｜end▁of▁sentence｜>",
    "gemma3": "<end_of_turn>",
    "mistral_nemo": "</s>",
}
CALLS = {
    "qwen2_5": '<tool_call>\n{"name": "look", "arguments": {"at": "AT"}}\n</tool_call>',
    "qwen3": '<tool_call>\n{"name": "look", "arguments": {"at": "AT"}}\n</tool_call>',
    "llama3_1": '{"name": "look", "parameters": {"at": "AT"}}',
    "mistral_nemo": '[TOOL_CALLS][{"name": "look", "arguments": {"at": "AT"}}]',
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        },
    }
]
PIECES = [
    " the",
    "the",
    "re",
    " un",
    "til",
    "\n",
    "\n\n",
    " ",
    "  ",
    "é",
    "12",
    "345",
    "'s",
    "{",
    "}",
    "🌍",
    "<",
    "ß",
    "—",
]


class Client:
    """One connection to a server, which answers in JSON."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)

    def close(self) -> None:
        self._connection.close()

    def call(self, path: str, body: Json = None, *, key: str = "", method: str = "POST") -> Json:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200, answer
        return answer


@pytest.fixture(params=MODELS)
def yard(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path, start_engine: StartEngine
) -> Iterator[tuple[str, Client, Client]]:
    name: str = request.param
    engine = start_engine("--dialect", "sglang", "--set", '{"records": true}')
    flags = [
        "--engine",
        engine.url,
        "--tokenizer",
        str(folder(name)),
        "--model-alias",
        "*",
        "--durability",
        "os",
    ]
    server = Server(tmp_path / "yard", *flags)
    clients = Client(server.url), Client(engine.url)
    yield name, *clients
    for client in clients:
        client.close()
    server.stop()


def spoken(name: str, rng: random.Random, calls: bool) -> list[int]:
    """Tokens of an answer, each piece made by itself."""
    pieces = [rng.choice(PIECES) for _ in range(rng.randrange(1, 8))]
    if calls and name in CALLS:
        written = CALLS[name].replace("AT", "".join(rng.choices("abc é\\n", k=3)).replace("\n", " "))
        # A call in two pieces, cut where no tokenizer would.
        at = rng.randrange(1, len(written)) if name.startswith("qwen") else len(written)
        pieces = [*([] if name == "llama3_1" else pieces), written[:at], written[at:]]
    if name == "qwen3" and rng.random() < 0.5:
        pieces = ["<think>", "\nh", "m\n", "</think>", "\n\n", *pieces]
    encode = ours(name).encode
    ids = [token for piece in pieces for token in encode(piece)]
    return [*ids, *encode(ENDS[name])]


def test_what_is_recorded_is_what_the_engine_received(yard: tuple[str, Client, Client]) -> None:
    name, server, engine = yard
    rng = random.Random(7)
    made = cut = 0
    for _ in range(CONVERSATIONS):
        session = server.call("/api/sessions", {"style": "individual"})
        messages: list[Json] = [{"role": "user", "content": rng.choice(PIECES) + " go"}]
        # Some templates put tools before the last question, and so rewrite history with each: those without.
        with_tools = name in CALLS and rng.random() < 0.6
        for _ in range(TURNS):
            answer = spoken(name, rng, with_tools and rng.random() < 0.7)
            engine.call("/control", {"token_answers": [answer]})
            body = {"model": "any", "messages": messages, "max_tokens": len(answer)}
            if with_tools:
                body["tools"] = TOOLS
            said = server.call("/v1/chat/completions", body, key=session["api_key"])
            message = said["choices"][0]["message"]
            # As a framework sends it back: without nulls and thoughts.
            kept = {"role": "assistant", "content": message["content"] or ""}
            if message.get("tool_calls"):
                kept["tool_calls"] = message["tool_calls"]
            messages.append(kept)
            for call in message.get("tool_calls") or []:
                result = {"role": "tool", "tool_call_id": call["id"], "content": rng.choice(PIECES) * 2}
                messages.append(result)
            if messages[-1]["role"] == "assistant":
                messages.append({"role": "user", "content": "".join(rng.choices(PIECES, k=4)) + "?"})
        view = server.call(f"/api/sessions/{session['session']}", method="GET")
        server.call(f"/api/sessions/{session['session']}/reward", {"reward": 1.0}, key=session["reward_key"])
        path = f"/api/sessions/{session['session']}/export"
        samples = server.call(path, key=session["reward_key"], method="GET")
        received = engine.call("/recorded", method="GET")[made:]
        assert len(view["turns"]) == len(samples) == len(received) == TURNS
        before: list[int] = []
        for turn, sample, prompt in zip(view["turns"], samples, received, strict=True):
            assert sample["prompt_tokens"] == prompt
            if turn["cut"] is None and before:
                assert prompt[: len(before)] == before, "the tokens before are not those that were sampled"
            cut += turn["cut"] is not None
            before = prompt + sample["response_tokens"]
        made += TURNS
    counts = server.call("/api/sessions", method="GET")["counts"]["boundaries"]
    assert counts["differences"] == 0, counts
    print(f"{name}: {made} turns, {cut} cut, {counts}")
    if name in ("qwen2_5", "llama3_1"):
        assert cut == 0, "a template that keeps what was said is never cut"
