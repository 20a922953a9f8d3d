"""Looking at a run of many gigabytes: index, filter, search and open, beside DuckDB and grep.

The contestants take turns on the same file, which is in the page cache for all of them. DuckDB converts the
file to Parquet, which is its way to be asked again, and is asked there; it has as many threads as there are
cores. The server is the release build, asked over HTTP as the viewer asks it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

REPOSITORY = Path(__file__).parents[2]
RELEASE = REPOSITORY / "target" / "release"
NEEDLE = "zephyr-quartz-7"


def main() -> None:
    arguments = parse()
    folder = Path(tempfile.mkdtemp(prefix="catalog-", dir=arguments.dir))
    try:
        for rows in arguments.rows:
            measure(folder, rows, arguments.row_bytes, arguments.rounds)
    finally:
        shutil.rmtree(folder)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--row-bytes", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default=str(REPOSITORY / "target"), help="where there is room")
    return parser.parse_args()


def measure(folder: Path, rows: int, row_bytes: int, rounds: int) -> None:
    file, parquet = folder / "run.jsonl", folder / "run.parquet"
    make = [RELEASE / "rollyard-bench", "runs", "--rows", rows, "--row-bytes", row_bytes, "--out", file]
    subprocess.run([str(part) for part in make], check=True)
    size_mb = file.stat().st_size / 1e6
    print(f"\n## {rows:,} rows, {size_mb / 1000:.2f} GB\n")
    read_all(file)
    table = Table()
    index(table, folder, file, parquet, size_mb, rounds)
    search(table, folder, file, parquet, size_mb, rounds)
    served(table, folder, file, parquet, rows)
    table.show()
    file.unlink()
    parquet.unlink()


class Table:
    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str, str]] = []

    def add(self, what: str, ours: str, other: str = "", *, bar: str = "", met: bool | None = None) -> None:
        self.rows.append((what, ours, other, bar, {None: "", True: "met", False: "**missed**"}[met]))

    def show(self) -> None:
        print("| | Rollyard | beside it | bar | |\n|---|---|---|---|---|")
        for row in self.rows:
            print(f"| {' | '.join(row)} |")


def index(table: Table, folder: Path, file: Path, parquet: Path, size_mb: float, rounds: int) -> None:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        shutil.rmtree(folder / "cache", ignore_errors=True)
        ours.append(timed(lambda: query(folder, "select count(*) from rollouts", file)))
        parquet.unlink(missing_ok=True)
        theirs.append(timed(lambda: convert(file, parquet)))
    warm = min(timed(lambda: query(folder, "select count(*) from rollouts", file)) for _ in range(3))
    speed, ratio = size_mb / min(ours), min(theirs) / min(ours)
    told = f"{min(ours):.2f} s, {speed:.0f} MB/s"
    table.add("cold index", told, bar="≥ 400 MB/s", met=speed >= 400)
    beside = f"DuckDB to Parquet {min(theirs):.2f} s: {ratio:.2f} ×"
    table.add("cold index beside DuckDB", told, beside, bar="≥ 1 ×", met=ratio >= 1)
    table.add("warm open and count, as a command", f"{warm * 1000:.0f} ms", bar="< 1 s", met=warm < 1)


def search(table: Table, folder: Path, file: Path, parquet: Path, size_mb: float, rounds: int) -> None:
    ours, theirs, floor = [], [], []
    connection = duckdb.connect()
    connection.execute(f"set threads = {os.cpu_count()}")
    scan = f"select count(*) from '{parquet}' where contains(messages::varchar, '{NEEDLE}')"
    grep = ["grep", "-c", "-F", NEEDLE, str(file)]
    for _ in range(rounds):
        ours.append(timed(lambda: run(folder, "grep", "--count", "-F", NEEDLE, str(file))))
        theirs.append(timed(lambda: connection.execute(scan).fetchall()))
        floor.append(timed(lambda: subprocess.run(grep, check=True, capture_output=True)))
    speed, ratio = size_mb / min(ours), min(theirs) / min(ours)
    told = f"{min(ours):.2f} s, {speed / 1000:.2f} GB/s"
    table.add("substring over all bodies", told, bar="≥ 1 GB/s", met=speed >= 1000)
    beside = f"DuckDB {min(theirs):.2f} s: {ratio:.1f} ×"
    table.add("substring beside DuckDB", told, beside, bar="≥ 1.5 ×", met=ratio >= 1.5)
    grep_told = f"grep -F {min(floor):.2f} s, {size_mb / min(floor) / 1000:.2f} GB/s"
    table.add("substring beside grep, the floor", told, grep_told)


def served(table: Table, folder: Path, file: Path, parquet: Path, rows: int) -> None:
    shutil.rmtree(folder / "cache", ignore_errors=True)
    with server(folder) as (site, process):
        begun = time.monotonic()
        view = site.post("/api/view/open", {"places": [str(file)]})["view"]
        first = wait(lambda: site.get(f"/api/view/{view}/rows?limit=50")["total"] > 0)
        table.add("first rows after opening", f"{first * 1000:.0f} ms", bar="< 1 s", met=first < 1)
        wait(lambda: site.get(f"/api/view/{view}")["indexing"]["done"], deadline=600)
        table.add("all rows after opening", f"{time.monotonic() - begun:.1f} s")
        filters(table, site, view, parquet, rows)
        bodies(table, site, view, rows)
        hits = timed(lambda: site.read(f"/api/view/{view}/search?text={NEEDLE}"))
        table.add("search over HTTP, to its end", f"{hits:.2f} s")
        lag = tail(site, view, file)
        table.add("tail lag", f"{lag * 1000:.0f} ms", bar="< 2 s", met=lag < 2)
        anonymous, peak = memory(process.pid)
        told = f"{anonymous:.0f} MB (peak {peak:.0f} MB with mapped files)"
        table.add("server memory", told, bar="< 1 GB", met=peak < 1000)
    with server(folder) as (site, _):
        warm = timed(lambda: warm_open(site, file))
        table.add("warm open over HTTP", f"{warm * 1000:.0f} ms", bar="< 1 s", met=warm < 1)


def warm_open(site: Site, file: Path) -> None:
    view = site.post("/api/view/open", {"places": [str(file)]})["view"]
    wait(lambda: site.get(f"/api/view/{view}/rows?limit=50")["total"] > 0)
    wait(lambda: site.get(f"/api/view/{view}")["indexing"]["done"])


def filters(table: Table, site: Site, view: str, parquet: Path, rows: int) -> None:
    chance = random.Random(7)
    asked = [filter_of(chance) for _ in range(60)]
    sorts = ["-reward", "step", "-response_chars", "reward,-step", "-time", ""]
    # The first question loads the columns it needs; a page does that once, when it is opened.
    ours: list[float] = []
    totals: list[int] = []
    for n, (text, _) in enumerate(asked):
        path = (
            f"/api/view/{view}/rows?limit=100&filter={urllib.parse.quote(text)}&sort={sorts[n % len(sorts)]}"
        )
        begun = time.monotonic()
        total = site.get(path)["total"]
        ours.append(time.monotonic() - begun)
        begun = time.monotonic()
        site.get(f"{path}&offset={max(0, total - 100)}")
        ours.append(time.monotonic() - begun)
        totals.append(total)
    p95, worst = percentile(ours, 95), max(ours)
    told = f"{p95 * 1000:.0f} ms at p95, worst {worst * 1000:.0f} ms"
    table.add("filter, sort, page over HTTP", told, bar="< 100 ms", met=p95 < 0.1)
    connection = duckdb.connect()
    connection.execute(f"set threads = {os.cpu_count()}")
    count = "select count(*) from '{}' where {}"
    quick: list[float] = []
    theirs: list[float] = []
    for n, (text, sql) in enumerate(asked):
        # Another filter each time, so that nobody answers from memory of the last.
        another = urllib.parse.quote(f"({text}) AND sample_index > -{n + 2}")
        path = f"/api/view/{view}/rows?limit=1&filter={another}"
        quick.append(timed(lambda path=path: site.get(path)))
        begun = time.monotonic()
        [(found,)] = connection.execute(count.format(parquet, sql)).fetchall()
        theirs.append(time.monotonic() - begun)
        if found != totals[n]:
            sys.exit(f"{text}: {totals[n]} rows, but DuckDB finds {found}")
    ratio = statistics.median(quick) / statistics.median(theirs)
    told = f"{statistics.median(quick) * 1000:.1f} ms over HTTP"
    beside = f"DuckDB {statistics.median(theirs) * 1000:.1f} ms in process: {ratio:.2f} of it"
    table.add("filter and count, median", told, beside, bar="≤ 2 ×", met=ratio <= 2)


def filter_of(chance: random.Random) -> tuple[str, str]:
    """A filter in our language, and what it is in SQL over DuckDB's Parquet."""
    step, reward = chance.randrange(1, 100), round(chance.random(), 3)
    word = chance.choice(["math", "code", "maze", "chat"])
    return chance.choice(
        [
            (
                f'reward > {reward} AND data_source contains "{word}"',
                f"attributes.reward > {reward} and contains(attributes.data_source, '{word}')",
            ),
            (
                f"step <= {step} AND NOT reward < {reward}",
                f"attributes.step <= {step} and not attributes.reward < {reward}",
            ),
            (
                f"(step == {step} OR step == {step + 1}) AND reward != 1",
                f"attributes.step in ({step}, {step + 1}) and attributes.reward != 1",
            ),
            (
                f'data_source startswith "{word}" OR rollout_n < {step * 100}',
                f"starts_with(attributes.data_source, '{word}') or attributes.rollout_n < {step * 100}",
            ),
        ]
    )


