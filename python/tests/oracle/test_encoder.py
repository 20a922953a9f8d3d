"""Token ids and decoded text, equal to those of `transformers` on texts that tell encoders apart."""

from __future__ import annotations

import pytest

from .models import MODELS, ours, theirs
from .texts import fixed, texts

COUNT = 3_000


@pytest.mark.parametrize("name", MODELS)
def test_ids_are_those_of_transformers(name: str) -> None:
    tokenizer, oracle = ours(name), theirs(name)
    corpus = [*fixed(), *texts(seed=20_261_115, count=COUNT)]
    expected = oracle(corpus, add_special_tokens=False)["input_ids"]
    for text, ids in zip(corpus, expected, strict=True):
        assert tokenizer.encode(text, add_special_tokens=False) == ids, repr(text)
        assert tokenizer.decode(ids) == oracle.backend_tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", MODELS)
def test_special_tokens_stand_around_a_text_as_in_transformers(name: str) -> None:
    tokenizer, oracle = ours(name), theirs(name)
    for text in texts(seed=7, count=100):
        assert tokenizer.encode(text) == oracle(text)["input_ids"], repr(text)


@pytest.mark.parametrize("name", MODELS)
def test_names_and_numbers_of_tokens_agree(name: str) -> None:
    tokenizer, oracle = ours(name), theirs(name)
    assert len(tokenizer) == len(oracle)
    assert tokenizer.get_added_vocab() == oracle.get_added_vocab()
    for token in ("eos_token", "bos_token", "pad_token"):
        assert tokenizer.special_token(token) == getattr(oracle, token)


def test_byte_level_models_are_on_the_fast_path() -> None:
    assert [name for name in MODELS if ours(name).path != "fast"] == ["gemma3"]
