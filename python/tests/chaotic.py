"""A trainer that trains on whatever the yard gives it until it is killed. Run as a program, again and again.

`chaotic.py FOLDER` reads `training.json` there: the arguments of slime that differ from a small training, the
steps, and how long one takes. Its checkpoint is that of `resuming.py`.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

from resuming import load, save
from rollyard.slime import generate_rollout
from slimetrainer import DataBuffer, make_args, uids_of


def main(folder: pathlib.Path) -> None:
    training = json.loads((folder / "training.json").read_text())
    args = make_args(training["url"], folder, **training["args"])
    path = folder / "checkpoint.json"
    checkpoint = load(path)
    trained: list[list[str]] = checkpoint["trained"]
    buffer = DataBuffer(args.n_samples_per_prompt, checkpoint["metadata"])
    for step in range(len(trained), training["steps"]):
        trained.append(uids_of(generate_rollout(args, step, buffer)))
        time.sleep(training["step_secs"])
        if (step + 1) % args.save_interval == 0 or step + 1 == training["steps"]:
            save(path, {"trained": trained, "metadata": buffer.get_metadata()})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
