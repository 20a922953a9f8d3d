"""What a generator says while it works."""

from __future__ import annotations

import io
import sys

import pytest

from rollyard.generator.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def counted(total: int = 100) -> Progress:
    shown = Progress(total)
    shown.known, shown.written, shown.failed = 20, 30, 4
    return shown


def test_a_line_has_the_counts_and_the_time_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("rollyard.generator.progress.time.monotonic", lambda: now)
    shown = counted()
    now += 10
    assert shown.line() == "50 of 100 written (20 before), 4 failed, 3.0/s, 0:00:17 to go"
    shown.refused, shown.known, shown.written = 2, 0, 98
    assert shown.line() == "98 of 100 written, 4 failed, 2 refused, 9.8/s"


def test_a_line_comes_every_ten_seconds_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr("rollyard.generator.progress.time.monotonic", lambda: now)
    shown = counted()
    for _ in range(25):
        shown.show()
        now += 1
    shown.show(last=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("50 of 100 written") for line in lines)


def test_the_same_is_said_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 1000.0
    monkeypatch.setattr("rollyard.generator.progress.time.monotonic", lambda: now)
    shown = Progress(1)
    for second in range(61):
        shown.say("the engine is gone")
        shown.say(f"the rollout {second} failed", topic="failed")
        now += 1
    told = ["the engine is gone", "the rollout 0 failed", "the engine is gone", "the rollout 60 failed"]
    assert capsys.readouterr().err.splitlines() == told


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_a_terminal_has_one_line_that_is_rewritten(monkeypatch: pytest.MonkeyPatch, has_tqdm: bool) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    if not has_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = counted()
    shown.say("something is up")
    shown.show(last=True)
    told = terminal.getvalue()
    assert "something is up\n" in told and "4 failed" in told
    assert ("50/100" if has_tqdm else "50 of 100 written") in told.splitlines()[-1]
