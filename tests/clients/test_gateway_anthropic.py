"""The real `anthropic` package asks through a session."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

import sessions
from loops import ANTHROPIC_TOOL, anthropic_client, weather
from serving import Server
from sessions import Gateway, Session

USER: list[Any] = [{"role": "user", "content": "Hello?"}]
THOUGHT = "<think>\nA greeting.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>'


def ask(session: Session, messages: list[Any] = USER, *, streams: bool = False, **options: Any) -> Any:
    asked: dict[str, Any] = {"model": session.model, "max_tokens": 200, "messages": messages} | options
    with anthropic_client(session) as client:
        if not streams:
            return client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()


@pytest.mark.parametrize("streams", [False, True])
def test_a_message_is_answered(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say("Hello you.")
    with gateway.recording(session) as prompts:
        message = ask(session, system="Be brief.", streams=streams)
    assert (message.type, message.role, message.model) == ("message", "assistant", session.model)
    assert [(block.type, block.text) for block in message.content] == [("text", "Hello you.")]
    assert (message.stop_reason, message.stop_sequence) == ("end_turn", None)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (len(prompts[0]), len(sampled))
    assert gateway.engine.decode(prompts[0]).startswith("<|im_start|>system\nBe brief.<|im_end|>")


def test_a_stream_has_the_events_in_their_order(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say(f"{THOUGHT}So:\n{CALL}")
    asked: dict[str, Any] = {"model": session.model, "max_tokens": 200, "messages": USER}
    with anthropic_client(session) as client:
        events = list(client.messages.create(**asked, tools=[ANTHROPIC_TOOL], stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
    starts = [event for event in events if event.type == "content_block_start"]
    assert [start.content_block.type for start in starts] == ["thinking", "text", "tool_use"]
    assert [start.index for start in starts] == [0, 1, 2]
    open_block: int | None = None
    for event in events:
        if event.type == "content_block_start":
            assert open_block is None
            open_block = event.index
        elif event.type == "content_block_delta":
            assert event.index == open_block
        elif event.type == "content_block_stop":
            assert event.index == open_block
            open_block = None
    assert open_block is None


@pytest.mark.parametrize("streams", [False, True])
def test_a_thought_is_a_block_and_comes_back_unharmed(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(f"{THOUGHT}Let me see.\n{CALL}", f"{THOUGHT}Sunny.")
    thinking = {"type": "enabled", "budget_tokens": 1024}
    options: dict[str, Any] = {"tools": [ANTHROPIC_TOOL], "thinking": thinking, "max_tokens": 1500}
    with gateway.recording(session):
        first = ask(session, streams=streams, **options)
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
        thought, text, call = first.content
        assert (thought.thinking.strip(), text.text) == ("A greeting.", "Let me see.")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": weather(**call.input)}
        said = [*USER, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = ask(session, said, streams=streams, **options)
    assert [block.type for block in second.content] == ["thinking", "text"]
    sessions.check_one_line(session)


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_and_its_result_goes_back(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(CALL, "Sunny.")
    with gateway.recording(session) as prompts:
        first = ask(session, streams=streams, tools=[ANTHROPIC_TOOL])
        assert first.stop_reason == "tool_use"
        (call,) = first.content
        assert (call.type, call.name, call.input) == ("tool_use", "weather", {"city": "Berlin"})
        # As blocks, with a mark that counts for nothing here.
        text = {"type": "text", "text": weather("Berlin"), "cache_control": {"type": "ephemeral"}}
        result = {"type": "tool_result", "tool_use_id": call.id, "content": [text]}
        said = [*USER, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        second = ask(session, said, streams=streams, tools=[ANTHROPIC_TOOL])
    assert (second.stop_reason, second.content[0].text) == ("end_turn", "Sunny.")
    assert f"<tool_response>\n{weather('Berlin')}\n</tool_response>" in gateway.engine.decode(prompts[1])
    assert second.usage.cache_read_input_tokens + second.usage.input_tokens == len(prompts[1])
    sessions.check_one_line(session)


def test_texts_in_blocks_are_read_whole(gateway: Gateway) -> None:
    """As coding agents write them: several blocks for the system, and reminders before the question."""
    session = gateway.open()
    gateway.engine.say("Yes.")
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    blocks = [{"type": "text", "text": "A reminder."}, {"type": "text", "text": "A question."}]
    with gateway.recording(session) as prompts:
        ask(session, [{"role": "user", "content": blocks}], system=system)
    text = gateway.engine.decode(prompts[0])
    assert all(part["text"] in text for part in [*system, *blocks])


def test_a_mark_for_the_cache_that_moves_on_changes_nothing(gateway: Gateway) -> None:
    """Agents put `cache_control` on their latest message, and take it from the one before."""
    session = gateway.open()
    gateway.engine.say("One.", "Two.")
    marked = {"type": "text", "text": "Hello?", "cache_control": {"type": "ephemeral"}}
    with gateway.recording(session):
        first = ask(session, [{"role": "user", "content": [marked]}])
        ask(session, [*USER, {"role": "assistant", "content": first.content}, *USER])
    sessions.check_one_line(session)


def test_a_stop_sequence_is_named(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("a STOut b STOP c")
    message = ask(session, stop_sequences=["STOP"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "STOP")
    assert message.content[0].text == "a STOut b "


def test_an_answer_that_is_cut_short_says_so(gateway: Gateway) -> None:
    gateway.engine.say("Hello you and everybody else.")
    assert ask(gateway.open(), max_tokens=3).stop_reason == "max_tokens"


@pytest.mark.parametrize("streams", [False, True])
def test_random_weights_are_answered(tiny_gateway: Server, streams: bool) -> None:
    session = sessions.open_session(tiny_gateway, sampling={"seed": 3})
    message = ask(session, max_tokens=20, streams=streams)
    (turn,) = session.turns()
    assert message.usage.output_tokens == turn["sampled_tokens"] > 0
    assert message.id.endswith(f"{session.id}-0")


def test_a_failure_in_the_middle_of_a_stream_is_raised(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.set(fail_next=1, fail_status=400)
    with pytest.raises(anthropic.APIStatusError):
        ask(session, streams=True)
    assert session.view()["failures"] == 1
