"""A real small model out of a GGUF file, asked as any other engine is, and held against llama.cpp."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import Served
from openai import OpenAI

from serving import BINARY, ROOT

QUESTION: list[Any] = [
    {"role": "system", "content": "You answer questions about geography."},
    {"role": "user", "content": "What is the capital of France?"},
]
PROMPT = "".join(f"<|im_start|>{said['role']}\n{said['content']}<|im_end|>\n" for said in QUESTION)
PROMPT += "<|im_start|>assistant\n"
TEXTS = 1000


@pytest.fixture
def client(rollyard: Served) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{rollyard.url}/v1", api_key="none") as client:
        yield client


def model_of(client: OpenAI) -> str:
    (model,) = [model.id for model in client.models.list()]
    return model


def test_a_question_is_answered(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=model_of(client), messages=QUESTION, temperature=0, max_tokens=32
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"


def test_the_same_answer_streams(client: OpenAI) -> None:
    how: dict[str, Any] = {"model": model_of(client), "messages": QUESTION}
    how |= {"temperature": 0, "max_tokens": 32}
    whole = client.chat.completions.create(**how).choices[0].message.content
    parts = [
        chunk.choices[0].delta.content or ""
        for chunk in client.chat.completions.create(**how, stream=True)
        if chunk.choices
    ]
    assert len([part for part in parts if part]) > 3
    assert "".join(parts) == whole


def tokens(served: Served, text: str) -> list[int]:
    """By llama.cpp."""
    body = {"content": text, "add_special": False, "parse_special": True}
    found: list[int] = served.post("/tokenize", body)["tokens"]
    return found


def test_tokens_and_logprobs_are_those_of_llama_cpp(rollyard: Served, llama_cpp: Served) -> None:
    prompt = tokens(llama_cpp, PROMPT)
    theirs = llama_cpp.post(
        "/completion", {"prompt": prompt, "n_predict": 32, "temperature": 0, "n_probs": 1}
    )["completion_probabilities"]
    sampling = {"temperature": 0, "max_new_tokens": 32}
    asked = {"input_ids": prompt, "sampling_params": sampling, "return_logprob": True}
    ours = rollyard.post("/generate", asked)["meta_info"]["output_token_logprobs"]
    # The token that ended the answer is among ours, and not among theirs.
    said = [row[1] for row in ours][: len(theirs)]
    assert said == [row["id"] for row in theirs] and len(ours) - len(said) <= 1
    # Both round what goes into a product to eight bits, and neither as the other does.
    apart = [abs(row[0] - other["logprob"]) for row, other in zip(ours, theirs, strict=False)]
    print(f"\nlog-probs differ by {max(apart):.3f} at most")
    assert max(apart) < 0.25


def test_texts_are_the_tokens_of_llama_cpp(rollyard: Served, llama_cpp: Served) -> None:
    maker = str(ROOT / "python/tests/oracle/texts.py")
    command = [sys.executable, maker, "--seed", "7", "--count", str(TEXTS)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    differ, compared = [], 0
    for text in map(json.loads, lines):
        theirs = tokens(llama_cpp, text)
        # Where the vocabulary lacks a byte, Hugging Face's tokenizers merge across it and llama.cpp does not.
        if not theirs or llama_cpp.post("/detokenize", {"tokens": theirs})["content"] != text:
            continue
        compared += 1
        asked = {"prompt": text, "max_tokens": 0, "return_token_ids": True}
        ours = rollyard.post("/v1/completions", asked)["choices"][0]["prompt_token_ids"]
        if ours != theirs:
            differ.append((text, ours, theirs))
    print(f"\n{compared} of {len(lines)} texts compared")
    assert differ == [] and compared > TEXTS / 2


def test_a_text_does_not_depend_on_its_company(rollyard: Served) -> None:
    sampling = {"temperature": 1, "max_new_tokens": 16, "sampling_seed": 3}
    asked = {"text": PROMPT, "sampling_params": sampling, "return_logprob": True}
    alone = rollyard.post("/generate", asked)["meta_info"]["output_token_logprobs"]
    others = [{**asked, "text": f"{PROMPT}{nth}"} for nth in range(6)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: rollyard.post("/generate", body), [asked, *others, asked]))
    for answer in (answers[0], answers[-1]):
        assert answer["meta_info"]["output_token_logprobs"] == alone


@pytest.mark.parametrize("texts", [1, 8])
def test_how_fast_it_is(rollyard: Served, texts: int) -> None:
    """Printed for docs/benchmarks.md; there is no bar, since no two machines are alike."""
    length = 32
    sampling = {"temperature": 0, "max_new_tokens": length, "ignore_eos": True}
    body = {"text": PROMPT, "sampling_params": sampling}
    rates = []
    for _ in range(2):
        began = time.monotonic()
        with ThreadPoolExecutor(texts) as pool:
            answers = list(pool.map(lambda _: rollyard.post("/generate", body), range(texts)))
        rates.append(texts * length / (time.monotonic() - began))
        assert all(len(answer["output_ids"]) == length for answer in answers)
    print(f"\n{texts} at once: {max(rates):.1f} tokens/s, prompt included")


def test_what_is_no_model_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "half.gguf"
    path.write_bytes(b"GGUF")
    command = [str(BINARY), "tiny", "serve", "--gguf", str(path), "--listen", "127.0.0.1:0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1
    assert "the file ends too soon" in refused.stderr and refused.stderr.rstrip().endswith("half.gguf")
