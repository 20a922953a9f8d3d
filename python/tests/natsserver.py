"""A real NATS server with JetStream, as the clients' requirements bring it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

READY_WITHIN_SECS = 30.0


@contextlib.contextmanager
def serve_nats(folder: pathlib.Path) -> Iterator[str]:
    """The address of a server that keeps its streams in the folder and ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binary = os.environ.get("ROLLYARD_NATS_SERVER", str(pathlib.Path(sys.executable).parent / "nats-server"))
    command = [binary, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + READY_WITHIN_SECS
        while not answers(port):
            assert process.poll() is None, f"nats-server ended with {process.returncode}"
            assert time.monotonic() < deadline, f"nats-server was not ready after {READY_WITHIN_SECS} seconds"
            time.sleep(0.05)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
