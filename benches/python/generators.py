"""The math task against a process for every worker, and how long a group is under way to its trainer.

The engine is `rollyard-test-engine`, which answers at once, and the server is the release build with fsync;
both are processes of their own on the same two cores for all contestants, which take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "benches" / "baselines"))

import process_generator as plain  # noqa: E402

import rollyard  # noqa: E402

RELEASE = REPOSITORY / "target" / "release"
REPEATS = 8
SAMPLING = {"max_tokens": 256, "temperature": 1.0, "top_p": 1.0}
ANSWER = "Two and two are four, because counting two further from two ends at four. " * 4 + r"So \boxed{4}."

# Five hooks that each look at every rollout they are given.
HOOKED = """
TASK_TYPE = "hooked"

def run_rollout(data):
    pass

def is_valid_group(group, min_valid_group_size, task_type):
    finished = len(group[1]) >= min_valid_group_size
    return finished and all(item["messages"][-1]["content"] for item in group[1]), finished

def filter_item(item, task_type):
    return 0 <= item["reward"] <= 1

def normalize_group_data(group):
    mean = sum(item["reward"] for item in group[1]) / len(group[1])
    for item in group[1]:
        item["raw_reward"] = item["reward"]
        item["reward"] -= mean
    return group

def pad_group_data(group, group_size):
    items = group[1]
    return group[0], items + [dict(item) for item in items[: group_size - len(items)]]

def get_group_data_meta_info(temp_data):
    rewards = [item["reward"] for items in temp_data.values() for item in items]
    return {"total_samples": len(rewards), "avg_reward": sum(rewards) / max(1, len(rewards))}
"""


class Programs:
    """The engine and the server, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        generators = folder / "generators"
        generators.mkdir()
        (generators / "hooked_generator.py").write_text(HOOKED)
        self._engine = subprocess.Popen(
            [RELEASE / "rollyard-test-engine", "--dialect", "openai", "--answer", ANSWER],
            stdout=subprocess.PIPE,
            text=True,
        )
        serve = ["serve", "--listen", "127.0.0.1:0", "--data", str(folder / "data"), "--root", str(folder)]
        self._server = subprocess.Popen(
            [RELEASE / "rollyard", *serve, "--generators", str(generators), "--python", sys.executable],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._engine.stdout is not None and self._server.stdout is not None
        self.engine_url = self._engine.stdout.readline().strip()
        self.server_url = next(
            line.split()[-1] for line in self._server.stdout if line.startswith("listening on ")
        )

    def end(self) -> None:
        for process in (self._server, self._engine):
            process.terminate()
            process.wait()

    def client(self, run: str, **knobs: object) -> rollyard.Client:
        client = rollyard.Client(self.server_url, run=run)
        client.make_run(**knobs)
        return client


def data_set(count: int) -> list[dict[str, Any]]:
    question = "What is two and two? Think first, and put the answer into a box. "
    prompt = [{"role": "user", "content": question * 4}]
    return [{"instance_id": f"math_{n}", "prompt": prompt, "label": "4"} for n in range(count)]


def math_task(programs: Programs, name: str, instances: int) -> float:
    """Rollouts per second of the built-in task, from its start until all are written."""
    file = programs.folder / f"{name}.jsonl"
    file.write_text("".join(f"{json.dumps(item)}\n" for item in data_set(instances)))
    payload = {
        "run": name,
        "task_type": "math",
        "input_file": str(file),
        "remote_engine_url": programs.engine_url,
        "num_repeat_per_sample": REPEATS,
        "sampling_params": SAMPLING,
    }
    begin = time.perf_counter()
    plain.Connection(programs.server_url).post("/start_rollout", payload)
    with rollyard.Client(programs.server_url, run=name) as client:
        while client.books().admitted < instances * REPEATS:
            time.sleep(0.01)
    return instances * REPEATS / (time.perf_counter() - begin)


def process_per_worker(programs: Programs, name: str, instances: int, processes: int) -> float:
    with programs.client(name, group_size=REPEATS, validate="answered"):
        begin = time.perf_counter()
        written = plain.generate(
            programs.engine_url,
            f"{programs.server_url}/runs/{name}",
            data_set(instances),
            repeats=REPEATS,
            sampling_params=SAMPLING,
            processes=processes,
        )
        return written / (time.perf_counter() - begin)


def item(instance: str, repeat: int, size: int = 1_000) -> dict[str, Any]:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "x" * size}]
    reward = float(repeat % 2)
    return {"uid": f"{instance}-{repeat}", "instance_id": instance, "messages": messages, "reward": reward}


