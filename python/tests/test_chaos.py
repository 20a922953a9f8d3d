"""Generator, server and trainer are killed at random, and every instance is trained on `num_epoch` times.

CHAOS_SECONDS says for how long; two minutes if it does not. CHAOS_SEED repeats a run, as far as chance is
ours to repeat.
"""

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
from typing import Any

import pytest

from rollyard import Client
from rollyard.errors import RollyardError
from serving import Serve, Server
from testengine import StartEngine

SECONDS = float(os.environ.get("CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", "7"))
EPOCHS = 3
REPEATS = 4
BATCH = 4
STEP_SECS = 0.15

# What comes in between is the user's: a question, an answer, a reward that differs from repeat to repeat.
GENERATOR = '''
from rollyard.generator import BaseGenerator, query_single_turn, register

def answer(client, messages, params):
    return query_single_turn(client, messages, params)

def reward(item):
    return hash(item["messages"][-1]["content"]) % 2

@register("chaos")
def run_rollout(data):
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], answer, reward, int(data["num_epoch"]))
'''


class Training:
    """A trainer that is started again whenever it was killed."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._process = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        program = pathlib.Path(__file__).with_name("chaotic.py")
        surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with (self._folder / "trainer.log").open("ab") as log:
            return subprocess.Popen([sys.executable, program, self._folder], env=surroundings, stderr=log)

    def is_done(self) -> bool:
        code = self._process.poll()
        if code not in (None, 0):
            log = (self._folder / "trainer.log").read_text()[-4000:]
            pytest.fail(f"the trainer ended with {code}: {log}")
        return code == 0

    def kill(self) -> None:
        if not self.is_done():
            self._process.kill()
            self._process.wait()
            self._process = self._begin()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def kill_generator(url: str, chance: random.Random) -> bool:
    """One of the processes that make rollouts: the parent or a worker."""
    try:
        with Client(url, retries=0) as client:
            pid = client._http().get("/api/runs/default").json()["generator"]["pid"]
    except (RollyardError, TypeError, KeyError, OSError):
        return False
    if pid is None:
        return False
    listed = subprocess.run(["ps", "-o", "pid=", "-g", str(pid)], capture_output=True, text=True).stdout
    victims = [int(victim) for victim in listed.split()]
    if not victims:
        return False
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("task", ["chaos", "math"])
def test_whatever_is_killed_every_instance_is_trained_once_an_epoch(
    serve: Serve, start_engine: StartEngine, model: pathlib.Path, tmp_path: pathlib.Path, task: str
) -> None:
    # Half of the time for each.
    seconds = SECONDS / 2
    chance = random.Random(f"{SEED} {task}")
    # More than can be trained on in this time; the rest follows in peace.
    steps = max(6, int(seconds / (STEP_SECS * 6)))
    instances = max(2, steps * BATCH // EPOCHS)
    steps = instances * EPOCHS // BATCH
    instances = steps * BATCH // EPOCHS
    assert instances * EPOCHS == steps * BATCH or instances * EPOCHS >= steps * BATCH

    engine = start_engine("--dialect", "openai", "--answer", r"It is \boxed{4}.")
    engine.set(latency_ms=30)
    server = begin(serve, tmp_path)
    lines = [{"instance_id": f"i{n}", "prompt": f"{n}?", "label": "4"} for n in range(instances)]
    (tmp_path / "prompts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    args: dict[str, Any] = {
        "rollout_task_type": task,
        "num_epoch": EPOCHS,
        "rollout_batch_size": BATCH,
        "n_samples_per_prompt": REPEATS,
        "sglang_router_port": int(engine.url.rpartition(":")[2]),
        "hf_checkpoint": str(model),
        "rollout_num_process": 3,
        "loss_mask_type": "auto",
    }
    training = {"url": server.url, "args": args, "steps": steps, "step_secs": STEP_SECS}
    (tmp_path / "training.json").write_text(json.dumps(training))
    trainer = Training(tmp_path)
    try:
        kills = disturb(server, trainer, chance, seconds)
        deadline = time.monotonic() + 240
        while not trainer.is_done():
            if time.monotonic() > deadline:
                log = (tmp_path / "trainer.log").read_text()[-3000:]
                pytest.fail(f"the training does not come to its end after {kills}: {log}")
            time.sleep(0.1)
    finally:
        trainer.end()
    print(f"{task}: {dict(kills)} in {seconds} s, {steps} steps")
    check(server.url, tmp_path, instances, steps)


def begin(serve: Serve, folder: pathlib.Path) -> Server:
    generators = folder / "generators"
    generators.mkdir()
    (generators / "chaos_generator.py").write_text(GENERATOR)
    flags = ["--generators", str(generators), "--python", sys.executable, "--generator-restarts", "1000"]
    # Equal rewards are no reason to drop a group here: what is dropped cannot be trained on.
    knobs = ["--validate", "sized", "--root", str(folder)]
    return serve(*flags, *knobs)


def disturb(server: Server, trainer: Training, chance: random.Random, seconds: float) -> Counter[str]:
    kills: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not trainer.is_done():
        time.sleep(chance.uniform(0.2, 2.0))
        victim = chance.choice(["trainer", "server", "generator", "generator"])
        if victim == "trainer":
            trainer.kill()
        elif victim == "server":
            server.kill()
            time.sleep(chance.uniform(0, 0.5))
            server.start()
        elif not kill_generator(server.url, chance):
            continue
        kills[victim] += 1
    assert kills["trainer"] and kills["server"], kills
    return kills


def check(url: str, folder: pathlib.Path, instances: int, steps: int) -> None:
    trained = json.loads((folder / "checkpoint.json").read_text())["trained"]
    seen = Counter(uid for uids in trained for uid in uids)
    assert max(seen.values()) == 1, "trained twice"
    assert len(trained) == steps and len(seen) == steps * BATCH * REPEATS
    made = {f"i{n}:{epoch}:{r}" for n in range(instances) for epoch in range(EPOCHS) for r in range(REPEATS)}
    assert seen.keys() <= made
    with Client(url) as client:
        for step, uids in enumerate(trained):
            fates = [client.fate(uid) for uid in uids]
            assert {(fate.state, fate.step) for fate in fates} == {("trained", step)}, step
        books = client.books()
    assert books.balanced
    assert (books.admitted, books.trained) == (len(made), len(seen)), books
    assert books.held == len(made) - len(seen) and books.dropped == 0, books
