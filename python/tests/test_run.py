"""`rollyard run` with workflows, rewards and tools in Python, as a user starts it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from serving import ROOT, TARGET
from testengine import StartEngine, TestEngine


def run(folder: pathlib.Path, engine: TestEngine, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(TARGET / "debug" / "rollyard"), "run", "--input", "prompts.jsonl", "--out", "out"]
    paths = [str(ROOT / "python/tests"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"ROLLYARD_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [*command, "--engine", engine.url, *flags],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def write(folder: pathlib.Path, *prompts: dict[str, Any]) -> None:
    (folder / "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))


def lines(folder: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out/rollouts.jsonl").read_text().splitlines()]


def test_a_workflow_of_ones_own_runs_in_worker_processes(server: TestEngine, tmp_path: pathlib.Path) -> None:
    write(tmp_path, {"reward": 2}, {"reject": True}, {"reward": 5})
    flags = ("--workflow", "yarns.Plain", "--workflow-args", '{"max_new_tokens": 6}', "--group-size", "2")
    done = run(tmp_path, server, *flags)
    assert done.returncode == 0, done.stderr
    assert "2 accepted, 1 rejected, 0 failed" in done.stderr
    told = sorted((line["attributes"]["sample_index"], line.get("reward")) for line in lines(tmp_path))
    assert told == [(0, 2.0), (0, 2.0), (1, None), (1, None), (2, 5.0), (2, 5.0)]
    assert all(len(line["response_tokens"]) == 6 for line in lines(tmp_path) if "reward" in line)


def test_a_workflow_that_is_not_there_is_said_with_what_is(
    server: TestEngine, tmp_path: pathlib.Path
) -> None:
    write(tmp_path, {"reward": 2})
    for path, expected in [
        ("yarns.Plane", "the module yarns has no Plane; it has"),
        ("yarn.Plain", "there is no module yarn"),
        ("yarns.NOT_A_CLASS", "but must be a class with arun_episode"),
    ]:
        done = run(tmp_path, server, "--workflow", path)
        assert done.returncode == 1 and expected in done.stderr, done.stderr


def test_rewards_and_tools_are_functions(
    start_engine: StartEngine, model: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write(tmp_path, {"prompt": "?", "bonus": 5})
    server = start_engine("--set", '{"vocabulary": 600}')
    flags = ("--model", str(model), "--max-new-tokens", "8", "--workflow", "multi-turn")
    done = run(tmp_path, server, *flags, "--reward", "yarns.reward_of_length", "--tool", "yarns.double")
    assert done.returncode == 0, done.stderr
    [line] = lines(tmp_path)
    assert line["reward"] == 13.0 and line["is_exact"] is True


def test_an_agent_in_python_is_a_workflow_too(
    tmp_path: pathlib.Path, start_engine: StartEngine, model: pathlib.Path
) -> None:
    engine = start_engine("--set", '{"vocabulary": 600}')
    write(tmp_path, *({"prompt": f"{n}?", "returns": n} for n in range(3)))
    flags = ["--workflow", "actors.Agent", "--model", str(model), "--processes", "1", "--group-size", "2"]
    done = run(tmp_path, engine, *flags)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/rollouts.jsonl").read_text().splitlines()]
    assert sorted(line["attributes"]["reward"] for line in lines) == [0, 0, 1, 1, 2, 2]