def delays(client: rollyard.Client, groups: int) -> list[float]:
    """Milliseconds from the last write of a group, when it is sent, to its arrival in a waiting trainer."""
    sent: dict[str, float] = {}
    found: list[float] = []

    def read() -> None:
        with rollyard.Client(client.url, run=client.run) as reader:
            while len(found) < groups:
                lease = reader.lease(groups=1, wait_secs=30)
                assert lease is not None
                now = time.perf_counter()
                found.append(1e3 * (now - sent[lease.groups[0].instance_id]))
                lease.ack()

    trainer = threading.Thread(target=read)
    trainer.start()
    for n in range(groups):
        name = f"g{n}"
        client.write_many([item(name, repeat) for repeat in range(REPEATS - 1)])
        # The trainer has come back and waits again.
        time.sleep(0.02)
        sent[name] = time.perf_counter()
        client.write(item(name, REPEATS - 1))
    trainer.join()
    return found


def hooked_rate(client: rollyard.Client, groups: int) -> float:
    """Groups a second from the first write until all are ready."""
    begin = time.perf_counter()
    block = 100
    for start in range(0, groups, block):
        some = range(start, start + block)
        client.write_many([item(f"i{n}", repeat) for n in some for repeat in range(REPEATS)])
    while client.stats().ready_groups < groups:
        time.sleep(0.005)
    return groups / (time.perf_counter() - begin)


def verdict(value: float, bar: float, *, at_least: bool = True) -> str:
    return "met" if (value >= bar if at_least else value <= bar) else "**missed**"


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}–{max(values):,.0f})"


def measure(programs: Programs, rounds: int) -> None:
    ours: list[float] = []
    theirs: dict[int, list[float]] = {8: [], 32: [], 100: []}
    for n in range(rounds):
        ours.append(math_task(programs, f"math-{n}", 5_000))
        for processes, rates in theirs.items():
            rates.append(process_per_worker(programs, f"processes-{processes}-{n}", 500, processes))
    hooks = {"validate": "hook", "filter": "hook", "normalize": "hook", "pad": "hook", "meta": "hook"}
    knobs = {"group_size": REPEATS, "task_type": "hooked"}
    with programs.client("plain", group_size=REPEATS) as client:
        without = delays(client, 200)
    with programs.client("hooked", **knobs, **hooks) as client:
        through = delays(client, 200)
    rates = []
    for n in range(rounds):
        with programs.client(f"many-{n}", **knobs, **hooks) as client:
            rates.append(hooked_rate(client, 4_000))

    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} in the end\n")
    print("| what | measured | baseline | ratio | bar |")
    print("|---|---|---|---|---|")
    best = max(theirs, key=lambda processes: statistics.median(theirs[processes]))
    for processes, values in theirs.items():
        ratio = statistics.median(ours) / statistics.median(values)
        bar = f"≥ 10, {verdict(ratio, 10)}" if processes == best else "–"
        print(
            f"| math task, rollouts/s | {spread(ours)} | {spread(values)} with {processes} processes "
            f"| {ratio:.1f} × | {bar} |"
        )
    for name, values, most in [("without hooks", without, 20), ("through five Python hooks", through, 50)]:
        middle, slow = statistics.median(values), statistics.quantiles(values, n=20)[-1]
        print(
            f"| last write to a waiting trainer, {name}, median (95%) | {middle:.1f} ms ({slow:.1f} ms) "
            f"| 2.5 s, polling every 5 s | {2_500 / middle:,.0f} × "
            f"| ≤ {most} ms, {verdict(middle, most, at_least=False)} |"
        )
    rate = statistics.median(rates)
    print(
        f"| groups/s through five Python hooks, {REPEATS} rollouts of 1 kB each | {spread(rates)} | – | – "
        f"| ≥ 1,000, {verdict(rate, 1_000)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder))
        try:
            measure(programs, given.rounds)
        finally:
            programs.end()


if __name__ == "__main__":
    main()
