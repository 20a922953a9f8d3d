"""A line to a server that breaks: a proxy that passes on so many bytes of an answer, and then hangs up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from serving import Server


class Line:
    """Each connection takes the next of `breaks`: the bytes that come back before it breaks. Others hold."""

    def __init__(self, server: Server, breaks: list[int], on_break: Callable[[], None]) -> None:
        self._server = server
        self._breaks = breaks
        self._on_break = on_break
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self.connections += 1
                left = self._breaks.pop(0) if self._breaks else None
                threading.Thread(target=self._carry, args=(near, left), daemon=True).start()

    def _carry(self, near: socket.socket, left: int | None) -> None:
        host, port = self._server.url.removeprefix("http://").split(":")
        try:
            far = socket.create_connection((host, int(port)))
        except OSError:
            near.close()
            return
        threading.Thread(target=_copy, args=(near, far), daemon=True).start()
        with suppress(OSError):
            while data := far.recv(65536):
                if left is None:
                    near.sendall(data)
                    continue
                near.sendall(data[:left])
                left -= len(data)
                if left <= 0:
                    break
        if left is not None:
            self._on_break()
        for end in (near, far):
            # Shut down first: a socket that another thread reads from is not let go by closing it.
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def line(server: Server, *breaks: int, on_break: Callable[[], None] = lambda: None) -> Iterator[Line]:
    """The first connections break after so many bytes, the others hold."""
    broken = Line(server, list(breaks), on_break)
    yield broken
    broken.close()
