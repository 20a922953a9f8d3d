"""Generator files, run as the server runs them: in a process of their own, with a payload."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

import rollyard

HEAD = """
import ctypes, os, pathlib, signal, sys, time
from rollyard.generator import BaseGenerator, query_single_turn, register

FOLDER = pathlib.Path(__file__).parent

def rollout(client, messages, params, tools=None):
    note("asked", messages[0]["content"])
    return query_single_turn(client, messages, params)

def reward(item):
    return 1

def note(name, text):
    with open(FOLDER / name, "a") as file:
        file.write(f"{text}\\n")

def once(name):
    # True the first time, for all processes together.
    try:
        (FOLDER / f"once-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
"""
TAIL = """
@register("test")
def run_rollout(data):
    generator = BaseGenerator.from_payload(data)
    note("parent", os.getpid())
    generator.entry(data["input_file"], rollout, reward, int(data.get("num_epoch", 1)))
"""


class Generation:
    """A generator file at work, in a folder of its own."""

    def __init__(self, folder: pathlib.Path, url: str, engine_url: str) -> None:
        self.folder = folder
        self.file = folder / "test_generator.py"
        self.payload: dict[str, Any] = {
            "remote_engine_url": engine_url,
            "remote_buffer_url": url,
            "task_type": "test",
            "input_file": str(folder / "input.jsonl"),
            "num_process": "4",
            "num_repeat_per_sample": "2",
            "sampling_params": {"max_tokens": 8, "temperature": 1.0},
        }
        self.write_lines([{"instance_id": n, "prompt": f"question {n}", "label": str(n)} for n in range(6)])
        self.write_code("")
        self._process: subprocess.Popen[str] | None = None

    def write_code(self, code: str) -> None:
        self.file.write_text(HEAD + textwrap.dedent(code) + TAIL)

    def write_lines(self, lines: list[dict[str, Any]]) -> None:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (self.folder / "input.jsonl").write_text(text)

    def start(self, **payload: Any) -> None:
        command = [sys.executable, "-m", "rollyard.generator.child", "run", str(self.file)]
        with (self.folder / "stderr").open("w") as stderr:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(self.payload | payload))
        self._process.stdin.close()

    def end(self, how: signal.Signals | None = None) -> int:
        """Its exit code, when it has ended; `how` helps it."""
        assert self._process is not None
        if how is not None:
            self._process.send_signal(how)
        return self._process.wait(timeout=30)

    def run(self, **payload: Any) -> str:
        """What it said on standard error, when all went well."""
        self.start(**payload)
        assert self.end() == 0, self.said()
        return self.said()

    def said(self) -> str:
        return (self.folder / "stderr").read_text()

    def notes(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def workers(self) -> list[int]:
        """The processes that its newest process has started."""
        parent = self.notes("parent")[-1]
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children")
        return [int(pid) for pid in children.read_text().split()]


Generate: TypeAlias = Callable[[str, str], Generation]


@pytest.fixture
def generate(tmp_path: pathlib.Path) -> Iterator[Generate]:
    made: list[Generation] = []

    def make(url: str, engine_url: str) -> Generation:
        folder = tmp_path / f"generator{len(made)}"
        folder.mkdir()
        made.append(Generation(folder, url, engine_url))
        return made[-1]

    yield make
    for one in made:
        if one._process is not None and one._process.poll() is None:
            one._process.kill()
            one._process.wait()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def items_of(url: str) -> dict[str, dict[str, Any]]:
    """All rollouts that are ready, as they were written, by uid."""
    with rollyard.Client(url) as client:
        lease = client.lease()
        assert lease is not None
        return {item["uid"]: item for item in lease.rollouts}


# Every rollout comes back as it was written.
AS_WRITTEN = ("--validate", "sized", "--filter", "none", "--normalize", "none", "--pad", "none")
