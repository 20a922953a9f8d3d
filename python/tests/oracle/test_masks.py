"""Loss masks on real models, equal to slime's wherever those can be shown to be right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rollyard import MaskError, MultiTurnLossMaskGenerator, TemplateError

from .corpus import cases
from .models import CHATML, MODELS, ours, theirs
from .reference import END, HEADER, ReferenceMasks, prefix_spans

COUNT = 500
Messages = list[dict[str, Any]]


def conversations(seed: int) -> Iterator[tuple[Messages, Any]]:
    """Conversations that end with an answer, some of whose answers are not to be trained on."""
    for number, case in enumerate(cases(seed=seed, count=COUNT)):
        messages = case.messages
        while messages and messages[-1]["role"] != "assistant":
            messages = messages[:-1]
        if not messages:
            continue
        if number % 5 == 0:
            messages = [*messages[:-1], {**messages[-1], "step_loss_mask": 0}]
        yield messages, case.tools or None


def outcome(make: Any, messages: Messages, tools: Any) -> tuple[list[int], list[int]] | Exception:
    try:
        ids, mask = make(messages, tools)
        return list(ids), list(mask)
    except Exception as error:
        return error


@pytest.mark.parametrize("kind", ["qwen", "qwen3", "qwen3_5"])
@pytest.mark.parametrize("name", CHATML)
def test_masks_are_those_of_slime_or_refused_for_a_reason(name: str, kind: str) -> None:
    masks = MultiTurnLossMaskGenerator(ours(name), kind)
    reference = ReferenceMasks(theirs(name), kind)
    seen: Counter[str] = Counter()
    for messages, tools in conversations(seed=11):
        made = outcome(masks.get_loss_mask, messages, tools)
        expected = outcome(reference.get_loss_mask, messages, tools)
        if isinstance(made, Exception):
            assert isinstance(made, (MaskError, TemplateError)), repr(made)
            seen[reason(str(made), messages, expected)] += 1
        elif isinstance(expected, Exception):
            pytest.fail(f"slime refuses ({expected!r}), we do not: {messages}")
        elif made != expected:
            seen[slimes_fault(kind, messages)] += 1
        else:
            seen["equal"] += 1
    assert seen["equal"] > COUNT // 3, seen


def slimes_fault(kind: str, messages: Messages) -> str:
    """What slime gets wrong without noticing."""
    if kind == "qwen3_5":
        # It looks for the header in the text, and a user may have written one.
        assert "<|im_start|>assistant" in str(messages), messages
        return "forged"
    # It counts off the generation prompt from the default system prompt, and trains on the rest of that.
    assert messages[0]["role"] == "assistant", messages
    return "system prompt trained"


def reason(error: str, messages: Messages, expected: Any) -> str:
    """What the refusal says, checked against the conversation."""
    contents = [message.get("content") for message in messages]
    answers = [message.get("content") for message in messages if message["role"] == "assistant"]
    if "has no content" in error:
        assert None in contents
        return "no content"
    if "leaves it out" in error:
        assert {"developer", "critic"} & {message["role"] for message in messages}
        return "role left out"
    if "must be a string" in error:
        assert 7 in contents
        return "not text"
    if "content in parts" in error:
        assert any(isinstance(content, list) for content in contents)
        return "parts"
    if "reaches over the boundary" in error:
        assert any(isinstance(answer, str) and answer[:1].isspace() for answer in answers), error
        return "straddles"
    if "no message before it" in error:
        assert messages[0]["role"] == "assistant"
        return "unprompted"
    if "cannot be found" in error:
        return "rewritten"
    if "rendering alone should" in error:
        return "edge"
    assert isinstance(expected, Exception), f"{error}: {messages}"
    return "both refuse"


@pytest.mark.parametrize("name", MODELS)
def test_auto_masks_the_answers_of_any_template(name: str) -> None:
    masks, oracle = MultiTurnLossMaskGenerator(ours(name), "auto"), theirs(name)
    reference = ReferenceMasks(oracle, "auto")
    seen: Counter[str] = Counter()
    for messages, tools in conversations(seed=12):
        try:
            ids, mask = masks.get_loss_mask(messages, tools)
        except (MaskError, TemplateError) as error:
            whole = outcome(lambda m, t: (render(oracle, m, t), []), messages, tools)
            seen[reason(str(error), messages, whole)] += 1
            continue
        text = oracle.apply_chat_template(messages, tools=tools, tokenize=False)
        encoded = oracle(text, add_special_tokens=False, return_offsets_mapping=True)
        assert ids == encoded["input_ids"]
        spans = prefix_spans(oracle, messages, tools, text)
        if spans is None:
            # The template shortens earlier turns; where nobody forged a header, it shows where answers begin.
            assert name == "qwen3"
            if HEADER in str(messages).replace("\\n", "\n"):
                continue
            spans = header_spans(messages, text)
            seen["by header"] += 1
        assert mask == reference.painted(encoded, spans), messages
        seen["equal"] += 1
    assert seen["equal"] > COUNT // 12, seen


def render(oracle: Any, messages: Messages, tools: Any) -> list[int]:
    return list(oracle.apply_chat_template(messages, tools=tools, tokenize=True, return_dict=False))


def header_spans(messages: Messages, text: str) -> list[tuple[int, int]]:
    """The characters of each answer that is trained on, from its header to its end."""
    answers = [message for message in messages if message["role"] == "assistant"]
    starts = [match.end() for match in re.finditer(re.escape(HEADER), text)]
    spans = [(start, text.index(END, start) + len(END) + 1) for start in starts]
    pairs = zip(answers, spans, strict=True)
    return [span for message, span in pairs if message.get("step_loss_mask", 1) == 1]


def test_a_pair_is_masked_as_slime_does_for_distilled_models() -> None:
    masks = MultiTurnLossMaskGenerator(ours("deepseek_v3"), "qwen")
    reference = ReferenceMasks(theirs("deepseek_v3"), "distill_qwen")
    for content in ("Hello.", "", "<think>\nyes\n</think>\n\nDone 🎉", "\n\nodd"):
        pair = [{"role": "user", "content": "Hi 👋"}, {"role": "assistant", "content": content}]
        assert masks.get_loss_mask(pair) == reference.get_loss_mask(pair)
