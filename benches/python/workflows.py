"""Episodes per second with an engine that answers at once: ours beside asyncio and httpx.

The engine is `rollyard-test-engine`, a process of its own on the same two cores for all contestants, which
take turns. The built-in workflow runs in Rust (`rollyard-bench episodes`); the Python one is a
`RolloutWorkflow` on the executor, in this process. Every episode is 128 tokens in, 64 out with log-probs, and
a reward.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "benches" / "baselines"))

import asyncio_executor as plain  # noqa: E402

import rollyard  # noqa: E402

RELEASE = REPOSITORY / "target" / "release"
PROMPT_TOKENS = 128
NEW_TOKENS = 64
IN_FLIGHT = 5_000


class EvenTokens(rollyard.RolloutWorkflow):
    """One answer; its reward is how many of its tokens are even."""

    def __init__(self) -> None:
        self.gconfig = rollyard.GenerationConfig(max_new_tokens=NEW_TOKENS)

    async def arun_episode(self, engine: Any, data: dict[str, Any]) -> dict[str, Any]:
        prompt = data["input_ids"]
        request = rollyard.ModelRequest(input_ids=prompt, gconfig=self.gconfig)
        said = await engine.agenerate(request)
        output = said.output_tokens
        both = np.concatenate([np.asarray(prompt, dtype=np.int32), output])[None]
        loss_mask = np.zeros(both.shape, dtype=np.int32)
        loss_mask[0, len(prompt) :] = 1
        logprobs = np.zeros(both.shape, dtype=np.float32)
        logprobs[0, len(prompt) :] = said.output_logprobs
        versions = np.full(both.shape, -1, dtype=np.int32)
        versions[0, len(prompt) :] = said.output_versions
        return {
            "input_ids": both,
            "attention_mask": np.ones(both.shape, dtype=bool),
            "loss_mask": loss_mask,
            "logprobs": logprobs,
            "versions": versions,
            "rewards": np.array([np.count_nonzero(np.asarray(output) % 2 == 0)], dtype=np.float32),
        }


def prompts(count: int) -> list[dict[str, Any]]:
    places = np.arange(PROMPT_TOKENS)
    return [{"input_ids": ((n * 31 + places * 7) % 30_000 + 1).tolist()} for n in range(count)]


def ours_in_python(url: str, given: list[dict[str, Any]]) -> float:
    with rollyard.SGLangEngine(url) as engine:
        executor = rollyard.RolloutExecutor(
            engine, max_concurrent_rollouts=IN_FLIGHT, consumer_batch_size=1, max_head_offpolicyness=None
        )
        with executor:
            begin = time.perf_counter()
            batch = executor.rollout_batch(given, EvenTokens())
            seconds = time.perf_counter() - begin
    assert batch["input_ids"].shape == (len(given), PROMPT_TOKENS + NEW_TOKENS)
    return len(given) / seconds


def baseline(url: str, given: list[dict[str, Any]]) -> float:
    async def run() -> float:
        engine = plain.Engine(url)
        executor = plain.Executor(
            engine, max_concurrent=IN_FLIGHT, batch=len(given), max_head_offpolicyness=0
        )
        begin = time.perf_counter()
        batch = await executor.rollout_batch(given, NEW_TOKENS)
        seconds = time.perf_counter() - begin
        await engine.client.aclose()
        assert batch["input_ids"].shape == (len(given), PROMPT_TOKENS + NEW_TOKENS)
        return len(given) / seconds

    return asyncio.run(run())


def in_rust(what: str, url: str, count: int) -> dict[str, float]:
    command = [RELEASE / "rollyard-bench", "episodes", what, "--url", url, "--count", str(count)]
    command += ["--prompt-tokens", str(PROMPT_TOKENS), "--new-tokens", str(NEW_TOKENS)]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return answer


def verdict(value: float, bar: float, *, at_least: bool = True) -> str:
    return "met" if (value >= bar if at_least else value <= bar) else "**missed**"


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=6_000)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    engine = subprocess.Popen(
        [RELEASE / "rollyard-test-engine", "--dialect", "sglang"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert engine.stdout is not None
        measure(engine.stdout.readline().strip(), given.rounds, given.episodes)
    finally:
        engine.kill()
        engine.wait()


def measure(url: str, rounds: int, episodes: int) -> None:
    some = prompts(episodes)
    rust: list[float] = []
    python: list[float] = []
    httpx: list[float] = []
    for _ in range(rounds):
        rust.append(in_rust("rate", url, 8 * episodes)["episodes_per_sec"])
        gc.collect()
        python.append(ours_in_python(url, some))
        gc.collect()
        httpx.append(baseline(url, some))
    calls = [in_rust("overhead", url, 2_000) for _ in range(rounds)]
    waiting = in_rust("waiting", url, 100_000)

    base = statistics.median(httpx)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} in the end; {IN_FLIGHT:,} episodes in flight\n")
    print("| what | measured | baseline: asyncio and httpx | ratio | bar |")
    print("|---|---|---|---|---|")
    for name, values, bar in [
        ("built-in workflow, episodes/s", rust, 10.0),
        ("workflow in Python, in-process, episodes/s", python, 2.0),
    ]:
        ratio = statistics.median(values) / base
        print(
            f"| {name} | {spread(values)} | {spread(httpx)} | {ratio:.1f} × "
            f"| ≥ {bar:.0f}, {verdict(ratio, bar)} |"
        )
    added = statistics.median(call["ours_us"] - call["bare_us"] for call in calls)
    ours, bare = (statistics.median(call[key] for call in calls) for key in ("ours_us", "bare_us"))
    print(
        f"| added to one generate call, median | {ours:.0f} µs | {bare:.0f} µs of bare bytes "
        f"| + {added:.0f} µs "
        f"| ≤ 300 µs, {verdict(added, 300, at_least=False)} |"
    )
    submitted, done = waiting["submitted_bytes"] / 1e6, waiting["done_bytes"] / 1e6
    print(
        f"| 100,000 prompts of {PROMPT_TOKENS} tokens submitted | {submitted:.0f} MB | – | – "
        f"| ≤ 500 MB, {verdict(submitted, 500, at_least=False)} |"
    )
    print(f"| the same with all their answers, not yet taken | {done:.0f} MB | – | – | – |")


if __name__ == "__main__":
    main()
