"""The commands and the code of the guide to agents, as they stand."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import rollyard
from serving import BINARY, ROOT
from testengine import StartEngine, TestEngine

GUIDE = (ROOT / "docs/guide/agents.md").read_text()
README = (
    (ROOT / "README.md").read_text().split("## An agent that only knows OPENAI_BASE_URL")[1].split("\n## ")[0]
)


@pytest.fixture
def server(start_engine: StartEngine) -> TestEngine:
    """Samples only what the small tokenizer knows."""
    return start_engine("--set", '{"vocabulary": 600, "stop_one_in": 8}')


@pytest.fixture
def shell(
    server: TestEngine, model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs commands where a reader of the guide stands."""
    shutil.copytree(model, tmp_path / "Qwen2.5-7B-Instruct")
    tasks = [{"prompt": f"{n} + {n}?", "answer": 2 * n} for n in range(3)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    program = GUIDE.split('```python title="agent.py"\n')[1].split("```")[0]
    (tmp_path / "agent.py").write_text(program)
    monkeypatch.chdir(tmp_path)

    def run(page: str) -> subprocess.CompletedProcess[str]:
        blocks = [block.split("```")[0] for block in page.split("```bash\n")[1:]]
        return subprocess.run(
            ["bash", "-ec", "\n".join(blocks).replace("http://127.0.0.1:30000", server.url)],
            env=os.environ | {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def lines(folder: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in pathlib.Path(folder, "rollouts.jsonl").read_text().splitlines()]


def test_the_commands_of_the_guide_make_rollouts(
    shell: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = shell(GUIDE)
    assert done.returncode == 0, done.stderr
    assert "3 accepted, 0 rejected, 0 failed; 12 episodes" in done.stderr
    made = lines("rollouts")
    assert len(made) == 12 and all(len(line["messages"]) == 4 for line in made)
    assert len(lines("judged")) == 3


def test_the_command_in_the_readme_makes_rollouts(
    shell: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = shell(README.replace("my-cli --task", "python3 agent.py"))
    assert done.returncode == 0, done.stderr
    assert "3 accepted" in done.stderr


def test_the_code_of_the_guide_trains(
    server: TestEngine, model: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said: dict[str, Any] = {}
    for block in GUIDE.split("```python\n")[1:]:
        code = block.split("```")[0].replace("http://127.0.0.1:30000", server.url)
        exec(code.replace("models/qwen", str(model)), said)
    assert capsys.readouterr().out == "8 (8,)\n(4,)\n"
    for name in list(inspect.signature(rollyard.AgentWorkflow).parameters):
        assert f"`{name}`" in GUIDE, name
