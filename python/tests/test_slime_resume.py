"""A trainer that is killed and comes back from its checkpoint trains on every rollout once."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from rollyard import Client
from serving import Serve
from slimetrainer import make_items, serve_slime, write

STEPS = 6
GROUPS = STEPS * 2

PLACES = (
    "start_rollout",
    "rewind",
    "lease",
    "before add_samples",
    "after add_samples",
    "ack",
    "commit",
    "after get_samples",
    "trained",
    "saved",
)


def begin(url: str, folder: pathlib.Path, place: str = "nowhere", step: int = -1) -> subprocess.Popen[str]:
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    program = pathlib.Path(__file__).with_name("resuming.py")
    command = [sys.executable, str(program), url, str(folder), str(STEPS), place, str(step)]
    return subprocess.Popen(command, env=surroundings, text=True)


def assert_each_was_trained_once(url: str, folder: pathlib.Path) -> None:
    """The checkpoint, which is what was learnt, and the books tell the same."""
    trained = json.loads((folder / "checkpoint.json").read_text())["trained"]
    assert Counter(uid for uids in trained for uid in uids) == Counter(
        item["uid"] for item in make_items(GROUPS)
    )
    with Client(url) as client:
        for step, uids in enumerate(trained):
            fates = [client.fate(uid) for uid in uids]
            assert {(fate.state, fate.step) for fate in fates} == {("trained", step)}, step
        books = client.books()
    assert books.balanced and (books.trained, books.held, books.leased) == (GROUPS * 2, 0, 0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("step", [0, 3])
def test_a_trainer_killed_anywhere_comes_back_exactly(
    serve: Serve, tmp_path: pathlib.Path, place: str, step: int
) -> None:
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(GROUPS))
    with begin(url, tmp_path, place, step) as killed:
        code = killed.wait(timeout=60)
    # Only the first step of a process starts and rewinds, and only each second one is saved.
    reached = not (place in ("start_rollout", "rewind") and step > 0) and not (place == "saved" and step == 0)
    assert code == (-signal.SIGKILL if reached else 0)
    with begin(url, tmp_path) as again:
        assert again.wait(timeout=60) == 0
    assert_each_was_trained_once(url, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_a_trainer_killed_again_and_again_comes_back_exactly(
    serve: Serve, tmp_path: pathlib.Path, seed: int
) -> None:
    chance = random.Random(seed)
    url = serve_slime(serve, tmp_path).url
    write(url, make_items(GROUPS))
    checkpoint = tmp_path / "checkpoint.json"
    for _ in range(6):
        saved = len(json.loads(checkpoint.read_text())["trained"]) if checkpoint.exists() else 0
        step = min(STEPS - 1, saved + chance.randint(0, 1))
        with begin(url, tmp_path, chance.choice(PLACES), step) as trainer:
            assert trainer.wait(timeout=60) in (0, -signal.SIGKILL)
    with begin(url, tmp_path) as again:
        assert again.wait(timeout=60) == 0
    assert_each_was_trained_once(url, tmp_path)


def test_the_server_and_the_trainer_are_killed_together(serve: Serve, tmp_path: pathlib.Path) -> None:
    server = serve_slime(serve, tmp_path)
    # One group is missing, so that the trainer is still there when the machine fails.
    items = make_items(GROUPS)
    write(server.url, items[:-2])
    with begin(server.url, tmp_path) as trainer:
        wait_for_step(server.url, STEPS - 2)
        server.kill()
        trainer.kill()
    server.start()
    write(server.url, items[-2:])
    with begin(server.url, tmp_path) as again:
        assert again.wait(timeout=60) == 0
    assert_each_was_trained_once(server.url, tmp_path)


def wait_for_step(url: str, step: int) -> None:
    deadline = time.monotonic() + 60
    with Client(url) as client:
        while step not in client.stats().commits:
            assert time.monotonic() < deadline, "the trainer does not come to the step"
            time.sleep(0.02)
