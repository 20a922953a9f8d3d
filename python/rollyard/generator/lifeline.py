"""Ends a process when its parent is gone, whatever the parent died of.

The kernel sends a signal when the *thread* that made a process ends. A worker is made by the thread that
waits for it, so for a worker that is death. The server may have made its child in a thread that ends before
it: there the signal only makes the child look whether its parent is still the same.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_thread(parent: int) -> None:
    """Kills this process as soon as the thread that made it ends; `parent` is its process."""
    _arm(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def die_with_parent() -> None:
    """Ends this process when the process that made it has ended. For the main thread."""
    parent = os.getppid()

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    if sys.platform == "linux":
        # One that nobody else uses, and that needs no handler in programs started from here.
        number = signal.SIGRTMAX - 1
        signal.signal(number, look)
        _arm(number)
    look()


def _arm(number: int) -> None:
    if sys.platform != "linux":
        return
    # Missing in a libc that is none: the pipe to the parent still ends an idle worker.
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
