"""The programs of examples/, run as a user runs them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from serving import ROOT
from testengine import TestEngine


def run(example: str, server: TestEngine, model: pathlib.Path) -> list[str]:
    """Its lines."""
    command = [sys.executable, str(ROOT / "examples" / example), server.url, str(model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_workflow_gives_a_row_for_each_try(server: TestEngine, model: pathlib.Path) -> None:
    # Tokens that the model's tokenizer knows; nonsense, so that every answer is wrong at first.
    server.set(vocabulary=600)
    *tensors, right, turns = run("python_workflow.py", server, model)
    shapes = {line.split()[0]: line.partition("(")[2].rstrip(")") for line in tensors}
    assert sorted(shapes) == ["attention_mask", "input_ids", "logprobs", "loss_mask", "rewards", "versions"]
    rows = server.counters()["requests"]
    assert shapes["rewards"] == f"{rows}," and shapes["input_ids"].startswith(f"{rows}, ")
    assert rows > 8 and turns == f"turns: {rows / 8:.2f} on average of 8 episodes"
    assert re.fullmatch(r"right: 0\.\d\d on average of 8 episodes", right)


def test_the_collection_trains_on_varied_and_fresh_groups(server: TestEngine, model: pathlib.Path) -> None:
    # About half of the groups have eight answers that all end in time, and are dropped. Weights that the
    # engine reports are believed, and this one never loads any.
    server.set(vocabulary=600, stop_one_in=14, gives_version=False, latency_ms_per_token=0.2)
    *steps, counts, recorded = run("grpo_collection.py", server, model)
    assert len(steps) == 4
    for number, line in enumerate(steps):
        told = re.fullmatch(
            r"step (\d): 32 rows of \d+, reward (.*), advantages (.*) to (.*), "
            r"oldest token (\d) versions behind",
            line,
        )
        assert told is not None, line
        assert int(told[1]) == number and 0 < float(told[2]) < 1
        assert float(told[3]) < 0 < float(told[4]) and int(told[5]) <= min(number, 2)
    told = re.fullmatch(r"(\d+) accepted, (\d+) rejected, (\d+) stale, 0 failed", counts)
    assert told is not None, counts
    assert int(told[1]) >= 16 and int(told[2]) > int(told[3]) >= 0
    assert recorded.startswith("{'reward': {'count': ")
