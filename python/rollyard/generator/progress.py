"""How far a generator is: a line on standard error, and words that are not said too often."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

LINE_SECS = 10.0
SAY_SECS = 60.0


class Progress:
    """Counts of one run over the data set, and the line that shows them."""

    def __init__(self, total: int, *, secs_between_lines: float = LINE_SECS) -> None:
        self.total = total
        # There before this process began.
        self.known = 0
        self.written = 0
        # Of the written, those with the reward of failure.
        self.failed = 0
        self.refused = 0
        self._terminal = sys.stderr.isatty()
        self._secs_between = 0.2 if self._terminal else secs_between_lines
        self._began = time.monotonic()
        self._shown_at = self._began
        self._said_at: dict[str, float] = {}
        self._bar = _bar(total) if self._terminal else None

    def say(self, text: str, *, topic: str | None = None) -> None:
        """A line for the user; the same topic, or the same text, at most once a minute."""
        now = time.monotonic()
        if now - self._said_at.get(topic or text, now - SAY_SECS) < SAY_SECS:
            return
        self._said_at[topic or text] = now
        if self._bar is not None:
            self._bar.clear()
        self._print(text)

    def show(self, *, last: bool = False) -> None:
        """Brings the line up to date, if it is time to."""
        now = time.monotonic()
        if now - self._shown_at < self._secs_between and not last:
            return
        self._shown_at = now
        if self._bar is not None:
            self._bar.n = self.known + self.written
            self._bar.set_postfix_str(f"{self.failed} failed", refresh=True)
            if last:
                self._bar.close()
        elif self._terminal:
            sys.stderr.write(f"\r\x1b[K{self.line()}" + ("\n" if last else ""))
            sys.stderr.flush()
        else:
            self._print(self.line())

    def line(self) -> str:
        secs = time.monotonic() - self._began
        rate = self.written / secs if secs > 0 else 0.0
        left = self.total - self.known - self.written - self.refused
        eta = f", {_duration(left / rate)} to go" if left > 0 and rate > 0 else ""
        before = f" ({self.known} before)" if self.known else ""
        refused = f", {self.refused} refused" if self.refused else ""
        done = self.known + self.written
        return f"{done} of {self.total} written{before}, {self.failed} failed{refused}, {rate:.1f}/s{eta}"

    def _print(self, text: str) -> None:
        start = "\r\x1b[K" if self._terminal else ""
        sys.stderr.write(f"{start}{text}\n")
        sys.stderr.flush()


def _bar(total: int) -> Any:
    """A bar of `tqdm` where that is installed."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return None
    # No thread to watch it: workers are forked from here.
    kind = type("Bar", (tqdm,), {"monitor_interval": 0})
    return kind(total=total, unit=" rollouts", file=sys.stderr)


def _duration(secs: float) -> str:
    minutes, seconds = divmod(round(secs), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
