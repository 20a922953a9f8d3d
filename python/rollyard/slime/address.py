"""Where a trainer's yard is, as slime's arguments have it."""

from __future__ import annotations

from typing import Any


def buffer_url(args: Any) -> str:
    """The URL in slime's arguments, under its newer or its older name."""
    for name in ("agent_rollout_buffer_url", "rollout_buffer_url"):
        url = getattr(args, name, None)
        if url:
            return str(url)
    raise ValueError("where the yard is was not said; give --rollout-buffer-url http://HOST:8889")