def bodies(table: Table, site: Site, view: str, rows: int) -> None:
    chance = random.Random(3)
    took: list[float] = []
    for _ in range(200):
        page = site.get(f"/api/view/{view}/rows?limit=1&columns=id&offset={chance.randrange(rows)}")
        id = page["rows"][0]["id"]
        took.append(timed(lambda id=id: site.get(f"/api/view/{view}/rollouts/{id}")))
    p95 = percentile(took, 95)
    table.add("open one rollout", f"{p95 * 1000:.1f} ms at p95", bar="< 50 ms", met=p95 < 0.05)


def tail(site: Site, view: str, file: Path) -> float:
    """Seconds until a line that is appended reaches somebody who follows."""
    line = file.open("rb").readline()
    row = json.loads(line)
    row["attributes"]["rollout_n"] = 999_999_999
    events = site.events(f"/api/view/{view}/tail")
    wait(lambda: True)
    time.sleep(1.0)
    begun = time.monotonic()
    with file.open("ab") as out:
        out.write(json.dumps(row).encode() + b"\n")
    for event in events:
        if "999999999" in event:
            return time.monotonic() - begun
    sys.exit("the tail ended without the new rollout")


class Site:
    """A server, as scripts speak to it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._connection = http.client.HTTPConnection(address)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"content-type": "application/json"} if body else {}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 400:
            sys.exit(f"{method} {path}: {answer.status} {data.decode()}")
        return data

    def get(self, path: str) -> Any:
        return json.loads(self._ask("GET", path))

    def read(self, path: str) -> bytes:
        return self._ask("GET", path)

    def post(self, path: str, value: Any) -> Any:
        return json.loads(self._ask("POST", path, json.dumps(value).encode()))

    def events(self, path: str) -> Iterator[str]:
        connection = http.client.HTTPConnection(self.address)
        connection.request("GET", path)
        answer = connection.getresponse()
        return (line.decode() for line in iter(answer.readline, b""))


@contextmanager
def server(folder: Path) -> Iterator[tuple[Site, subprocess.Popen[str]]]:
    serve = [
        RELEASE / "rollyard",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        folder / "data",
        "--root",
        folder,
    ]
    process = subprocess.Popen(
        [str(part) for part in serve], stdout=subprocess.PIPE, text=True, env=surroundings(folder)
    )
    assert process.stdout
    try:
        yield Site(process.stdout.readline().split("//")[1].strip()), process
    finally:
        process.terminate()
        process.wait()


def surroundings(folder: Path) -> dict[str, str]:
    return os.environ | {"ROLLYARD_CACHE": str(folder / "cache")}


def run(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [RELEASE / "rollyard", *arguments], env=surroundings(folder), capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"rollyard {' '.join(arguments)}: {done.stderr}")


def query(folder: Path, sql: str, file: Path) -> None:
    run(folder, "query", sql, str(file))


def convert(file: Path, parquet: Path) -> None:
    connection = duckdb.connect()
    connection.execute(f"set threads = {os.cpu_count()}")
    rows = f"read_json('{file}', format = 'newline_delimited', maximum_object_size = 100000000)"
    connection.execute(f"copy (select * from {rows}) to '{parquet}' (format parquet)")


def read_all(file: Path) -> None:
    with file.open("rb", buffering=0) as data:
        while data.read(1 << 24):
            pass


def memory(process: int) -> tuple[float, float]:
    """Megabytes now of the process alone, and at its peak with the files it has mapped."""
    status = Path(f"/proc/{process}/status").read_text()
    figures = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(("Rss", "VmH"))
    }
    return int(figures["RssAnon"]) / 1000, int(figures["VmHWM"]) / 1000


def timed(work: Callable[[], Any]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def wait(is_so: Callable[[], bool], *, deadline: float = 60) -> float:
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > deadline:
            sys.exit("the server did not come to an end")
        time.sleep(0.005)
    return time.monotonic() - begun


def percentile(values: list[float], share: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


if __name__ == "__main__":
    main()
