"""The real `openai` package asks through a session: chats, texts and responses, whole and in pieces."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

import sessions
from loops import CHAT_TOOL, RESPONSES_TOOL, openai_client, weather
from serving import Server
from sessions import END, Gateway

USER: list[Any] = [{"role": "user", "content": "Hello?"}]
PROMPT = "<|im_start|>user\nHello?<|im_end|>\n<|im_start|>assistant\n"
THOUGHT = "<think>\nA greeting.\n</think>\n\n"
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>'


def test_a_chat_is_answered(gateway: Gateway) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say("Hello you.")
    with gateway.recording(session) as prompts, openai_client(session) as client:
        completion = client.chat.completions.create(model=session.model, messages=USER)
    choice = completion.choices[0]
    assert (choice.message.role, choice.message.content) == ("assistant", "Hello you.")
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert gateway.engine.decode(prompts[0]) == PROMPT
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == len(prompts[0])
    assert completion.usage.completion_tokens == len(sampled)
    assert completion.usage.total_tokens == len(prompts[0]) + len(sampled)
    (turn,) = session.turns()
    assert completion.id == f"chatcmpl-{session.id}-{turn['turn']}"


def test_a_chat_is_streamed(gateway: Gateway) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say("Hello you.")
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    with gateway.recording(session) as prompts, openai_client(session) as client:
        chunks = list(client.chat.completions.create(model=session.model, messages=USER, **options))
    pieces = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert pieces[0].delta.role == "assistant"
    assert "".join(piece.delta.content or "" for piece in pieces) == "Hello you."
    assert len([piece for piece in pieces if piece.delta.content]) > 2
    assert [piece.finish_reason for piece in pieces if piece.finish_reason] == ["stop"]
    usage = chunks[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (len(prompts[0]), len(sampled))


@pytest.mark.parametrize("streams", [False, True])
def test_thoughts_are_told_apart(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(f"{THOUGHT}Hello you.")
    options: dict[str, Any] = {"model": session.model, "messages": USER}
    with openai_client(session) as client:
        if streams:
            deltas = [c.choices[0].delta for c in client.chat.completions.create(**options, stream=True)]
            thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
            content = "".join(delta.content or "" for delta in deltas)
        else:
            message = client.chat.completions.create(**options).choices[0].message
            thought, content = message.reasoning_content, message.content
    assert (thought.strip(), content) == ("A greeting.", "Hello you.")


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_and_its_result_goes_back(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(f"So:\n{CALL}", "Sunny.")
    messages = [*USER]
    options: dict[str, Any] = {"model": session.model, "messages": messages, "tools": [CHAT_TOOL]}
    with gateway.recording(session) as prompts, openai_client(session) as client:
        if streams:
            with client.chat.completions.stream(**options) as stream:
                choice: Any = stream.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**options).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("tool_calls", "So:")
        (call,) = choice.message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Berlin"})
        result = {"role": "tool", "tool_call_id": call.id, "content": weather("Berlin")}
        messages += [choice.message, result]
        final = client.chat.completions.create(**options).choices[0]
    assert (final.finish_reason, final.message.content) == ("stop", "Sunny.")
    assert f"<tool_response>\n{weather('Berlin')}\n</tool_response>" in gateway.engine.decode(prompts[1])
    sessions.check_one_line(session)


def test_a_call_that_is_malformed_stays_text(gateway: Gateway) -> None:
    session = gateway.open()
    broken = "So <tool_call>weather(Berlin)</tool_call>"
    gateway.engine.say(broken)
    with openai_client(session) as client:
        options: dict[str, Any] = {"model": session.model, "messages": USER, "tools": [CHAT_TOOL]}
        choice = client.chat.completions.create(**options).choices[0]
    assert (choice.finish_reason, choice.message.content) == ("stop", broken)
    (turn,) = session.turns()
    assert len(turn["malformed"]) == 1


@pytest.mark.parametrize("streams", [False, True])
def test_a_text_is_gone_on_with(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say(f" there {THOUGHT}")
    options: dict[str, Any] = {"model": session.model, "prompt": "Hello"}
    with gateway.recording(session) as prompts, openai_client(session) as client:
        if streams:
            chunks = list(client.completions.create(**options, stream=True))
            text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
        else:
            completion = client.completions.create(**options)
            text = completion.choices[0].text
            assert completion.usage is not None
            assert completion.usage.completion_tokens == len(sampled)
            assert completion.usage.prompt_tokens == len(prompts or gateway.engine.prompts()[-1])
    assert text == f" there {THOUGHT}"
    assert prompts == [gateway.engine.encode("Hello")]


def test_a_prompt_of_tokens_is_asked_as_it_is(gateway: Gateway) -> None:
    session = gateway.open()
    tokens = gateway.engine.encode("Hel") + gateway.engine.encode("lo")
    gateway.engine.say(" there")
    with gateway.recording(session) as prompts, openai_client(session) as client:
        client.completions.create(model=session.model, prompt=tokens)
    assert prompts == [tokens]


@pytest.mark.parametrize("streams", [False, True])
def test_responses_follow_one_another_by_name(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(CALL, "Sunny.", "Bye.")
    asked: dict[str, Any] = {"model": session.model, "tools": [RESPONSES_TOOL], "instructions": "Be brief."}

    def ask(client: openai.OpenAI, said: Any, **options: Any) -> Any:
        if not streams:
            return client.responses.create(input=said, **asked, **options)
        events = list(client.responses.create(input=said, **asked, **options, stream=True))
        assert events[0].type == "response.created" and events[-1].type == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))
        return events[-1].response

    with gateway.recording(session) as prompts, openai_client(session) as client:
        first = ask(client, "How is Berlin?")
        (call,) = first.output
        assert (call.type, call.name, json.loads(call.arguments)) == (
            "function_call",
            "weather",
            {"city": "Berlin"},
        )
        result = {"type": "function_call_output", "call_id": call.call_id, "output": weather("Berlin")}
        second = ask(client, [result], previous_response_id=first.id)
        assert second.output_text == "Sunny." and second.previous_response_id == first.id
        third = ask(client, "Thanks!", previous_response_id=second.id)
    assert third.output_text == "Bye."
    assert third.usage.input_tokens == len(prompts[2])
    assert gateway.engine.decode(prompts[2]).count("Be brief.") == 1
    sessions.check_one_line(session)


def test_a_thought_of_a_response_is_an_item(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say(f"{THOUGHT}Hello you.")
    with openai_client(session) as client:
        response = client.responses.create(model=session.model, input="Hello?")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.output_text == "Hello you."


def test_several_answers_are_turns_of_one_question(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("One.", "Two.")
    before = len(gateway.engine.prompts())
    with openai_client(session) as client:
        completion = client.chat.completions.create(model=session.model, messages=USER, n=2)
    assert {choice.message.content for choice in completion.choices} == {"One.", "Two."}
    assert [choice.index for choice in completion.choices] == [0, 1]
    first, second = gateway.engine.prompts()[before:]
    assert first == second
    samples = session.export()
    assert [sample["prompt_tokens"] for sample in samples] == [first, first]
    said = sorted(sample["messages"][-1]["content"] for sample in samples)
    assert said == ["One.", "Two."]


def test_of_several_answers_the_one_that_is_gone_on_with_counts(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("One.", "Two.", "Three.")
    with openai_client(session) as client:
        two = client.chat.completions.create(model=session.model, messages=USER, n=2).choices
        said = [*USER, two[1].message, {"role": "user", "content": "And?"}]
        client.chat.completions.create(model=session.model, messages=said)
    turns = session.turns()
    assert turns[2]["cut"] is None and turns[2]["follows"] is not None
    (before,) = [turn for turn in turns if turn["turn"] == turns[2]["follows"]]
    assert before["answer"]["content"] == two[1].message.content


def test_a_stop_is_not_told_and_its_tokens_are_kept(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("a STOut b STOP c")
    with gateway.recording(session), openai_client(session) as client:
        choice = client.chat.completions.create(model=session.model, messages=USER, stop=["STOP"]).choices[0]
    assert (choice.message.content, choice.finish_reason) == ("a STOut b ", "stop")


def test_an_answer_that_is_cut_short_says_so(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you and everybody else.")
    with openai_client(session) as client:
        options: dict[str, Any] = {"model": session.model, "messages": USER, "max_completion_tokens": 3}
        choice = client.chat.completions.create(**options).choices[0]
    assert choice.finish_reason == "length"
    (sample,) = session.export()
    assert sample["is_truncated"] and len(sample["response_tokens"]) == 3


def test_logprobs_are_those_of_the_engine(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you.")
    with openai_client(session) as client:
        options: dict[str, Any] = {"model": session.model, "messages": USER, "logprobs": True}
        choice = client.chat.completions.create(**options).choices[0]
    assert choice.logprobs is not None and choice.logprobs.content is not None
    (sample,) = session.export()
    told = [token.logprob for token in choice.logprobs.content]
    assert told == pytest.approx(sample["response_logprobs"])
    assert "".join(token.token for token in choice.logprobs.content) == f"Hello you.{END}"


def test_the_same_seed_says_the_same(tiny_gateway: Server) -> None:
    def ask(seed: int) -> str:
        session = sessions.open_session(tiny_gateway)
        with openai_client(session) as client:
            options: dict[str, Any] = {"model": session.model, "max_tokens": 20, "seed": seed}
            return str(client.chat.completions.create(messages=USER, **options).choices[0].message.content)

    assert ask(3) == ask(3) != ask(4)


def test_random_weights_are_answered_whole_and_in_pieces(tiny_gateway: Server) -> None:
    options: dict[str, Any] = {"messages": USER, "max_tokens": 20, "seed": 3, "n": 2, "logprobs": True}
    whole_session, streamed_session = (sessions.open_session(tiny_gateway) for _ in range(2))
    with openai_client(whole_session) as client:
        whole = client.chat.completions.create(model=whole_session.model, **options)
    with openai_client(streamed_session) as client:
        chunks = list(client.chat.completions.create(model=whole_session.model, **options, stream=True))
    for choice in whole.choices:
        pieces = [chunk.choices[0] for chunk in chunks if chunk.choices[0].index == choice.index]
        assert "".join(piece.delta.content or "" for piece in pieces) == choice.message.content
        assert choice.logprobs is not None
        told = [token for piece in pieces if piece.logprobs for token in piece.logprobs.content or []]
        assert told == choice.logprobs.content
    left, right = (session.export() for session in (whole_session, streamed_session))
    for field in ("prompt_tokens", "response_tokens", "response_logprobs"):
        assert sorted(sample[field] for sample in left) == sorted(sample[field] for sample in right)


def test_a_schema_is_passed_on_to_the_engine(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say('{"city": "Berlin"}')
    schema = {"name": "place", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    form: Any = {"type": "json_schema", "json_schema": schema}
    with openai_client(session) as client:
        answer = client.chat.completions.create(model=session.model, messages=USER, response_format=form)
    assert json.loads(answer.choices[0].message.content or "") == {"city": "Berlin"}


def test_models_are_listed(gateway: Gateway) -> None:
    with openai_client(gateway.open()) as client:
        assert [model.id for model in client.models.list()] == ["chatml", "other"]
        assert client.models.retrieve("other").id == "other"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("gpt-4")


def test_a_text_in_parts_is_read_whole(gateway: Gateway) -> None:
    """Templates know texts, many of them nothing else: parts of a message must not be lost."""
    session = gateway.open()
    gateway.engine.say("Yes.", "Bye.")
    brief, first, second = ({"type": "text", "text": text} for text in ("Be brief.", "First,", "second."))
    said: list[Any] = [{"role": "system", "content": [brief]}, {"role": "user", "content": [first, second]}]
    with gateway.recording(session) as prompts, openai_client(session) as client:
        answer = client.chat.completions.create(model=session.model, messages=said).choices[0].message
        assert answer.content == "Yes."
        more: list[Any] = [*said, {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}, *USER]
        client.chat.completions.create(model=session.model, messages=more)
    text = gateway.engine.decode(prompts[0])
    assert all(part in text for part in ("Be brief.", "First,", "second."))
    sessions.check_one_line(session)


def test_a_text_in_one_part_means_the_same_as_a_text(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Yes.", "Bye.")
    with gateway.recording(session), openai_client(session) as client:
        client.chat.completions.create(model=session.model, messages=USER)
        parts = {"role": "user", "content": [{"type": "text", "text": "Hello?"}]}
        more: list[Any] = [parts, {"role": "assistant", "content": "Yes."}, *USER]
        client.chat.completions.create(model=session.model, messages=more)
    sessions.check_one_line(session)
