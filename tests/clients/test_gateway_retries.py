"""Lines break, servers die: what was asked again is still one turn, and a session goes on where it was."""

from __future__ import annotations

import asyncio
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
import requests

import breaking
import sessions
import trainer
from loops import CHAT_TOOL
from serving import Server
from sessions import Gateway, Session

USER: list[Any] = [{"role": "user", "content": "Hello?"}]
MORE: list[Any] = [*USER, {"role": "assistant", "content": "Hello you."}, {"role": "user", "content": "And?"}]
LONG = "This is what there is to say, and it takes a while until all of it is said."


@pytest.fixture
def mortal(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """A server of the test's own, which may be killed; with groups of one, unless the test says otherwise."""
    model = sessions.write_model(tmp_path / "chatml")
    engine = sessions.Engine(model)
    flags = ["--engine", engine.url, "--tokenizer", str(model), "--grammar", "qwen", *sessions.AS_THEY_ARE]
    server = Server(tmp_path / "yard", *flags, "--group-size", str(getattr(request, "param", 1)))
    yield Gateway(server, engine)
    server.stop()
    engine.stop()


def client_of(session: Session, url: str, **options: Any) -> openai.OpenAI:
    options = {"timeout": 20.0} | options
    return openai.OpenAI(base_url=f"{url}/v1", api_key=session.key, **options)


def ask(client: openai.OpenAI, session: Session, messages: list[Any] = USER, **options: Any) -> Any:
    answer = client.chat.completions.create(model=session.model, messages=messages, **options)
    if not options.get("stream"):
        return answer.choices[0].message.content
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)


def ask_until_heard(client: openai.OpenAI, session: Session, *said: Any, **options: Any) -> Any:
    """A client asks again by itself, but not in the middle of a stream: then its user does."""
    try:
        return ask(client, session, *said, **options)
    except openai.APIConnectionError:
        return ask(client, session, *said, **options)


def restart(server: Server) -> Callable[[], None]:
    def kill_and_start() -> None:
        server.kill()
        server.start()

    return kill_and_start


def books(server: Server) -> dict[str, Any]:
    told: dict[str, Any] = requests.get(f"{server.url}/api/runs/default/books", timeout=10).json()
    return told


@pytest.mark.parametrize("bytes_heard", [0, 20, 300], ids=["nothing", "half a head", "half a body"])
def test_a_line_that_breaks_is_one_turn(gateway: Gateway, bytes_heard: int) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you.", "Another.")
    with gateway.recording(session), breaking.line(gateway.server, bytes_heard) as line:
        with client_of(session, line.url, max_retries=3) as client:
            assert ask_until_heard(client, session) == "Hello you."
        assert line.connections == 2
    sessions.check_one_line(session)


@pytest.mark.parametrize("bytes_heard", [0, 300, 900], ids=["nothing", "its beginning", "some pieces"])
def test_a_stream_that_breaks_is_one_turn(gateway: Gateway, bytes_heard: int) -> None:
    session = gateway.open()
    gateway.engine.say(LONG, "Another.")
    gateway.engine.set(latency_ms_per_token=3.0)
    with gateway.recording(session), breaking.line(gateway.server, bytes_heard) as line:
        with client_of(session, line.url, max_retries=3) as client:
            assert ask_until_heard(client, session, stream=True) == LONG
        assert line.connections == 2
    sessions.check_one_line(session)


def test_an_answer_that_got_lost_after_its_end_is_given_again(gateway: Gateway) -> None:
    """The server has sent all of it and the client has heard none of it."""
    session = gateway.open()
    gateway.engine.say("Hello you.", "Another.", "More.")
    with (
        gateway.recording(session),
        breaking.line(gateway.server, 0, 0, 0) as line,
        client_of(session, line.url, max_retries=3) as client,
    ):
        assert ask(client, session) == "Hello you."
        assert ask(client, session, MORE) == "Another."
    sessions.check_one_line(session)


