"""Rollouts, conversations and subprocesses that several tests need."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

import rollyard

QUESTION = {"role": "user", "content": "What is 2+2?"}
ANSWER = {"role": "assistant", "content": "It is 4."}
CONVERSATION: list[dict[str, Any]] = [
    QUESTION,
    ANSWER,
    {"role": "user", "content": "And 3+3?"},
    {"role": "assistant", "content": "6"},
]


def make_rollout(name: str = "a", *, prompt: int = 2, response: int = 3, **fields: Any) -> rollyard.Rollout:
    """Token n of the prompt is n + 1, of the response 100 + n; log-probs are -1/2, -1/4, ..."""
    given: dict[str, Any] = {
        "env_name": "math",
        "env_example_id": name,
        "prompt_tokens": range(1, prompt + 1),
        "response_tokens": range(100, 100 + response),
        "response_logprobs": [-(0.5 ** (n + 1)) for n in range(response)],
    }
    return rollyard.Rollout(**(given | fields))


def make_rollouts(count: int, *, seed: int = 7) -> list[rollyard.Rollout]:
    """Of many lengths, the same for the same seed."""
    lengths = random.Random(seed)
    return [
        make_rollout(
            f"i{n // 4}", prompt=lengths.randint(1, 40), response=lengths.randint(1, 80), episode_reward=n % 2
        )
        for n in range(count)
    ]


def run_python(script: str, *arguments: str) -> str:
    """What a fresh process prints, which has our tests and modules on its path."""
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments]
    done = subprocess.run(
        command, check=True, timeout=120, env=surroundings, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()
