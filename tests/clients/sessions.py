"""Sessions of a real server, in front of an engine that says what a test wants.

The engine samples the tokens of a script and records every prompt that it was asked with, so a test can hold
what a session recorded against what the model really saw.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import requests
import tokenizers

from serving import BINARY, ROOT, Server

FIXTURES = ROOT / "crates/core/tests/fixtures"
END = "<|im_end|>"
CONTEXT = 2048
# Every group goes to the trainer as it came.
AS_THEY_ARE = ("--validate", "sized", "--normalize", "none")

Json: TypeAlias = dict[str, Any]


def write_model(folder: pathlib.Path) -> pathlib.Path:
    """A model's folder without a model: a tokenizer, and a template with tools and thoughts."""
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes((FIXTURES / "tokens/chatml/tokenizer.json").read_bytes())
    (folder / "chat_template.jinja").write_bytes((FIXTURES / "templates/chatml_think.jinja").read_bytes())
    return folder


def write_tiny(folder: pathlib.Path) -> None:
    """The tokenizer of the small model."""
    subprocess.run([BINARY, "tiny", "tokenizer", str(folder)], check=True, capture_output=True)


class Engine:
    """`rollyard-test-engine`, which speaks like SGLang and says what it is told to."""

    def __init__(self, model: pathlib.Path) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
        binary = BINARY.with_name("rollyard-test-engine")
        command = [binary, "--dialect", "sglang", "--set", '{"records": true}']
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def set(self, **settings: Any) -> None:
        answer = requests.post(f"{self.url}/control", json=settings, timeout=10)
        assert answer.ok, answer.text

    def say(self, *answers: str) -> list[list[int]]:
        """The next answers, each to its end; gives their tokens."""
        script = [self.encode(answer + END) for answer in answers]
        self.set(token_answers=script)
        return script

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False)
        return text

    def prompts(self) -> list[list[int]]:
        recorded: list[list[int]] = requests.get(f"{self.url}/recorded", timeout=10).json()
        return recorded

    def counters(self) -> dict[str, int]:
        counters: dict[str, int] = requests.get(f"{self.url}/control", timeout=10).json()["counters"]
        return counters


@dataclass(kw_only=True)
class Session:
    """One rollout, as whoever opened it holds it: with both keys."""

    server: Server
    id: str
    key: str
    reward_key: str
    model: str

    @property
    def base_url(self) -> str:
        return f"{self.server.url}/v1"

    def view(self) -> Json:
        return told(requests.get(f"{self.server.url}/api/sessions/{self.id}", timeout=10))

    def turns(self) -> list[Json]:
        turns: list[Json] = self.view()["turns"]
        return turns

    def export(self, style: str = "concat") -> list[Json]:
        url = f"{self.server.url}/api/sessions/{self.id}/export"
        samples: list[Json] = told(
            requests.get(url, params={"style": style}, headers=bearer(self.reward_key), timeout=10)
        )
        return samples

    def post(self, verb: str, body: Json | None = None, key: str | None = None) -> requests.Response:
        url = f"{self.server.url}/api/sessions/{self.id}/{verb}"
        return requests.post(url, json=body or {}, headers=bearer(key or self.reward_key), timeout=10)

    def end(self, reward: float = 1.0) -> Json:
        return told(self.post("end", {"reward": reward}))


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def told(answer: requests.Response) -> Any:
    assert answer.ok, f"{answer.status_code} {answer.text}"
    return answer.json()


def open_session(server: Server, **opening: Any) -> Session:
    granted = told(requests.post(f"{server.url}/api/sessions", json=opening, timeout=10))
    return Session(
        server=server,
        id=granted["session"],
        key=granted["api_key"],
        reward_key=granted["reward_key"],
        model=granted["model"],
    )


class Gateway:
    """A server with sessions, and the engine behind it."""

    def __init__(self, server: Server, engine: Engine) -> None:
        self.server = server
        self.engine = engine

    def open(self, **opening: Any) -> Session:
        return open_session(self.server, **opening)

    @contextmanager
    def recording(self, session: Session) -> Iterator[list[list[int]]]:
        """The prompts that the engine was asked with, once the block is over; and all of them are exact."""
        before = len(self.engine.prompts())
        prompts: list[list[int]] = []
        yield prompts
        prompts.extend(self.engine.prompts()[before:])
        check_exact(session, prompts)


def check_exact(session: Session, prompts: list[list[int]]) -> None:
    """What was recorded is what the engine saw, and every turn goes on from the tokens of the one before."""
    turns = session.turns()
    samples = session.export("individual")
    assert len(turns) == len(samples) == len(prompts), json.dumps(turns, indent=1)
    for turn, sample, prompt in zip(turns, samples, prompts, strict=True):
        assert sample["prompt_tokens"] == prompt
        assert turn["prompt_tokens"] == len(prompt)
        assert turn["sampled_tokens"] == len(sample["response_tokens"]) == len(sample["response_logprobs"])
        if turn["follows"] is not None and turn["cut"] is None:
            before = next(at for at, other in enumerate(turns) if other["turn"] == turn["follows"])
            so_far = prompts[before] + samples[before]["response_tokens"]
            assert prompt[: len(so_far)] == so_far


def check_one_line(session: Session) -> Json:
    """The conversation was never rewritten: all of it is one sample, of which the answers are trained on."""
    turns = session.turns()
    assert [turn["cut"] for turn in turns] == [None] * len(turns), json.dumps(turns, indent=1)
    numbers = [turn["turn"] for turn in turns]
    assert [turn["follows"] for turn in turns] == [None, *numbers[:-1]]
    (sample,) = session.export()
    parts = session.export("individual")
    assert sample["prompt_tokens"] + sample["response_tokens"] == (
        parts[-1]["prompt_tokens"] + parts[-1]["response_tokens"]
    )
    mask = sample.get("loss_mask") or [1] * len(sample["response_tokens"])
    trained = [token for token, counts in zip(sample["response_tokens"], mask, strict=True) if counts]
    assert trained == [token for part in parts for token in part["response_tokens"]]
    return sample
