"""The commands of the guide for users of slime, from nothing to a running task, in a shell."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess

from serving import BINARY, ROOT
from testengine import StartEngine


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_the_commands_of_the_guide_lead_to_a_running_math_task(
    start_engine: StartEngine, tmp_path: pathlib.Path
) -> None:
    engine = start_engine("--dialect", "openai", "--answer", r"It is \boxed{4}.")
    section = (ROOT / "docs/guide/slime.md").read_text().split("## The calls")[0]
    blocks = [block.split("```")[0] for block in section.split("```bash\n")[1:]]
    assert len(blocks) == 4
    url = f"127.0.0.1:{free_port()}"
    # A reader at a prompt waits for the server by being slow, and for the rollouts by looking again.
    waits = {1: f"until curl -s {url}/healthz > up; do sleep 0.05; done", 2: "sleep 2"}
    lines = ["set -e", "trap 'kill %1; wait' EXIT"]
    for n, block in enumerate(blocks):
        lines += [block.replace("127.0.0.1:8889", url).replace("localhost:8889", url), waits.get(n, "")]
    # `rollyard stats` finds the server by its setting.
    surroundings = os.environ | {
        "ENGINE": engine.url,
        "PATH": f"{BINARY.parent}:{os.environ['PATH']}",
        "ROLLYARD_URL": f"http://{url}",
    }
    lines.append(f"curl -s {url}/api/runs/default > run.json")
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["generator"]["state"] == "finished", run
    assert (run["books"]["admitted"], run["ready_groups"]) == (2 * 8 * 3, 6), run
    assert '"message":"Rollout started"' in done.stdout and "generator finished" in done.stdout, done.stdout
