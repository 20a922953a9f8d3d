"""A real server process on a free port, with a data folder of its own: for every suite that needs one."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BINARY = pathlib.Path(os.environ.get("ROLLYARD_BINARY", TARGET / "debug" / "rollyard"))


class Server:
    """`rollyard serve` as a user starts it."""

    def __init__(self, data: pathlib.Path, *flags: str, binary: pathlib.Path = BINARY) -> None:
        self._binary = binary
        self._data = data
        self._flags = flags
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        # At the same address as before, as after a real restart.
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        command = [str(self._binary), *self._command(), "--listen", listen, *self._flags]
        # Its own folder as working directory: no settings file of this repository is picked up.
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self._data.parent)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("listening on "):
                self.url = line.split()[-1]
                return
        raise RuntimeError(f"the server did not start: exit code {self._process.wait()}")

    def _command(self) -> list[str]:
        return ["serve", "--data", str(self._data)]

    def kill(self) -> None:
        """kill -9, as the machine would."""
        self._stop(signal.SIGKILL)

    def stop(self) -> None:
        self._stop(signal.SIGTERM)

    def _stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


class TinyServer(Server):
    """`rollyard tiny serve`, in a folder of its own."""

    def _command(self) -> list[str]:
        return ["tiny", "serve"]


Serve: TypeAlias = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: pathlib.Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(*flags: str) -> Server:
        server = Server(tmp_path / f"yard{len(servers)}", *flags)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def tiny(tmp_path: pathlib.Path) -> Iterator[Serve]:
    """Starts `rollyard tiny serve` with these flags, in the test's folder."""
    servers: list[Server] = []

    def start(*flags: str) -> Server:
        servers.append(TinyServer(tmp_path / "unused", *flags))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
