"""The one wheel, packed from the debug build and installed where nothing else is."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator

import pytest

from serving import ROOT, TARGET, Server

PACK = ROOT / "python/pack_wheel.py"
PAGE = ROOT / "web/dist"


def run(*command: object, cwd: pathlib.Path, fails: bool = False) -> str:
    """What a command prints that knows nothing of this repository."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    told = list(map(str, command))
    done = subprocess.run(told, cwd=cwd, env=surroundings, capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def pack(built: pathlib.Path, out: pathlib.Path, *, page: pathlib.Path = PAGE, fails: bool = False) -> str:
    return run(sys.executable, PACK, built, "--page", page, "--out", out, cwd=out.parent, fails=fails)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    out = tmp_path_factory.mktemp("packed") / "dist"
    told = pack(TARGET.absolute() / "debug", out)
    [wheel] = out.iterdir()
    assert re.fullmatch(rf"{re.escape(str(wheel))} \(\d+\.\d MB\)\n", told)
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The `bin` of a virtualenv that has the wheel, what it asks for, and nothing else."""
    room = tmp_path_factory.mktemp("room")
    run(sys.executable, "-m", "venv", room / "venv", cwd=room)
    binaries = room / "venv/bin"
    pinned = ROOT / "python/tests/requirements.txt"
    run(binaries / "python", "-m", "pip", "install", "--quiet", "--constraint", pinned, wheel, cwd=room)
    return binaries


@pytest.fixture
def server(installed: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Server]:
    server = Server(tmp_path / "yard", "--group-size", "2", binary=installed / "rollyard")
    yield server
    server.stop()


def ask(server: Server, path: str) -> bytes:
    question = urllib.request.Request(server.url + path, headers={"accept": "text/html"})
    with urllib.request.urlopen(question, timeout=30) as answer:
        content: bytes = answer.read()
    return content


def test_the_wheel_has_types_and_no_tests(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")]
    [version] = re.findall(r"^Version: (.*)$", metadata, re.MULTILINE)
    package = ROOT / "python/rollyard"
    sources = {f"rollyard/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")}
    info = f"rollyard-{version}.dist-info"
    others = {"rollyard/_rollyard.abi3.so", "rollyard/_rollyard.pyi", "rollyard/py.typed"}
    about = {f"{info}/METADATA", f"{info}/RECORD", f"{info}/WHEEL", f"{info}/licenses/LICENSE"}
    assert set(names) == sources | others | about | {f"rollyard-{version}.data/scripts/rollyard"}
    assert not any("test" in name for name in names)
    assert wheel.name.startswith(f"rollyard-{version}-cp310-abi3-")
    assert "\nLicense-Expression: Apache-2.0\n" in metadata and "\nRequires-Dist: numpy>=1.24\n" in metadata


def test_a_wheel_says_nothing_of_when_it_was_made(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    *files, record = [entry.filename for entry in entries]
    assert files == sorted(files) and record.endswith("/RECORD")
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}


def test_module_and_command_are_of_one_version(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    say = "from importlib import metadata; import rollyard._rollyard as native"
    say += "; print(metadata.version('rollyard'), native.__file__)"
    version, native = run(installed / "python", "-I", "-c", say, cwd=tmp_path).split()
    assert run(installed / "rollyard", "--version", cwd=tmp_path) == f"rollyard {version}\n"
    assert pathlib.Path(native).is_relative_to(installed.parent)
    run(installed / "python", "-I", "-m", "pip", "check", cwd=tmp_path)


def test_the_installed_module_trains_from_the_installed_server(
    installed: pathlib.Path, server: Server, tmp_path: pathlib.Path
) -> None:
    loop = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    loop = loop.replace("http://127.0.0.1:8889", server.url)
    told = run(installed / "python", "-I", "-c", loop, cwd=tmp_path)
    assert told.startswith("2 [[ 0.  0. ") and "trained=8" in told


def test_the_installed_server_shows_the_page(server: Server) -> None:
    index = ask(server, "/")
    assert index == (PAGE / "index.html").read_bytes()
    names = re.findall(r'"/(assets/[^"]+)"', index.decode())
    assert names
    for name in names:
        assert ask(server, f"/{name}") == (PAGE / name).read_bytes()


# The folder that the page was built in still lies there, and a server that read it would look the same.
@pytest.mark.skipif(sys.platform == "darwin", reason="a program that was changed is not run there")
def test_the_page_comes_out_of_the_program(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    index = (PAGE / "index.html").read_bytes()
    marked = index.replace(b"<title>", b"<TITLE>")
    assert marked != index
    program = tmp_path / "rollyard"
    program.write_bytes((installed / "rollyard").read_bytes().replace(index, marked))
    program.chmod(0o755)
    server = Server(tmp_path / "yard", binary=program)
    try:
        assert ask(server, "/") == marked
    finally:
        server.stop()


def test_a_command_with_another_page_is_not_packed(tmp_path: pathlib.Path) -> None:
    page, built = tmp_path / "page", TARGET.absolute() / "debug"
    page.mkdir()
    told = pack(built, tmp_path / "dist", page=page, fails=True)
    assert told == f"error: the page is not built; install Node 20+ and run `make wheel`: {page}/index.html\n"
    (page / "index.html").write_text("<!doctype html><title>another</title>")
    told = pack(built, tmp_path / "dist", page=page, fails=True)
    assert told.startswith("error: the command was built without this page; run `make wheel` for both: ")
    told = pack(tmp_path, tmp_path / "dist", fails=True)
    assert told == f"error: cargo has not built this yet; run `make wheel`: {tmp_path}/rollyard\n"
    assert not (tmp_path / "dist").exists()
