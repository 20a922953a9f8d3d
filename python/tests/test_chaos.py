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

import httpx
import pytest

from rollyard import Client
from serving import Serve, Server
from testengine import StartEngine

SECONDS = float(os.environ.get("CHAOS_SECONDS", "120"))
SEED = int(os.environ.get("CHAOS_SEED", "7"))
EPOCHS = 3
REPEATS = 4
BATCH = 4
STEP_SECS = 0.15

# What comes in between is the user's: a question, an answer, a reward that differs from repeat to repeat.
GENERATOR = """
from rollyard.generator import BaseGenerator, query_single_turn, register

def answer(client, messages, params):
    return query_single_turn(client, messages, params)

def reward(item):
    return hash(item["messages"][-1]["content"]) % 2

@register("chaos")
def run_rollout(data):
    generator = BaseGenerator.from_payload(data)
    generator.entry(data["input_file"], answer, reward, int(data["num_epoch"]))
"""


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
        pid = (httpx.get(f"{url}/api/runs/default").json()["generator"] or {}).get("pid")
    except httpx.TransportError:
        return False
    if pid is None:
        return False
    victims = group_of(pid)
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except (ProcessLookupError, IndexError):
        return False
    return True


def group_of(leader: int) -> list[int]:
    """The processes that a generator consists of."""
    members = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # Behind the name, which may hold anything: state, parent, process group.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader:
            members.append(int(stat.parent.name))
    return members


@pytest.mark.parametrize("task", ["chaos", "math"])
def test_whatever_is_killed_every_instance_is_trained_once_an_epoch(
    serve: Serve, start_engine: StartEngine, model: pathlib.Path, tmp_path: pathlib.Path, task: str
) -> None:
    # Half of the time for each.
    seconds = SECONDS / 2
    chance = random.Random(f"{SEED} {task}")
    # Undisturbed it would take half of the time.
    instances = BATCH * max(2, int(seconds / (2 * STEP_SECS * EPOCHS)))
    steps = instances * EPOCHS // BATCH
    engine = start_engine("--dialect", "openai", "--answer", r"It is \boxed{4}.")
    # The built-in task asks for all at once: an answer takes long enough to be killed in the middle of it.
    engine.set(latency_ms={"chaos": 30, "math": 3_000}[task])
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
    assert task == "math" or kills["generator"] > 0, kills
    print(f"{task}: {dict(kills)} in {seconds} s, {steps} steps")
    check(server.url, tmp_path, instances)


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
    victims: list[str] = []
    while time.monotonic() < end and not trainer.is_done():
        time.sleep(chance.uniform(0.2, 2.0))
        if not victims:
            victims = chance.sample(["trainer", "server", "generator", "generator"], 4)
        victim = victims.pop()
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


def check(url: str, folder: pathlib.Path, instances: int) -> None:
    """The checkpoint, which is what was learnt, and the books tell the same: everything once."""
    trained = json.loads((folder / "checkpoint.json").read_text())["trained"]
    made = (f"i{n}:{epoch}:{r}" for n in range(instances) for epoch in range(EPOCHS) for r in range(REPEATS))
    assert Counter(uid for uids in trained for uid in uids) == Counter(made)
    with Client(url) as client:
        for step, uids in enumerate(trained):
            fates = [client.fate(uid) for uid in uids]
            assert {(fate.state, fate.step) for fate in fates} == {("trained", step)}, step
        books = client.books()
    count = instances * EPOCHS * REPEATS
    assert books.balanced and (books.admitted, books.trained, books.dropped) == (count, count, 0), books
