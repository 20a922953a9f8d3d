"""The commands and the code of the guide to files, as they stand."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

import rollyard
from serving import BINARY, ROOT

GUIDE = (ROOT / "docs/guide/files.md").read_text()


@pytest.fixture
def runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder `runs` of five steps in which some think again, where the reader stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLYARD_CACHE", str(tmp_path / "cache"))
    with rollyard.RolloutLogger("runs/a.jsonl") as logger:
        for n in range(40):
            thought = "wait, actually" if n % 5 == 0 else "so"
            messages = [
                {"role": "user", "content": f"What is {n} + 1?"},
                {"role": "assistant", "content": f"<think>{thought}</think>It is {n + 1}."},
            ]
            logger.log_rollout(messages, n, n / 40, step=n // 8, data_source="math")
    return tmp_path


def test_the_commands_of_the_guide_answer(runs: pathlib.Path) -> None:
    blocks = [block.split("```")[0] for block in GUIDE.split("```bash\n")[1:]]
    assert len(blocks) == 5
    done = subprocess.run(
        ["bash", "-ec", "\n".join(blocks)],
        env=os.environ | {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "step,avg(reward),count(*)\n0," in done.stdout
    assert "│" in done.stdout and "It is 24." in done.stdout
    good = pathlib.Path("good.jsonl").read_text().splitlines()
    assert len(good) == 31 and len(rollyard.open("curve.parquet").query("select row from rollouts")) == 5


def test_the_code_of_the_guide_answers(runs: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = [block.split("```")[0] for block in GUIDE.split("```python\n")[1:]]
    exec(code, {})
    told = capsys.readouterr().out
    assert "reward" in told and told.count("wait, actually") == 3
