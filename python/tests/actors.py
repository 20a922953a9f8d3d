"""Agents as users write them, good and bad; worker processes import them by name."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from typing import Any

import httpx

from rollyard import workflow_context


async def chat(
    base_url: str, api_key: str, *turns: str, client: httpx.AsyncClient | None = None
) -> list[dict[str, Any]]:
    """All turns in one conversation; the answers."""
    messages: list[dict[str, Any]] = []
    answers = []
    async with httpx.AsyncClient() if client is None else client as opened:
        for turn in turns:
            messages.append({"role": "user", "content": turn})
            answer = await opened.post(
                f"{base_url}/chat/completions",
                json={"model": "gpt-5", "messages": messages, "max_tokens": 8},
                headers={"authorization": f"Bearer {api_key}"},
            )
            answer.raise_for_status()
            answers.append(answer.json())
            messages.append(answers[-1]["choices"][0]["message"])
    return answers


class Agent:
    """Asks as often as the data says, and returns what it says."""

    def __init__(self, bonus: float | None = None) -> None:
        self.bonus = bonus

    async def run(self, data: dict[str, Any], base_url: str, api_key: str, http_client: Any) -> Any:
        turns = [data["prompt"], *data.get("more", [])]
        answers = await chat(base_url, api_key, *turns, client=http_client)
        if data.get("each"):
            return {answer["id"]: place for place, answer in enumerate(answers)}
        return data["returns"] if self.bonus is None else self.bonus


async def run(data: dict[str, Any], **given: Any) -> float:
    """A plain function that is told everything."""
    context = given["context"]
    assert context == workflow_context.get() and sorted(given) == [
        "api_key",
        "base_url",
        "context",
        "http_client",
        "model",
    ]
    await chat(given["base_url"], given["api_key"], data["prompt"], client=given["http_client"])
    return float(context.sample_idx)


class ByEnvironment:
    """Takes nothing but the data, as an agent with a client that reads the environment."""

    async def run(self, data: dict[str, Any]) -> dict[str, Any]:
        key, url = os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"]
        [answer] = await chat(url, key, data["prompt"])
        # Nobody else has changed it meanwhile.
        assert os.environ["OPENAI_API_KEY"] == key
        assert os.environ["ROLLYARD_TASK_ID"] == str(workflow_context.get().task_id)
        return {answer["id"]: 1.0}


class Bad:
    """Goes wrong in the way that the data says."""

    async def run(self, data: dict[str, Any], base_url: str, api_key: str) -> Any:
        how = data["how"]
        if how == "never":
            return 1
        await chat(base_url, api_key, "hello")
        if how == "raise":
            raise LookupError("no such thing")
        if how == "hang":
            await asyncio.sleep(3600)
        if how == "nan":
            return float("nan")
        if how == "object":
            return self
        if how == "stranger":
            return {"chatcmpl-s0-0": 1.0}
        if how == "key":
            await chat(base_url, "sk-s0-guessed", "hello")
        return None if how == "reject" else 1.0


# What Bad is told to do, and what is said of it.
WRONG: list[tuple[str, str]] = [
    ("never", "the agent never asked; does it use OPENAI_BASE_URL"),
    ("raise", r"LookupError: no such thing \(.*actors.py:\d+, in run\)"),
    ("nan", "the reward of the agent is NaN"),
    ("object", 'returned "<Bad>", but must return a number, a dict of rewards by interaction id, or None'),
    ("stranger", 'interaction_id is "chatcmpl-s0-0", but the session has no such answer'),
    ("key", "401 Unauthorized"),
]


class NotAsync:
    def run(self, data: dict[str, Any]) -> float:
        return 1.0


def blocking(url: str, key: str, prompt: str) -> dict[str, Any]:
    """Without any package."""
    body = json.dumps({"messages": [{"role": "user", "content": prompt}]}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


async def solves(data: dict[str, Any], base_url: str, api_key: str, model: str) -> None:
    """Leaves it to others to judge."""
    assert model == "policy"
    await asyncio.to_thread(blocking, base_url, api_key, data["prompt"])


def answer_length(
    prompt: str, completion: str, prompt_ids: list[int], completion_ids: list[int], **data: Any
) -> int:
    assert data["wanted"] in prompt
    return len(completion_ids)
