"""What a session refuses, each client is told in its own words."""

from __future__ import annotations

import time
from typing import Any

import anthropic
import openai
import pytest
import requests

import loops
import sessions
from loops import CHAT_TOOL, anthropic_client, openai_client
from sessions import Gateway, Session

USER: list[Any] = [{"role": "user", "content": "Hello?"}]
LONG: list[Any] = [{"role": "user", "content": "word " * 3000}]


def chat(session: Session, **options: Any) -> Any:
    asked: dict[str, Any] = {"model": session.model, "messages": USER} | options
    with openai_client(session) as client:
        return client.chat.completions.create(**asked)


def message(session: Session, **options: Any) -> Any:
    asked: dict[str, Any] = {"model": session.model, "messages": USER, "max_tokens": 9} | options
    with anthropic_client(session) as client:
        return client.messages.create(**asked)


def wrong_key(session: Session) -> Session:
    end = "0" if session.key[-1] != "0" else "1"
    return Session(**vars(session) | {"key": session.key[:-1] + end})


@pytest.mark.parametrize("streams", [False, True])
def test_a_wrong_key_is_no_key(gateway: Gateway, streams: bool) -> None:
    session = gateway.open()
    for key in ("none", session.id, f"sk-{session.id}", wrong_key(session).key):
        with pytest.raises(openai.AuthenticationError) as refused:
            chat(Session(**vars(session) | {"key": key}), stream=streams)
        assert refused.value.code == "invalid_api_key"
    assert session.turns() == []


def test_an_unknown_model_is_not_found(gateway: Gateway) -> None:
    with pytest.raises(openai.NotFoundError, match="gpt-4.*chatml") as refused:
        chat(gateway.open(), model="gpt-4")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


def test_an_alias_is_answered_by_its_name(gateway: Gateway) -> None:
    gateway.engine.say("Hello.")
    assert chat(gateway.open(), model="other").model == "other"


def test_an_image_is_refused_with_its_place(gateway: Gateway) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    said = [*USER, {"role": "user", "content": [{"type": "text", "text": "See:"}, picture]}]
    with pytest.raises(openai.BadRequestError, match="image.*text only") as refused:
        chat(gateway.open(), messages=said)
    assert refused.value.param == "messages[1].content[1]"


def test_a_prompt_that_is_too_long_says_by_how_many(gateway: Gateway) -> None:
    session = gateway.open()
    text = f"<|im_start|>user\n{LONG[0]['content']}<|im_end|>\n<|im_start|>assistant\n"
    over = len(gateway.engine.encode(text)) + 1 - sessions.CONTEXT
    with pytest.raises(openai.BadRequestError, match=f"{over} too many") as refused:
        chat(session, messages=LONG)
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")
    with pytest.raises(openai.BadRequestError, match="too many") as refused, openai_client(session) as client:
        client.completions.create(model=session.model, prompt=LONG[0]["content"])
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "prompt")
    with pytest.raises(openai.BadRequestError, match="too many") as refused, openai_client(session) as client:
        client.responses.create(model=session.model, input=LONG[0]["content"])
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "input")


def test_a_session_that_is_over_time_is_forbidden(gateway: Gateway) -> None:
    session = gateway.open(budget={"secs": 0.2})
    deadline = time.monotonic() + 10
    while session.view()["state"] == "open" and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(openai.PermissionDeniedError, match="expired"):
        chat(session)
    with pytest.raises(anthropic.PermissionDeniedError, match="expired"):
        message(session)


def test_a_session_that_expires_is_refused_at_once(gateway: Gateway) -> None:
    """Its time is over when it is over, not when somebody has noticed."""
    session = gateway.open(budget={"secs": 0.05})
    gateway.engine.say("Too late.")
    time.sleep(0.1)
    with pytest.raises(openai.PermissionDeniedError, match="expired"):
        chat(session)


