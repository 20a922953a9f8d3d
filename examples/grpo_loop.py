"""A GRPO loop of your own against a Rollyard server: all that a trainer does with it, in plain numpy.

    rollyard serve &
    python examples/grpo_loop.py http://127.0.0.1:8889

A small network learns sums, "2+3=" and then "05", from nothing but its reward. A thread samples with the
newest weights and writes groups, while the trainer draws a batch for each step. Stop it with Ctrl-C or kill
it: the same command goes on from the checkpoint, and no rollout is lost or trained on twice. With torch or
JAX, `sample` is your engine and `train_step` your backward pass and optimizer; the rest stays as it is.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollyard import Client, Rollout, RolloutBatch, RolloutGroup, RolloutMetadata, errors, training_batch

Array: TypeAlias = npt.NDArray[Any]
State: TypeAlias = dict[str, Array]  # What a checkpoint keeps: weights, Adam's moments, version, lease.

CHARACTERS = "0123456789+="  # A token id is a place in here.
PROMPTS = [f"{a}+{b}=" for a in range(6) for b in range(6)]
GROUPS, GROUP_SIZE, STALENESS_MAX = 12, 16, 2
BATCH = GROUPS * GROUP_SIZE
HIDDEN, LEARNING_RATE, CLIP, ENTROPY = 128, 0.015, 0.2, 0.25
SHAPES = {"w1": (60, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 12), "b2": (12,)}


def ids(text: str) -> list[int]:
    return [CHARACTERS.index(character) for character in text]


def contexts(tokens: Array) -> Array:
    """A row for each of the two tokens of every answer: the tokens before it, as ones among zeros."""
    seen = np.eye(len(CHARACTERS))[tokens[:, None, :5].repeat(2, axis=1)]
    seen[:, 0, 4] = 0
    return seen.reshape(2 * len(tokens), -1)


def forward(state: State, seen: Array) -> tuple[Array, Array]:
    """The hidden layer, and the log-prob of every token that could come next."""
    hidden = np.maximum(seen @ state["w1"] + state["b1"], 0)
    logits = hidden @ state["w2"] + state["b2"]
    return hidden, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def sample(state: State, prompt: str, chance: np.random.Generator) -> tuple[Array, Array]:
    """A group: the prompt with sampled answers as token ids, and the log-prob of each sampled token."""
    tokens, logprobs = np.array([ids(prompt + "00")] * GROUP_SIZE), np.zeros((GROUP_SIZE, 2))
    for place in range(2):
        told = forward(state, contexts(tokens))[1][place::2]
        tokens[:, 4 + place] = (told + chance.gumbel(size=told.shape)).argmax(axis=1)
        logprobs[:, place] = told[range(GROUP_SIZE), tokens[:, 4 + place]]
    return tokens, logprobs


def gradient(state: State, batch: State) -> State:
    """Of GRPO's clipped loss, with a bonus for entropy that keeps it exploring."""
    seen, taken = contexts(batch["input_ids"]), batch["input_ids"][:, 4:].reshape(-1, 1)
    advantages, sampled = (batch[name][:, 4:].reshape(-1, 1) for name in ("loss_weights", "policy_logprobs"))
    hidden, told = forward(state, seen)
    # Corrects for tokens of older weights: against the log-prob that each was really sampled with.
    ratio = np.exp(np.take_along_axis(told, taken, axis=1) - sampled)
    gains = np.where(advantages > 0, ratio < 1 + CLIP, ratio > 1 - CLIP) * ratio * advantages
    chances, is_taken = np.exp(told), np.arange(len(CHARACTERS)) == taken
    entropy = -(chances * told).sum(axis=1, keepdims=True)
    by_logit = (gains * (chances - is_taken) + ENTROPY * chances * (told + entropy)) / len(taken)
    by_hidden = by_logit @ state["w2"].T * (hidden > 0)
    by_first, by_second = seen.T @ by_hidden, hidden.T @ by_logit
    return {"w1": by_first, "b1": by_hidden.sum(axis=0), "w2": by_second, "b2": by_logit.sum(axis=0)}


def train_step(state: State, batch: State) -> State:
    """The state after a step of Adam. The old one stays as it is: the generator may be sampling with it."""
    new = state | {"version": state["version"] + 1}
    for name, slope in gradient(state, batch).items():
        mean = new[f"{name}.mean"] = 0.9 * state[f"{name}.mean"] + 0.1 * slope
        square = new[f"{name}.square"] = 0.99 * state[f"{name}.square"] + 0.01 * slope**2
        size = np.sqrt(square / (1 - 0.99 ** new["version"])) + 1e-8
        new[name] = state[name] - LEARNING_RATE * mean / (1 - 0.9 ** new["version"]) / size
    return new


