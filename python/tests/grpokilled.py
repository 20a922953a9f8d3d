"""Runs examples/grpo_loop.py and kills it at a place of its second step. Run as a program.

Places are the last words of the server's calls, when their answer has come, and `saved`: the checkpoint is
there and its commit is not. What each step was drawn is written to a journal first.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import signal
import sys
from typing import Any

from rollyard import Client
from rollyard.client.flow import Answer, Outcome, Send, Step
from rollyard.client.results import Sample
from serving import ROOT


def watch(journal: pathlib.Path, place: str) -> None:
    samples = 0

    def at(where: str) -> None:
        # The first step of a process is left alone, so that each gets further than the one before.
        if where == place and (samples > 1 or place == "rewind"):
            os.kill(os.getpid(), signal.SIGKILL)

    take, draw, replace = Client._take, Client.sample, pathlib.Path.replace

    def watched_take(client: Client, step: Step) -> Outcome:
        outcome = take(client, step)
        if isinstance(step, Send) and isinstance(outcome, Answer):
            at(step.request.path.rpartition("/")[2])
        return outcome

    def watched_draw(client: Client, step: int, rollouts: int, **terms: Any) -> Sample | None:
        nonlocal samples
        samples += 1
        drawn = draw(client, step, rollouts, **terms)
        if drawn is not None:
            with journal.open("a") as file:
                uids = [rollout["uid"] for rollout in drawn.rollouts]
                file.write(json.dumps({"step": step, "uids": uids}) + "\n")
        return drawn

    def watched_replace(path: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        replaced = replace(path, target)
        at("saved")
        return replaced

    Client._take = watched_take  # type: ignore[method-assign,assignment]
    Client.sample = watched_draw  # type: ignore[method-assign,assignment]
    pathlib.Path.replace = watched_replace  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    _, written, fatal, *arguments = sys.argv
    watch(pathlib.Path(written), fatal)
    sys.argv[1:] = arguments
    runpy.run_path(str(ROOT / "examples/grpo_loop.py"), run_name="__main__")
