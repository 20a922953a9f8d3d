"""What the documentation shows, run as it stands."""

from __future__ import annotations

import inspect
import pathlib
import re
import time
from typing import Any

import pytest

import rollyard
import rollyard.slime
from rollyard import generator
from samples import make_rollout
from serving import ROOT, Serve
from testengine import TestEngine
from trainer import make_item


def test_the_loop_in_the_readme_trains(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve("--group-size", "2")
    loop = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert len(loop.splitlines()) <= 14
    exec(loop.replace("http://127.0.0.1:8889", server.url), {})
    with rollyard.Client(server.url) as client:
        books = client.books()
        assert client.stats().commits == (1, 2)
    assert (books.admitted, books.trained, books.balanced) == (8, 8, True)
    assert capsys.readouterr().out.startswith("2 [[ 0.  0. ")


def test_the_guide_goes_from_messages_to_shared_arrays(
    serve: Serve, model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve("--group-size", "2")
    with rollyard.Client(server.url) as client:
        client.write_many(make_item(f"i{n // 2}", reward=n % 2) for n in range(4))
    monkeypatch.setattr(rollyard.MultiTurnLossMaskGenerator, "_custom", {})
    guide = (ROOT / "docs/guide/python.md").read_text().split("## Tokens and masks")[1]
    said: dict[str, Any] = {}
    for block in guide.split("```python\n")[1:]:
        code = block.split("```")[0]
        code = code.replace("http://127.0.0.1:8889", server.url).replace("models/qwen", str(model))
        exec(code, said)
    assert said["batch"]["input_ids"].shape == (4, 128)
    assert capsys.readouterr().out.startswith("(4, 128) ")


def test_the_guide_and_the_reference_read_files_of_rollouts(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained: list[rollyard.RolloutBatch] = []
    said: dict[str, Any] = {"rollouts": [make_rollout()], "train": trained.append, "time": time}
    guide = (ROOT / "docs/guide/python.md").read_text().split("## Files of rollouts")[1]
    code = guide.split("```python\n")[1].split("```")[0]
    code = code.replace("s3://bucket/run-7/rollouts", str(tmp_path)).replace("timeout=60", "timeout=0.01")
    exec(code, said)
    [batch] = trained
    assert batch.groups[0].rollouts[0].metadata == batch.metadata and batch.metadata.weight_step == 12
    assert capsys.readouterr().out == "0 []\n"
    page = (ROOT / "docs/reference/rollout-files.md").read_text()
    [said["path"]] = map(str, tmp_path.iterdir())
    exec(page.split("```python\n")[1].split("```")[0], said)
    assert capsys.readouterr().out == "[{'env_name': 'math', 'episode_reward': 0.0, 'weight_step': -1}]\n"


def test_the_guide_to_replay_trains(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs/guide/replay.md").read_text()
    said: dict[str, Any] = {}
    for block in guide.split("```python\n")[1:]:
        exec(block.split("```")[0], said)
    told = capsys.readouterr().out
    assert re.match(r"0 \(8, 16\) True\n1 \(8, 16\) True\n2 \(8, 16\) True\n\{.*\}\n", told), told
    assert "the limiter holds 64 inserts back" in told
    for name in said["buffer"].get_stats():
        assert f"`{name}`" in guide, name
    for name in vars(said["config"]):
        assert f"| `{name}`" in guide, name


def test_the_guide_to_sampling_trains(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve()
    group = rollyard.RolloutGroup([make_rollout(), make_rollout()])
    batch = rollyard.attach_metadata([group, group], weight_step=0)
    code = (ROOT / "docs/guide/replay-server.md").read_text().split("```python\n")[1].split("```")[0]
    exec(code.replace("http://127.0.0.1:8889", server.url), {"batch": batch})
    assert capsys.readouterr().out == "(4, 5) 3\n"


def test_the_guide_to_workflows_trains(server: TestEngine, capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs/guide/workflows.md").read_text()
    # Weights that the engine reports are believed; this one never loads any.
    server.set(gives_version=False)
    said: dict[str, Any] = {}
    rollyard.stats.export()
    for block in guide.split("```python\n")[1:]:
        exec(block.split("```")[0].replace("http://127.0.0.1:30000", server.url), said)
    told = capsys.readouterr().out
    assert told == "".join(f"{step} (8, 19) 1.0\n" for step in range(3)) + "True ['rollout']\n(2, 10)\n"
    assert said["engine"].get_version() == 7
    for name in list(inspect.signature(rollyard.RolloutExecutor).parameters)[1:]:
        assert f"`{name}`" in guide, name


def test_the_workflow_in_the_readme_makes_batches(
    server: TestEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    server.set(gives_version=False)
    block = (ROOT / "README.md").read_text().split("```python\n")[2].split("```")[0]
    exec(block.replace("http://127.0.0.1:30000", server.url), {})
    assert capsys.readouterr().out.startswith("(32, 67) {'submitted'")


def test_the_reference_has_every_call_and_every_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    told = set(re.findall(r"^\| `(\w+)\(", page.split("## `Lease`")[0], re.MULTILINE))
    calls = {name for name, _ in inspect.getmembers(rollyard.Client, inspect.isfunction) if name[0] != "_"}
    assert told == calls - {"close"}
    for name in [*rollyard.__all__, *rollyard.slime.__all__]:
        assert name == "__version__" or re.search(rf"`{name}\b", page), name
    part = page.split("## `rollyard.generator`")[1]
    for name in generator.__all__:
        assert re.search(rf"`{name}\b", part), name