def test_a_session_that_was_ended_is_a_conflict(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello.")
    chat(session)
    session.end()
    with pytest.raises(openai.ConflictError, match="ended"):
        chat(session)
    with pytest.raises(anthropic.ConflictError, match="ended"):
        message(session)


def test_a_session_that_was_abandoned_is_a_conflict(gateway: Gateway) -> None:
    session = gateway.open()
    assert session.post("abandon", {"reason": "the sandbox is gone"}).ok
    with pytest.raises(openai.ConflictError, match="the sandbox is gone"):
        chat(session)


@pytest.mark.parametrize(
    ("budget", "words"), [({"turns": 1}, "budget of 1 turns"), ({"tokens": 2}, "budget of 2 tokens")]
)
def test_a_budget_that_is_spent_is_said(gateway: Gateway, budget: dict[str, int], words: str) -> None:
    session = gateway.open(budget=budget)
    gateway.engine.say("Hello you.", "Again.")
    chat(session)
    with pytest.raises(openai.APIStatusError, match=words):
        chat(session, messages=[*USER, *USER])
    assert len(session.turns()) == 1


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"tools": [{"type": "function", "function": {"parameters": {}}}]}, "tools[0].function.name"),
        (
            {"tools": [CHAT_TOOL, {"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[1].function.parameters",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
            "tools[0].function.parameters.type",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        (
            {"tools": [CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
            "tool_choice.function.name",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"temperature": -1}, "temperature"),
        ({"n": 0}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"logprobs": True, "top_logprobs": 5}, "top_logprobs"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
    ],
    ids=str,
)
def test_a_mistake_is_told_by_its_place(gateway: Gateway, options: dict[str, Any], place: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        chat(gateway.open(), **options)
    assert refused.value.param == place and place.rsplit(".", 1)[-1] in refused.value.message


def test_a_response_that_is_not_there_cannot_be_followed(gateway: Gateway) -> None:
    session, sibling = gateway.open(), gateway.open()
    gateway.engine.say("Mine.", "Theirs.", "Whose?")
    with openai_client(session) as client:
        client.responses.create(model=session.model, input="Hello?")
    with openai_client(sibling) as client:
        theirs = client.responses.create(model=session.model, input="Hello?")
    for name in ("resp_none", theirs.id):
        with pytest.raises(openai.NotFoundError) as refused, openai_client(session) as client:
            client.responses.create(model=session.model, input="And?", previous_response_id=name)
        assert refused.value.code == "previous_response_not_found"


def test_an_engine_that_fails_is_told_as_such(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.set(fail_next=1, fail_status=400)
    with pytest.raises(openai.APIStatusError) as refused:
        chat(session)
    assert refused.value.status_code in (400, 502)
    view = session.view()
    assert view["failures"] == 1 and view["turns"] == []
    gateway.engine.say("Hello.")
    assert chat(session).choices[0].message.content == "Hello."


def test_anthropic_is_told_in_its_own_words(gateway: Gateway) -> None:
    session = gateway.open()
    missing = (anthropic.NotFoundError, "not_found_error")
    invalid = (anthropic.BadRequestError, "invalid_request_error")
    picture = {"type": "image", "source": {"type": "url", "url": "data:,"}}
    cases: list[tuple[tuple[type[anthropic.APIStatusError], str], str, dict[str, Any]]] = [
        (missing, "gpt-4.*chatml", {"model": "gpt-4"}),
        (invalid, "prompt is too long.*too many", {"messages": LONG}),
        (invalid, r"tools\[0\].*input_schema", {"tools": [{"name": "f"}]}),
        (
            invalid,
            r"messages\[0\]\.content\[0\].*image.*text only",
            {"messages": [{"role": "user", "content": [picture]}]},
        ),
    ]
    for (kind, name), words, options in cases:
        with pytest.raises(kind, match=words) as refused:
            message(session, **options)
        assert refused.value.body["type"] == "error" and refused.value.body["error"]["type"] == name
    with pytest.raises(anthropic.AuthenticationError) as stranger:
        message(wrong_key(session))
    assert stranger.value.body["error"]["type"] == "authentication_error"


def test_a_body_that_is_no_json_is_a_mistake_in_each_dialect(gateway: Gateway) -> None:
    session = gateway.open()
    for path in ("chat/completions", "completions", "responses", "messages"):
        answer = requests.post(
            f"{session.base_url}/{path}", data="{", headers=sessions.bearer(session.key), timeout=10
        )
        assert answer.status_code == 400 and "JSON" in answer.json()["error"]["message"]


@pytest.mark.parametrize("loop", loops.LOOPS)
def test_a_refusal_reaches_whoever_uses_a_framework(gateway: Gateway, loop: str) -> None:
    session = gateway.open()
    session.end()
    with pytest.raises((openai.ConflictError, anthropic.ConflictError), match="ended"):
        loops.LOOPS[loop](session, False)
