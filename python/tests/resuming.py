"""A trainer that saves checkpoints and can be killed at any answer of the server. Run as a program.

A checkpoint is what slime's is: the step, the metadata of the data buffer, and the weights, which here are
the uids that each step was trained on. What was not saved is gone with the process.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
from typing import Any

from rollyard import AsyncClient
from rollyard.client.flow import Answer, Outcome, Send, Step
from rollyard.slime import generate_rollout
from slimetrainer import DataBuffer, make_args, uids_of

SAVE_INTERVAL = 2


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Assassin:
    """Kills the process at a place of a step: `lease`, `ack` and the like are answers of the server."""

    def __init__(self, place: str, step: int) -> None:
        self.place, self.fatal_step, self.step = place, step, -1

    def at(self, place: str) -> None:
        if place == self.place and self.step == self.fatal_step:
            die()

    def watch_answers(self) -> None:
        take = AsyncClient._take

        async def watched(client: AsyncClient, step: Step) -> Outcome:
            outcome = await take(client, step)
            if isinstance(step, Send) and isinstance(outcome, Answer):
                self.at(step.request.path.rpartition("/")[2])
            return outcome

        AsyncClient._take = watched  # type: ignore[method-assign,assignment]


class Watched(DataBuffer):
    def __init__(self, assassin: Assassin, metadata: dict[str, list[str]]) -> None:
        super().__init__(metadata=metadata)
        self._assassin = assassin

    def add_samples(self, samples: list[list[Any]]) -> None:
        self._assassin.at("before add_samples")
        super().add_samples(samples)
        self._assassin.at("after add_samples")

    def get_samples(self, num_samples: int) -> list[list[Any]]:
        taken = super().get_samples(num_samples)
        self._assassin.at("after get_samples")
        return taken


def load(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        return {"trained": [], "metadata": {}}
    told: dict[str, Any] = json.loads(path.read_text())
    return told


def save(path: pathlib.Path, checkpoint: dict[str, Any]) -> None:
    # Whole or not at all, as a trainer's checkpoint is.
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(checkpoint))
    beside.replace(path)


def main(url: str, folder: pathlib.Path, steps: int, assassin: Assassin) -> None:
    path = folder / "checkpoint.json"
    checkpoint = load(path)
    trained: list[list[str]] = checkpoint["trained"]
    buffer = Watched(assassin, checkpoint["metadata"])
    args = make_args(url, folder, save_interval=SAVE_INTERVAL)
    assassin.watch_answers()
    for step in range(len(trained), steps):
        assassin.step = step
        trained.append(uids_of(generate_rollout(args, step, buffer)))
        assassin.at("trained")
        if (step + 1) % SAVE_INTERVAL == 0 or step + 1 == steps:
            save(path, {"trained": trained, "metadata": buffer.get_metadata()})
            assassin.at("saved")


if __name__ == "__main__":
    where, home, count, place, fatal = sys.argv[1:]
    main(where, pathlib.Path(home), int(count), Assassin(place, int(fatal)))
