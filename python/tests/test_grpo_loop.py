"""examples/grpo_loop.py as a user runs it: it learns, and killed anywhere it trains on each rollout once."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from rollyard import Client
from serving import ROOT, Serve

EXAMPLE = ROOT / "examples/grpo_loop.py"
DRIVER = pathlib.Path(__file__).with_name("grpokilled.py")
STALENESS_MAX = 2
BATCH = 192


def begin(*arguments: str, program: pathlib.Path = EXAMPLE) -> subprocess.Popen[str]:
    # One core is enough for such a small network; threads of BLAS would only take turns.
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(program), *arguments]
    return subprocess.Popen(
        command, env=surroundings, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(*arguments: str, program: pathlib.Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    with begin(*arguments, program=program) as started:
        out, err = started.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, started.returncode, out, err)


def steps_of(lines: str) -> list[tuple[int, float, int]]:
    """The number, the reward and the staleness of each step that was told."""
    told = re.findall(r"^step (\d+): reward (\d\.\d\d), staleness (-?\d+)$", lines, re.MULTILINE)
    return [(int(step), float(reward), int(staleness)) for step, reward, staleness in told]


def stop_at(step: int, how: signal.Signals, *arguments: str) -> str:
    """What it says until it is stopped, soon after it has told a step."""
    with begin(*arguments) as started:
        assert started.stdout is not None
        lines = []
        for line in started.stdout:
            lines.append(line)
            if line.startswith(f"step {step}:"):
                started.send_signal(how)
        assert started.wait(timeout=60) == (0 if how == signal.SIGINT else -how)
    return "".join(lines)


def test_it_learns_through_an_interrupt_and_a_kill(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve().url
    steps = 100
    arguments = (url, "--steps", str(steps), "--seed", "3", "--checkpoint", str(tmp_path / "loop.npz"))
    interrupted = stop_at(20, signal.SIGINT, *arguments)
    assert "the same command goes on" in interrupted
    killed = stop_at(60, signal.SIGKILL, *arguments)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr

    parts = [steps_of(part) for part in (interrupted, killed, done.stdout)]
    for before, after in zip(parts, parts[1:], strict=False):
        # One that was stopped between its checkpoint and its line is in neither part.
        assert after[0][0] - before[-1][0] in (1, 2), "it goes on from the checkpoint"
    told = [step for part in parts for step in part]
    assert all(0 <= staleness <= STALENESS_MAX for _, _, staleness in told)
    assert any(staleness > 0 for _, _, staleness in told), "it generates while it trains"
    rewards = [reward for _, reward, _ in told]
    assert np.mean(rewards[:10]) < 0.1 and np.mean(rewards[-10:]) > 0.5, rewards

    told_books = re.search(
        r"^(\d+) admitted = (\d+) held \+ 0 leased \+ (\d+) trained \+ (\d+) dropped$",
        done.stdout,
        re.MULTILINE,
    )
    assert told_books is not None, done.stdout
    admitted, held, trained, dropped = map(int, told_books.groups())
    assert admitted == held + trained + dropped and trained == steps * BATCH
    with Client(url, run="grpo-loop") as client:
        books = client.books()
    assert books.balanced and (books.admitted, books.trained) == (admitted, trained)


def test_killed_at_every_answer_it_trains_on_each_rollout_once(serve: Serve, tmp_path: pathlib.Path) -> None:
    url = serve().url
    journal = tmp_path / "drawn.jsonl"
    steps = 14
    arguments = (url, "--steps", str(steps), "--checkpoint", str(tmp_path / "loop.npz"))
    # `rewind` comes after `saved`, so that resuming is interrupted when it matters most.
    for place in ("rollouts", "sample", "ack", "saved", "rewind", "step", "commit"):
        ended = run(str(journal), place, *arguments, program=DRIVER)
        assert ended.returncode == -signal.SIGKILL, (place, ended.stdout, ended.stderr)
    ended = run(str(journal), "nowhere", *arguments, program=DRIVER)
    assert ended.returncode == 0, ended.stderr

    # A step that was drawn for twice was in no checkpoint the first time: the last draw is what was learnt.
    draws = [json.loads(line) for line in journal.read_text().splitlines()]
    learnt: dict[int, list[str]] = {draw["step"]: draw["uids"] for draw in draws}
    assert len(draws) > len(learnt), "some steps were lost and made again"
    assert sorted(learnt) == list(range(steps))
    assert len({uid for uids in learnt.values() for uid in uids}) == steps * BATCH, "none twice"
    with Client(url, run="grpo-loop") as client:
        books = client.books()
        assert books.balanced and (books.trained, books.leased) == (steps * BATCH, 0)
        assert "future_step" not in books.dropped_by_reason, "a rewind loses none of the checkpoint's weights"
        for step, uids in learnt.items():
            fates = [client.fate(uid) for uid in uids[::16]]
            assert {(fate.state, fate.step) for fate in fates} == {("trained", step + 1)}, step


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grpo_loop", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_gradient_is_that_of_the_clipped_loss() -> None:
    loop = load_example()
    chance = np.random.default_rng(5)
    state = {name: chance.normal(0, 0.5, shape) for name, shape in loop.SHAPES.items()}
    tokens = chance.integers(0, 12, (40, 6))
    batch = {
        "input_ids": tokens,
        "loss_weights": np.repeat(chance.normal(0, 1, (40, 1)), 6, axis=1),
        "policy_logprobs": np.zeros((40, 6)),
    }
    told = loop.forward(state, loop.contexts(tokens))[1].reshape(40, 2, 12)
    now = np.take_along_axis(told, tokens[:, 4:, None], axis=2)[..., 0]
    # Sampled by other weights: ratios on both sides of the clip, and inside it.
    batch["policy_logprobs"][:, 4:] = now - chance.normal(0, 0.3, now.shape)

    def loss(weights: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> float:
        told = loop.forward(weights, loop.contexts(tokens))[1].reshape(40, 2, 12)
        now = np.take_along_axis(told, tokens[:, 4:, None], axis=2)[..., 0]
        ratio = np.exp(now - batch["policy_logprobs"][:, 4:])
        advantages = batch["loss_weights"][:, 4:]
        gain = np.minimum(ratio * advantages, np.clip(ratio, 1 - loop.CLIP, 1 + loop.CLIP) * advantages)
        entropy = -(np.exp(told) * told).sum(axis=2)
        return -float((gain + loop.ENTROPY * entropy).mean())

    for name, slope in loop.gradient(state, batch).items():
        for place in np.unique(chance.integers(0, slope.size, 12)):
            nudge = np.zeros(slope.size)
            nudge[place] = 1e-5
            up, down = ({**state, name: state[name] + sign * nudge.reshape(slope.shape)} for sign in (1, -1))
            assert slope.flat[place] == pytest.approx((loss(up) - loss(down)) / 2e-5, abs=1e-8), name


def test_what_does_not_fit_is_said_with_the_next_step(serve: Serve, tmp_path: pathlib.Path) -> None:
    nobody = run("http://127.0.0.1:9", "--steps", "1")
    assert nobody.returncode == 1 and nobody.stderr.count("\n") == 1
    assert "`rollyard serve --listen 127.0.0.1:9` starts one" in nobody.stderr

    url = serve().url
    checkpoint = tmp_path / "loop.npz"
    queue = run(url, "--run", "default")
    assert queue.returncode == 1 and "is in mode queue; give a new name with --run" in queue.stderr
    assert run(url, "--steps", "3", "--checkpoint", str(checkpoint)).returncode == 0
    for arguments, reason in [
        (["--run", "new", "--checkpoint", str(checkpoint)], "lease"),
        (["--checkpoint", str(tmp_path / "lost.npz")], "cannot rewind to step -1"),
        (["--checkpoint", __file__], "pickle"),
    ]:
        ended = run(url, "--steps", "3", *arguments)
        assert ended.returncode == 1 and ended.stderr.count("\n") == 1, ended.stderr
        assert "is not the checkpoint of run" in ended.stderr and reason in ended.stderr, ended.stderr
    with Client(url, run="grpo-loop") as client:
        assert client.books().trained == 3 * BATCH, "and nothing was undone"
