"""A TCP proxy that loses answers: the server has done what was asked, and nobody is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes on. While `cuts` is above 0, the next answer is thrown away and its connection reset."""

    def __init__(self, server_url: str) -> None:
        where = urlsplit(server_url)
        assert where.hostname is not None and where.port is not None
        self._server = (where.hostname, where.port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}"
        self._lock = threading.Lock()
        self._cuts = 0
        self.cuts_made = 0
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def cut(self, times: int) -> None:
        with self._lock:
            self._cuts = times

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                self._start(self._ask, client, server)
                self._start(self._answer, client, server)

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if self._take_cut():
                    break
                client.sendall(data)
            # To both at once: the client must not get a byte, and the server sees its reader gone.
            for end in (client, server):
                end.shutdown(socket.SHUT_RDWR)

    def _take_cut(self) -> bool:
        with self._lock:
            if self._cuts == 0:
                return False
            self._cuts -= 1
            self.cuts_made += 1
            return True

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(timeout=10)


@contextmanager
def flaky(server_url: str) -> Iterator[Proxy]:
    proxy = Proxy(server_url)
    try:
        yield proxy
    finally:
        proxy.close()
