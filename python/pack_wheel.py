"""One wheel with all of Rollyard: the Python module, the command `rollyard`, and the page inside the command.

It is packed from what cargo built: maturin packs one crate, and the module and the command are two.
It would also compile Arrow, Parquet and SQLite once more, with other features than the workspace has.
What the wheel says of itself comes from maturin all the same, as it does for `pip install ./python`.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
LIBRARY = "lib_rollyard.dylib" if sys.platform == "darwin" else "lib_rollyard.so"
# The earliest that a zip can say: the same files make the same wheel.
LONG_AGO = (1980, 1, 1, 0, 0, 0)


class PackingError(Exception):
    """The wheel cannot be made, and the message says what to do."""


def pack(built: pathlib.Path, *, page: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Makes the wheel from the folder that cargo built into, and says where it is."""
    command, module = built / "rollyard", built / LIBRARY
    for made in (command, module):
        if not made.is_file():
            raise PackingError(f"cargo has not built this yet; run `make wheel`: {made}")
    check_page(command, page)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        info = describe(scratch)
        name = info.name.removesuffix(".dist-info")
        about = {file.name: file.read_text(encoding="utf-8") for file in info.iterdir()}
        [tag] = [line.split()[1] for line in about["WHEEL"].splitlines() if line.startswith("Tag:")]
        head, text = about["METADATA"].split("\n\n", 1)
        files = {f"rollyard/{path}": content for path, content in package().items()}
        files["rollyard/_rollyard.abi3.so"] = stripped(module, scratch)
        script = f"{name}.data/scripts/rollyard"
        files[script] = stripped(command, scratch)
        # maturin takes no licence from above the package.
        files[f"{info.name}/METADATA"] = f"{head}\nLicense-File: LICENSE\n\n{text}".encode()
        files[f"{info.name}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
        files[f"{info.name}/WHEEL"] = about["WHEEL"].encode()
        out.mkdir(parents=True, exist_ok=True)
        wheel = out / f"{name}-{tag}.whl"
        # Under its name only when it is whole.
        write(scratch / wheel.name, files, record=f"{info.name}/RECORD", programs={script})
        shutil.move(scratch / wheel.name, wheel)
    return wheel


def check_page(command: pathlib.Path, page: pathlib.Path) -> None:
    """The command serves what was compiled into it: that must be the page as it is now."""
    index = page / "index.html"
    if not index.is_file():
        raise PackingError(f"the page is not built; install Node 20+ and run `make wheel`: {index}")
    if index.read_bytes() not in command.read_bytes():
        raise PackingError(f"the command was built without this page; run `make wheel` for both: {command}")


def describe(scratch: pathlib.Path) -> pathlib.Path:
    """The folder `rollyard-<version>.dist-info` with METADATA and WHEEL, as maturin writes them."""
    maturin = pathlib.Path(sys.executable).with_name("maturin")
    if not maturin.is_file():
        raise PackingError(f"maturin is missing; run `make wheel`, which installs it: {maturin}")
    # The system's C library is what it was built with: the plain tag promises no other.
    told = ["--compatibility", "linux", "--interpreter", sys.executable, "--metadata-directory", str(scratch)]
    done = subprocess.run(
        [maturin, "pep517", "write-dist-info", "--locked", *told], cwd=HERE, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise PackingError(f"maturin cannot describe the package:\n{done.stderr.strip()}")
    [info] = scratch.glob("*.dist-info")
    return info


def package() -> dict[str, bytes]:
    """The Python files of the package with their stubs. Its tests lie elsewhere."""
    folder = HERE / "rollyard"
    kinds = ("*.py", "*.pyi", "py.typed")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for kind in kinds
        for path in folder.rglob(kind)
    }


def stripped(path: pathlib.Path, scratch: pathlib.Path) -> bytes:
    """What cargo built without its line tables, which are most of it. Backtraces still name functions."""
    if shutil.which("strip") is None:
        return path.read_bytes()
    smaller = scratch / "stripped"
    subprocess.run(["strip", "-S", "-o", str(smaller), str(path)], check=True)
    return smaller.read_bytes()


def write(wheel: pathlib.Path, files: dict[str, bytes], *, record: str, programs: set[str]) -> None:
    listed = io.StringIO()
    rows = csv.writer(listed, lineterminator="\n")
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(content)])
    # The list cannot have its own hash.
    rows.writerow([record, "", ""])
    # Readers expect it at the end.
    ordered = [*sorted(files.items()), (record, listed.getvalue().encode())]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in ordered:
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(entry, content)


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs the module, the command and the page into one wheel.")
    parser.add_argument("built", type=pathlib.Path, help="the folder that cargo built into: target/release")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "web/dist", help="the built page")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "dist", help="where the wheel goes")
    given = parser.parse_args()
    try:
        wheel = pack(given.built, page=given.page, out=given.out)
    except PackingError as problem:
        sys.exit(f"error: {problem}")
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