def test_a_client_that_times_out_and_asks_again_is_one_turn(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you.", "Another.")
    gateway.engine.set(latency_ms=900)
    hasty = client_of(session, gateway.server.url, max_retries=5, timeout=0.3)
    with gateway.recording(session), hasty as client:
        assert ask(client, session) == "Hello you."
    sessions.check_one_line(session)


def test_anthropic_asks_again_and_it_is_one_turn(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you.", "Another.")
    with gateway.recording(session), breaking.line(gateway.server, 0) as line:
        with anthropic.Anthropic(base_url=line.url, api_key=session.key, max_retries=3) as client:
            message = client.messages.create(model=session.model, max_tokens=99, messages=USER)
        assert message.content[0].text == "Hello you."
    sessions.check_one_line(session)


def test_who_asks_twice_on_purpose_is_answered_twice(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("One.", "Two.")
    with gateway.recording(session), client_of(session, gateway.server.url) as client:
        assert [ask(client, session) for _ in range(2)] == ["One.", "Two."]
    assert len(session.export()) == 2


def test_an_engine_that_is_away_for_a_moment_is_not_noticed(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello you.")
    gateway.engine.set(disconnect_next=1)
    with client_of(session, gateway.server.url, max_retries=3) as client:
        assert ask(client, session) == "Hello you."
    sessions.check_one_line(session)


def test_an_engine_that_breaks_off_is_gone_on_with(gateway: Gateway) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say(LONG)
    gateway.engine.set(abort_next=[7, 5])
    with client_of(session, gateway.server.url, max_retries=0) as client:
        assert ask(client, session, stream=True) == LONG
    assert sessions.check_one_line(session)["response_tokens"] == sampled


def test_new_weights_in_the_middle_of_an_answer_are_told_token_by_token(gateway: Gateway) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say(LONG)
    gateway.engine.set(abort_next=[7], version_grows_with_aborts=True, version=4)
    try:
        with client_of(session, gateway.server.url, max_retries=0) as client:
            assert ask(client, session) == LONG
    finally:
        gateway.engine.set(version_grows_with_aborts=False, version=0)
    (sample,) = session.export()
    assert sample["response_tokens"] == sampled
    assert sample["versions"] == [4] * 7 + [5] * (len(sampled) - 7)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_session_goes_on_after_kill_minus_nine(mortal: Gateway, streams: bool) -> None:
    session = mortal.open()
    first, second = mortal.engine.say("Hello you.", "Another.")
    with mortal.recording(session), client_of(session, mortal.server.url, max_retries=3) as client:
        ask(client, session, stream=streams)
        restart(mortal.server)()
        assert ask(client, session, MORE, stream=streams) == "Another."
    sample = sessions.check_one_line(session)
    assert sample["response_tokens"][: len(first)] == first
    assert sample["response_tokens"][-len(second) :] == second
    assert session.end()["is_delivered"]
    (item,) = asyncio.run(trainer.collect(mortal.server.url, count=1))
    assert item["response_tokens"] == sample["response_tokens"]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_answer_is_made_again_if_the_server_dies_in_its_middle(mortal: Gateway, streams: bool) -> None:
    session = mortal.open()
    first, *_ = mortal.engine.say("Hello you.", LONG, LONG)
    with client_of(session, mortal.server.url) as client:
        ask(client, session)
    mortal.engine.set(latency_ms_per_token=5.0)
    heard = 700 if streams else 0
    with (
        breaking.line(mortal.server, heard, on_break=restart(mortal.server)) as line,
        client_of(session, line.url, max_retries=5) as client,
    ):
        assert ask_until_heard(client, session, MORE, stream=streams) == LONG
    sample = sessions.check_one_line(session)
    assert len(session.turns()) == 2
    assert sample["prompt_tokens"] + sample["response_tokens"] == (
        mortal.engine.prompts()[-1] + mortal.engine.encode(LONG + sessions.END)
    )
    assert sample["response_tokens"][: len(first)] == first


def test_an_answer_that_was_recorded_before_the_server_died_is_given_again(mortal: Gateway) -> None:
    session = mortal.open()
    mortal.engine.say("Hello you.", "Another.")
    with (
        breaking.line(mortal.server, 0, on_break=restart(mortal.server)) as line,
        client_of(session, line.url, max_retries=5) as client,
    ):
        assert ask(client, session) == "Hello you."
    assert len(mortal.engine.prompts()) == 1
    sessions.check_one_line(session)


def test_a_server_that_is_stopped_and_started_is_one_turn_for_who_asks_on(mortal: Gateway) -> None:
    session = mortal.open()
    mortal.engine.say("Hello you.", "Another.", "Another.")
    with client_of(session, mortal.server.url, max_retries=5) as client:
        ask(client, session)
        mortal.server.stop()
        mortal.server.start()
        assert ask(client, session, MORE) == "Another."
    sessions.check_one_line(session)


def test_an_end_is_delivered_once_across_kills(mortal: Gateway) -> None:
    session = mortal.open(instance_id="q1")
    mortal.engine.say("Hello you.")
    with client_of(session, mortal.server.url) as client:
        ask(client, session)
    for _ in range(2):
        assert session.end(0.5)["is_delivered"]
    restart(mortal.server)()
    assert session.end(0.5)["is_delivered"]
    assert books(mortal.server)["admitted"] == 1
    (item,) = asyncio.run(trainer.collect(mortal.server.url, count=1))
    assert (item["instance_id"], item["uid"], item["reward"]) == ("q1", session.id, 0.5)
    restart(mortal.server)()
    assert asyncio.run(trainer.get_rollout_data(mortal.server.url))[0] == []
    assert books(mortal.server)["admitted"] == 1


@pytest.mark.parametrize("mortal", [2], indirect=True, ids=["group of two"])
def test_a_group_is_delivered_whole_though_the_server_dies_between(mortal: Gateway) -> None:
    group = [mortal.open(instance_id="q1", slot=slot, group_size=2) for slot in range(2)]
    mortal.engine.say("One.", "Two.")
    for session in group:
        with client_of(session, mortal.server.url) as client:
            ask(client, session)
    group[0].end(0.0)
    assert books(mortal.server)["admitted"] == 0
    restart(mortal.server)()
    group[1].end(1.0)
    deadline = time.monotonic() + 10
    while books(mortal.server)["admitted"] < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    items = asyncio.run(trainer.collect(mortal.server.url, count=2))
    assert {item["uid"] for item in items} == {session.id for session in group}
    assert {item["instance_id"] for item in items} == {"q1"}


def test_a_loop_with_tools_survives_a_kill_at_every_turn(mortal: Gateway) -> None:
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>'
    session = mortal.open()
    mortal.engine.say(call, call, "Sunny.")
    messages = [*USER]
    with mortal.recording(session), client_of(session, mortal.server.url, max_retries=3) as client:
        for _ in range(2):
            answer: Any = client.chat.completions.create(
                model=session.model, messages=messages, tools=[CHAT_TOOL]
            )
            message = answer.choices[0].message
            (called,) = message.tool_calls
            messages += [message, {"role": "tool", "tool_call_id": called.id, "content": "Sun."}]
            restart(mortal.server)()
        assert ask(client, session, messages, tools=[CHAT_TOOL]) == "Sunny."
    sessions.check_one_line(session)
