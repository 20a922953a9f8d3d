"""Whatever client a conversation goes through, the tokens recorded are those of the engine, in one line."""

from __future__ import annotations

import pytest

import loops
import sessions
from serving import Server
from sessions import Gateway

THOUGHT = "<think>\nI had better ask.\n</think>\n\n"
FINAL = "It is sunny, at 21 °C."


def call(arguments: str = '{"city": "Berlin"}') -> str:
    return f'<tool_call>\n{{"name": "weather", "arguments": {arguments}}}\n</tool_call>'


# What a model says before its last words, in the spellings that models have.
SCRIPTS: dict[str, list[str]] = {
    "one call": [call()],
    "words and a call": [f"Let me see.\n{call()}"],
    "a thought and a call": [THOUGHT + call()],
    "a thought, words and a call": [f"{THOUGHT}Let me see.\n{call()}"],
    "two calls at once": [call() + "\n" + call('{"city": "Rome"}')],
    "three calls, one after another": [call(), THOUGHT + call('{"city": "Rome"}'), call('{"city": "Oslo"}')],
    "arguments without spaces": [call('{"city":"Berlin"}')],
    "arguments with escapes": [call('{"city": "K\\u00f6ln \\/ \\ud83c\\udf1e"}')],
    "arguments over several lines": [call('{\n  "city": "Berlin"\n}')],
    "words with spaces around them": [f"  Let me see. \n\n{call()}"],
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("loop", loops.LOOPS)
def test_a_loop_with_tools_is_one_line(gateway: Gateway, loop: str, streams: bool, script: str) -> None:
    answers = [*SCRIPTS[script], FINAL]
    session = gateway.open()
    sampled = gateway.engine.say(*answers)
    with gateway.recording(session) as prompts:
        assert loops.LOOPS[loop](session, streams) == FINAL
    assert len(prompts) == len(answers)
    sample = sessions.check_one_line(session)
    parts = session.export("individual")
    assert [part["response_tokens"] for part in parts] == sampled
    assert sample["messages"][0] == {"role": "system", "content": loops.SYSTEM}
    last = gateway.engine.decode(prompts[-1])
    assert "Sunny in" in last and "weather" in last


@pytest.fixture(scope="module")
def ending_seed(tiny_gateway: Server) -> int:
    """With it, random weights come to an end: several clients raise if an answer is cut short."""
    for seed in range(100):
        session = sessions.open_session(tiny_gateway, sampling={"seed": seed})
        loops.LOOPS["chat"](session, False)
        if session.turns()[0]["stop"] == "stop":
            return seed
    raise AssertionError("no answer ends")


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("loop", loops.LOOPS)
def test_what_random_weights_say_is_told_as_it_was_recorded(
    tiny_gateway: Server, ending_seed: int, loop: str, streams: bool
) -> None:
    session = sessions.open_session(tiny_gateway, sampling={"seed": ending_seed})
    said = loops.LOOPS[loop](session, streams)
    (turn,) = session.turns()
    assert said == turn["answer"]["content"] and turn["stop"] == "stop"
    (sample,) = session.export()
    assert len(sample["response_tokens"]) == len(sample["response_logprobs"]) == turn["sampled_tokens"]
