"""A real S3 server for tests: SeaweedFS, which checks signatures."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

READY_WITHIN_SECS = 60.0
PORTS = (
    "s3.port",
    "filer.port",
    "filer.port.grpc",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
)


@dataclasses.dataclass(frozen=True)
class S3Server:
    endpoint: str
    access_key: str
    secret_key: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client has to have in its environment."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }


@contextlib.contextmanager
def serve_s3(folder: pathlib.Path, *, buckets: tuple[str, ...] = ("yard",)) -> Iterator[S3Server]:
    """A server with these buckets that keeps its files in the folder and ends with the block."""
    access_key, secret_key = "yard", "yard-secret"
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    config = folder / "s3.json"
    config.write_text(
        json.dumps({"identities": [{"name": "yard", "credentials": credentials, "actions": actions}]})
    )
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    command = [weed(), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-volume.max=200"]
    command += ["-master.volumeSizeLimitMB=64", "-master.telemetry=false"]
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", f"-dir={folder}", f"-s3.config={config}"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until_ready(process, filer_port=ports["filer.port"], s3_port=ports["s3.port"])
        for bucket in buckets:
            assert ask(ports["filer.port"], "POST", f"/buckets/{bucket}/") == 201, bucket
        yield S3Server(f"http://127.0.0.1:{ports['s3.port']}", access_key, secret_key)
    finally:
        process.kill()
        process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], *, filer_port: int, s3_port: int) -> None:
    """Until a file can be written, and S3 answers."""
    deadline = time.monotonic() + READY_WITHIN_SECS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"SeaweedFS ended with {process.returncode}"
        if ask(filer_port, "PUT", "/ready", b"ready") == 201 and ask(s3_port, "GET", "/") is not None:
            return
        time.sleep(0.05)
    raise TimeoutError(f"SeaweedFS was not ready after {READY_WITHIN_SECS} seconds")


def ask(port: int, method: str, path: str, body: bytes = b"") -> int | None:
    """The status of the answer, if there is one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def free_ports(count: int) -> list[int]:
    """Held all at once, so that they differ."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def weed() -> str:
    """The one that is installed beside this Python, unless another is named."""
    return os.environ.get("ROLLYARD_WEED", str(pathlib.Path(sys.executable).parent / "weed"))
