"""The small model, asked by the real `openai` package, and as its guide shows."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import openai
import pytest

import scripted
import test_readme
from serving import BINARY, ROOT, Serve, Server

MODEL = "rollyard-tiny"
USER = [{"role": "user", "content": "12+34"}]
PROMPT = "<|user|>12+34<|end|><|assistant|>"
TIMES = {"type": "function", "function": {"name": "times", "parameters": {"type": "object"}}}
CALL = '<tool_call>{"name": "times", "arguments": {"a": 6, "b": 7}}</tool_call>'


@contextmanager
def asking(server: Server, key: str = "none") -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, http_client=http) as client:
        yield client


def say(tiny: Serve, folder: pathlib.Path, answer: str) -> Server:
    return tiny("--checkpoint", str(scripted.write(folder, PROMPT, answer)))


def test_a_chat_is_answered_whole_and_in_pieces(tiny: Serve) -> None:
    with asking(tiny("--seed", "7")) as client:
        options: dict[str, Any] = {"model": MODEL, "messages": USER, "seed": 3, "max_tokens": 20, "n": 2}
        whole = client.chat.completions.create(**options, logprobs=True, top_logprobs=2)
        texts = [choice.message.content for choice in whole.choices]
        assert len(texts) == 2 and texts[0] != texts[1]
        assert whole.usage is not None and whole.usage.prompt_tokens == 8
        chunks = list(
            client.chat.completions.create(
                **options, logprobs=True, top_logprobs=2, stream=True, stream_options={"include_usage": True}
            )
        )
        assert chunks[-1].usage == whole.usage
        for choice in whole.choices:
            pieces = [c.choices[0] for c in chunks if c.choices and c.choices[0].index == choice.index]
            assert "".join(piece.delta.content or "" for piece in pieces) == choice.message.content
            assert pieces[0].delta.role == "assistant"
            assert pieces[-1].finish_reason == choice.finish_reason
            assert choice.logprobs is not None and choice.logprobs.content
            told = [token for piece in pieces if piece.logprobs for token in piece.logprobs.content or []]
            assert told == choice.logprobs.content
            assert all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in told)


def test_a_text_is_gone_on_with(tiny: Serve) -> None:
    with asking(tiny()) as client:
        options: dict[str, Any] = {
            "model": MODEL,
            "prompt": PROMPT,
            "seed": 3,
            "max_tokens": 12,
            "logprobs": 1,
        }
        whole = client.completions.create(**options, extra_body={"return_token_ids": True})
        choice = whole.choices[0]
        assert choice.logprobs is not None and choice.logprobs.tokens is not None
        assert len(choice.logprobs.tokens) == len(choice.token_ids) == whole.usage.completion_tokens
        chunks = list(client.completions.create(**options, stream=True))
        assert "".join(chunk.choices[0].text for chunk in chunks) == choice.text
        by_ids = client.completions.create(**options | {"prompt": choice.prompt_token_ids})
        assert by_ids.choices[0].text == choice.text
        several = client.completions.create(**options | {"prompt": [PROMPT, "1"]})
        assert several.choices[0].text == choice.text


def test_a_stop_is_never_told(tiny: Serve, tmp_path: pathlib.Path) -> None:
    with asking(say(tiny, tmp_path, "a STOut b STOP c")) as client:
        options: dict[str, Any] = {"model": MODEL, "messages": USER}
        whole = client.chat.completions.create(**options).choices[0]
        assert (whole.message.content, whole.finish_reason) == ("a STOut b STOP c", "stop")
        stopped = client.chat.completions.create(**options, stop=["STOP"]).choices[0]
        assert (stopped.message.content, stopped.finish_reason) == ("a STOut b ", "stop")
        short = client.chat.completions.create(**options, max_completion_tokens=3).choices[0]
        assert (short.message.content, short.finish_reason) == ("a S", "length")
        stream = client.chat.completions.create(**options, stop="STOP", stream=True)
        pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices[0].delta.content]
        assert pieces == ["a", " ", "STOu", "t", " ", "b", " "]


def test_tools_are_called(tiny: Serve, tmp_path: pathlib.Path) -> None:
    with asking(say(tiny, tmp_path, f"So:\n{CALL}")) as client:
        options: dict[str, Any] = {"model": MODEL, "messages": USER, "tools": [TIMES]}
        choice = client.chat.completions.create(**options).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "So:")
        (call,) = choice.message.tool_calls or []
        assert call.function.name == "times"
        assert json.loads(call.function.arguments) == {"a": 6, "b": 7}
        with client.chat.completions.stream(**options) as stream:
            final = stream.get_final_completion().choices[0]
        (streamed,) = final.message.tool_calls or []
        assert (final.finish_reason, final.message.content) == ("tool_calls", "So:")
        assert (streamed.function.name, streamed.function.arguments) == ("times", call.function.arguments)
        plain = client.chat.completions.create(**options, tool_choice="none").choices[0]
        assert (plain.finish_reason, plain.message.content) == ("stop", f"So:\n{CALL}")


def test_a_call_that_is_malformed_stays_text(tiny: Serve, tmp_path: pathlib.Path) -> None:
    broken = "So <tool_call>times(6, 7)</tool_call>"
    with asking(say(tiny, tmp_path, broken)) as client:
        options: dict[str, Any] = {"model": MODEL, "messages": USER, "tools": [TIMES]}
        choice = client.chat.completions.create(**options).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("stop", broken)
        assert choice.message.tool_calls is None


def test_mistakes_are_told_by_their_names(tiny: Serve) -> None:
    server = tiny("--api-key", "s3cret", "--model-name", "mine")
    with asking(server) as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with asking(server, key="s3cret") as client:
        assert [model.id for model in client.models.list()] == ["mine"]
        with pytest.raises(openai.NotFoundError, match="gpt-4.*mine") as missing:
            client.chat.completions.create(model="gpt-4", messages=USER)
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.BadRequestError) as long:
            client.chat.completions.create(model="mine", messages=[{"role": "user", "content": "1" * 200}])
        assert (long.value.code, long.value.param) == ("context_length_exceeded", "messages")
        assert "108 too many" in long.value.message
        picture = {"type": "image_url", "image_url": {"url": "data:,"}}
        with pytest.raises(openai.BadRequestError, match="image_url.*reads text only"):
            client.chat.completions.create(model="mine", messages=[{"role": "user", "content": [picture]}])
        with pytest.raises(openai.BadRequestError, match="temperature") as hot:
            client.chat.completions.create(model="mine", messages=USER, temperature=-2, stream=True)
        assert hot.value.param == "temperature"


def test_the_guide_works(tiny: Serve, tmp_path: pathlib.Path) -> None:
    """Every command and the Python of docs/guide/tiny.md, in their order."""
    page = (ROOT / "docs/guide/tiny.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```bash\n")[1:]]
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    start = commands.pop(0)
    assert start[:3] == ["rollyard", "tiny", "serve"]
    flags = [flag for flag in start[3:] if flag not in ("--listen", "127.0.0.1:30000")]
    server = tiny(*flags)
    here = server.url.removeprefix("http://")
    prompts = [{"instance_id": f"q{n}", "prompt": f"{n}+{n}", "answer": str(2 * n)} for n in range(3)]
    (tmp_path / "prompts.jsonl").write_text("\n".join(json.dumps(prompt) for prompt in prompts))
    info = test_readme.run(["curl", f"{here}/server_info"], server.url, tmp_path).json()
    size = {
        "vocabulary": info["vocab_size"],
        "width": 64,
        "layers": 2,
        "heads": 4,
        "context": info["context_length"],
    }
    scripted.save(tmp_path / "next.safetensors", size, scripted.zeros(size))
    path = f"{BINARY.parent}{os.pathsep}{os.environ['PATH']}"
    for words in commands:
        words = [word.replace("127.0.0.1:30000", here) for word in words]
        if words[0] == "curl":
            answer = test_readme.run(words, server.url, tmp_path)
            assert answer.ok, f"{words}: {answer.status_code} {answer.text}"
        else:
            environment = os.environ | {"PATH": path}
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, f"{words}: {done.stderr}"
    lines = (tmp_path / "rollouts/rollouts.jsonl").read_text().splitlines()
    assert len(lines) == 12 and all(json.loads(line)["is_exact"] for line in lines)
    python = page.split("```python\n")[1].split("```")[0].replace("127.0.0.1:30000", here)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(python, "tiny.md", "exec"), {})
    assert printed.getvalue().strip()
