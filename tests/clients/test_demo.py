"""The demo as its guide shows it, with few steps."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess

import requests

import test_readme
from serving import BINARY, ROOT, Serve

GUIDE = (ROOT / "docs/guide/demo.md").read_text()


def commands() -> list[list[str]]:
    blocks = [block.split("```")[0] for block in GUIDE.split("```bash\n")[1:]]
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if not line.startswith("make ")]


def run(words: list[str], folder: pathlib.Path) -> str:
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    command = [str(BINARY), *words[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def learn(words: list[str], steps: int, folder: pathlib.Path) -> str:
    if "--steps" in words:
        words = words[: words.index("--steps")]
    return run([*words, "--steps", str(steps), "--listen", "127.0.0.1:0"], folder)


def view(words: list[str], folder: pathlib.Path) -> None:
    command = [str(BINARY), *words[1:], "--no-open"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        url = viewer.stdout.readline().split()[-1]
        assert requests.get(url, timeout=10).ok
        viewer.terminate()


def test_the_guide_works(tiny: Serve, tmp_path: pathlib.Path) -> None:
    """Learns two steps and then a third, and asks all that the guide asks in between and afterwards."""
    told = []
    steps = 1
    served = ""
    for words in commands():
        if words[:2] == ["rollyard", "demo"] and "my-run" in words:
            steps += 1
            told.append(learn(words, steps, tmp_path))
        elif words[:2] == ["rollyard", "demo"]:
            # crates/cli/tests/it/demo.rs plays them, a warm-up each; here they are only understood.
            assert "Usage: rollyard demo" in run([*words, "--help"], tmp_path)
        elif words[1] == "view":
            view(words, tmp_path)
        elif words[1:3] == ["tiny", "serve"]:
            served = tiny(*words[3:5]).url.removeprefix("http://")
        elif words[0] == "curl":
            asked = [word.replace("127.0.0.1:30000", served) for word in words]
            answer = test_readme.run(asked, served, tmp_path).json()
            assert answer["choices"][0]["message"]["content"].isdigit(), answer
        else:
            told.append(run(words, tmp_path))
    assert steps == 3 and told[0].count("✓") == 4
    assert "every rollout accounted for" in told[-2]
    assert "going on from the checkpoint of step 2" in told[-1]
    for part in (
        "plan.json",
        "policy.safetensors",
        "curve.jsonl",
        "curve.svg",
        "yard/",
        "archive/demo/",
        "tokenizer/",
    ):
        assert (tmp_path / "my-run" / part).exists() and f"  {part} " in GUIDE, part


def test_what_the_guide_explains_stands_in_what_it_shows() -> None:
    shown = GUIDE.split("## What it prints")[1].split("```")[1]
    explained = GUIDE.split("| line | meaning |")[1].split("\n\n")[0]
    for row in explained.splitlines()[2:]:
        cell = row.split("|")[1].strip()
        # The warm-up writes over its own line, on a terminal only.
        if cell.startswith("`") and "warm-up" not in cell:
            for piece in cell.strip("`").split("…"):
                assert piece.strip() in shown, piece