def generate(client: Client, newest: Callable[[], State], stop: threading.Event, seed: int) -> None:
    """Writes groups sampled with the newest weights, for as long as less than a batch is waiting."""
    while not stop.is_set():
        books = client.books()
        if books.held >= BATCH:
            stop.wait(0.02)
            continue
        state, groups = newest(), []
        # Seeded by how many were ever written too: after a restart it makes other rollouts than before.
        chance = np.random.default_rng([seed, books.admitted])
        for prompt in chance.choice(PROMPTS, GROUPS, replace=False):
            right = ids(f"{int(prompt[0]) + int(prompt[2]):02}")
            members = []
            for row, logprobs in zip(*sample(state, prompt, chance), strict=True):
                reward = float(row[4:].tolist() == right)
                members.append(Rollout("sums", prompt, row[:4], row[4:], logprobs, episode_reward=reward))
            groups.append(RolloutGroup(members))
        about = RolloutMetadata("numpy", time.time(), int(state["version"]))
        client.add_batches([RolloutBatch(groups, about)]).raise_for_rejected()


def resume(client: Client, checkpoint: pathlib.Path, seed: int) -> State:
    """The state of the checkpoint, or the first one, and the run put back to where it stood then."""
    if not checkpoint.exists():
        client.rewind(-1)
        state = {name + part: np.zeros(SHAPES[name]) for name in SHAPES for part in ("", ".mean", ".square")}
        first = np.random.default_rng(seed).normal(0, 0.3, SHAPES["w1"])
        return state | {"w1": first, "version": np.array(0)}
    with np.load(checkpoint) as kept:
        state = dict(kept)
    version = int(state["version"])
    print(f"going on from step {version} of {checkpoint}", flush=True)
    # If it was killed between the checkpoint and its commit, this is the commit; if not, it changes nothing.
    client.set_step(version)
    client.commit(version, leases=[int(state["lease"])])
    client.rewind(version)
    return state


def train(client: Client, state: State, steps: int, checkpoint: pathlib.Path, seed: int) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        generator = threads.submit(generate, client, lambda: state, stop, seed)
        try:
            for step in range(int(state["version"]), steps):
                while (drawn := client.sample(step, BATCH, wait_secs=10)) is None:
                    if generator.done():
                        generator.result()  # Raises what ended it.
                rollouts = drawn.to_rollouts()
                batch = training_batch(rollouts, drawn.advantages, oldest_version=drawn.oldest_version)
                new = train_step(state, batch) | {"lease": np.array(drawn.lease)}
                client.ack(drawn)
                # What the checkpoint holds is learnt, and nothing else. It is there whole or not at all.
                beside = checkpoint.with_suffix(".new.npz")
                np.savez(beside, **new)  # type: ignore[arg-type]  # An array may be of any name.
                beside.replace(checkpoint)
                # The step first: the server takes no rollouts of weights that the trainer is not at.
                client.set_step(step + 1)
                client.commit(step + 1, leases=[drawn.lease])
                state = new  # From here on the generator samples with it.
                reward = np.mean([rollout.episode_reward for rollout in rollouts])
                stale = step - min(rollout.versions.min() for rollout in rollouts)
                print(f"step {step + 1}: reward {reward:.2f}, staleness {stale}", flush=True)
        finally:
            stop.set()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8889", help="address of `rollyard serve`")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=pathlib.Path, default="grpo_loop.npz")
    parser.add_argument("--run", default="grpo-loop")
    asked = parser.parse_args()
    knobs = {"advantage": "grpo", "replay_select": "oldest", "max_samples": 1, "group_timeout_seconds": 10}
    try:
        # Without retries, so that a server that is not there is missed at once.
        with Client(asked.url, run=asked.run, retries=0) as client:
            made = client.make_run(mode="replay", max_rollout_step_delay=STALENESS_MAX, **knobs)
        if made.config["mode"] != "replay":
            sys.exit(f"run {asked.run!r} is in mode {made.config['mode']}; give a new name with --run")
        with Client(asked.url, run=asked.run) as client:
            try:
                state = resume(client, asked.checkpoint, asked.seed)
            except (ValueError, LookupError) as error:
                wrong = f"{asked.checkpoint} is not the checkpoint of run {asked.run!r}"
                sys.exit(f"{wrong}; name the right one, or new ones with --checkpoint and --run: {error}")
            try:
                train(client, state, asked.steps, asked.checkpoint, asked.seed)
            except KeyboardInterrupt:
                print("stopped; the same command goes on from the checkpoint")
            books = client.books()
    except errors.RollyardError as error:
        sys.exit(f"{error}")
    print(f"{books.admitted} admitted = {books.held} held + {books.leased} leased", end=" + ")
    print(f"{books.trained} trained + {books.dropped} dropped")


if __name__ == "__main__":
    main()
