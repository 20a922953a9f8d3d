"""Chat templates of real models, rendered and tokenised as `transformers` does."""

from __future__ import annotations

from typing import Any

import pytest

from rollyard import TemplateError

from .corpus import Case, cases
from .models import MODELS, ours, theirs

COUNT = 400


def arguments(case: Case) -> dict[str, Any]:
    return {
        "tools": case.tools,
        "documents": case.documents,
        "add_generation_prompt": case.add_generation_prompt,
        "continue_final_message": case.continue_final_message,
        **case.kwargs,
    }


@pytest.mark.parametrize("name", MODELS)
def test_conversations_are_those_of_transformers(name: str) -> None:
    tokenizer, oracle = ours(name), theirs(name)
    rendered = 0
    for number, case in enumerate(cases(seed=3, count=COUNT)):
        how = arguments(case)
        try:
            text = oracle.apply_chat_template(case.messages, tokenize=False, **how)
        except Exception:
            # Refused for whatever reason; then so must we.
            with pytest.raises(TemplateError):
                tokenizer.apply_chat_template(case.messages, tokenize=False, **how)
            continue
        rendered += 1
        assert tokenizer.apply_chat_template(case.messages, tokenize=False, **how) == text, f"case {number}"
        ids = oracle.apply_chat_template(case.messages, tokenize=True, return_dict=False, **how)
        assert tokenizer.apply_chat_template(case.messages, **how) == ids, f"case {number}"
    assert rendered > COUNT // 8, rendered
