"""A real small model out of a GGUF file, asked as any other engine is, and held against llama.cpp."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import Served
from openai import OpenAI

from serving import ROOT

QUESTION: list[Any] = [
    {"role": "system", "content": "You answer questions about geography."},
    {"role": "user", "content": "What is the capital of France?"},
]
PROMPT = "".join(f"<|im_start|>{said['role']}\n{said['content']}<|im_end|>\n" for said in QUESTION)
PROMPT += "<|im_start|>assistant\n"
TEXTS = 2000


@pytest.fixture
def client(rollyard: Served) -> OpenAI:
    return OpenAI(base_url=f"{rollyard.url}/v1", api_key="none")


def test_a_question_is_answered(client: OpenAI) -> None:
    (model,) = [model.id for model in client.models.list()]
    answer = client.chat.completions.create(model=model, messages=QUESTION, temperature=0, max_tokens=32)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"


def test_the_same_answer_streams(client: OpenAI) -> None:
    how: dict[str, Any] = {"model": "smollm2", "messages": QUESTION, "temperature": 0, "max_tokens": 32}
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
    stop = [[token] for token in tokens(llama_cpp, "<|im_end|>")]
    assert [row[1:2] for row in ours] in ([[row["id"]] for row in theirs], [[row["id"]] for row in theirs] + stop)
    # Both round what goes into a product to eight bits, and neither as the other does.
    apart = [abs(row[0] - other["logprob"]) for row, other in zip(ours, theirs)]
    print(f"\nlog-probs differ by {max(apart):.3f} at most")
    assert max(apart) < 0.25


def test_texts_are_the_tokens_of_llama_cpp(rollyard: Served, llama_cpp: Served) -> None:
    texts = subprocess.run(
        [sys.executable, str(ROOT / "python/tests/oracle/texts.py"), "--seed", "7", "--count", str(TEXTS)],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()
    differ = []
    for text in map(json.loads, texts):
        if not text:
            continue
        sampling = {"temperature": 0, "max_new_tokens": 0}
        theirs = tokens(llama_cpp, text)
        answer = rollyard.post("/generate", {"text": text, "sampling_params": sampling})
        if answer["meta_info"]["prompt_tokens"] != len(theirs):
            differ.append(text)
    assert differ == []
