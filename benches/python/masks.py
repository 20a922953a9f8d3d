"""Loss masks of tool conversations: ours against the same work with `transformers`, in one process.

20 turns and about 9,000 tokens each, the conversation of an agent with six tools. Rounds alternate between
the two, and a round has conversations of its own, so that neither lives on what it saw before.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "python" / "tests"))

from oracle.models import ours, theirs  # noqa: E402
from oracle.reference import ReferenceMasks  # noqa: E402
from oracle.texts import CODE, PROSE  # noqa: E402

import rollyard  # noqa: E402

Messages = list[dict[str, Any]]

TURNS = 20
ENGLISH = PROSE[:2]
NOUNS = ["yard", "train", "rollout", "group", "lease", "batch", "step", "signal", "track", "wagon", "engine"]
VERBS = ["keeps", "moves", "counts", "returns", "drops", "reads", "writes", "checks", "waits", "sends"]


def sentence(rng: random.Random) -> str:
    words = [rng.choice(NOUNS if nth % 3 else VERBS) for nth in range(rng.randint(6, 14))]
    number = rng.randint(0, 99_999)
    return f"The {' '.join(words)}, about {number} of them; {rng.choice(ENGLISH)}"


def tool(nth: int) -> dict[str, Any]:
    names = NOUNS[nth : nth + 4]
    about = {name: {"type": "string", "description": f"The {name} it looks at."} for name in names}
    parameters = {"type": "object", "properties": about, "required": names[:2]}
    return {
        "type": "function",
        "function": {"name": f"tool_{nth}", "description": f"Does {VERBS[nth]}.", "parameters": parameters},
    }


TOOLS = [tool(nth) for nth in range(6)]


def conversation(rng: random.Random) -> Messages:
    messages: Messages = [{"role": role, "content": sentence(rng)} for role in ("system", "user")]
    for turn in range(TURNS):
        thought = " ".join(sentence(rng) for _ in range(4))
        if turn == TURNS - 1:
            messages.append({"role": "assistant", "content": thought})
            break
        arguments = {rng.choice(NOUNS): sentence(rng), "count": rng.randint(0, 999)}
        call = {"type": "function", "function": {"name": f"tool_{turn % 6}", "arguments": arguments}}
        messages.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        rows = [[rng.randint(0, 10**6), sentence(rng)] for _ in range(2)]
        result = {"rows": rows, "code": rng.choice(CODE)}
        messages.append({"role": "tool", "content": json.dumps(result)})
    return messages


def timed(work: Callable[[list[Messages]], Any], talks: list[Messages]) -> tuple[float, Any]:
    """Milliseconds a conversation, and what came of it."""
    start = time.perf_counter()
    made = work(talks)
    return (time.perf_counter() - start) / len(talks) * 1e3, made


def compare(name: str, kind: str, rounds: int, each: int) -> None:
    masks = rollyard.MultiTurnLossMaskGenerator(ours(name), kind)
    reference = ReferenceMasks(theirs(name), kind)
    ways: dict[str, Callable[[list[Messages]], Any]] = {
        "theirs": lambda talks: [reference.get_loss_mask(talk, TOOLS) for talk in talks],
        "ours": lambda talks: [masks.get_loss_mask(talk, TOOLS) for talk in talks],
        "arrays": lambda talks: [masks.masked(talk, TOOLS) for talk in talks],
        "both cores": lambda talks: masks.masked_batch(talks, TOOLS),
    }
    rng = random.Random(7)
    times: dict[str, list[float]] = {way: [] for way in ways}
    lengths: list[int] = []
    for number in range(rounds + 1):
        talks = [conversation(rng) for _ in range(each)]
        took, made = {}, {}
        for way, work in ways.items():
            # The two that are compared get the same conversations, the others new ones.
            fresh = talks if way in ("theirs", "ours") else [conversation(rng) for _ in range(each)]
            took[way], made[way] = timed(work, fresh)
        assert made["theirs"] == made["ours"], "the two do not do the same work"
        # The first round warms up.
        if number > 0:
            lengths.extend(len(ids) for ids, _ in made["ours"])
            for way, milliseconds in took.items():
                times[way].append(milliseconds)
    median = {key: statistics.median(values) for key, values in times.items()}
    ratios = [a / b for a, b in zip(times["theirs"], times["ours"], strict=True)]
    tokens = sum(lengths) // len(lengths)
    print(
        f"{name:10} {kind:8} {tokens:7,} {median['theirs']:12.2f} {median['ours']:9.3f} "
        f"{statistics.median(ratios):7.1f} ({min(ratios):.1f} to {max(ratios):.1f}) "
        f"{median['theirs'] / median['arrays']:12.1f} {median['theirs'] / median['both cores']:14.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--each", type=int, default=8, help="conversations a round")
    options = parser.parse_args()
    print(
        f"{'model':10} {'type':8} {'tokens':>7} {'transformers':>12} {'ours ms':>9} {'ratio':>7} "
        f"{'':14} {'ratio arrays':>12} {'ratio 2 cores':>14}"
    )
    for name, kind in [
        ("qwen2_5", "qwen"),
        ("qwen3", "qwen3"),
        ("qwen3", "qwen3_5"),
        ("qwen2_5", "auto"),
    ]:
        compare(name, kind, options.rounds, options.each)


if __name__ == "__main__":
    main()
