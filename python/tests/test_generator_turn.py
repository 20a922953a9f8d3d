"""One turn with a real engine that aborts, fails and hangs up; and the client that asks it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from rollyard.generator import ChatClient, ChatError, QueryError, query_single_turn, turn
from testengine import TestEngine

ASKED = [{"role": "user", "content": "2+2?"}]


class Recorder(ChatClient):
    """A client that remembers what it was asked."""

    def __init__(self, server: TestEngine) -> None:
        super().__init__(f"{server.url}/v1", timeout_secs=30.0)
        self.payloads: list[dict[str, Any]] = []

    def __enter__(self) -> Recorder:
        return self

    def create(self, **payload: Any) -> Any:
        self.payloads.append(copy.deepcopy(payload))
        return super().create(**payload)


@pytest.fixture
def client(server: TestEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setattr(turn, "PAUSE_SECS_FIRST", 0.001)
    with Recorder(server) as client:
        yield client


def test_an_answer_is_added_and_the_callers_messages_are_left_alone(client: Recorder) -> None:
    given = copy.deepcopy(ASKED)
    messages, finish_reason = query_single_turn(client, given, {"max_tokens": 4, "temperature": 0.5})
    assert given == ASKED and messages[:-1] == ASKED and finish_reason == "length"
    assert messages[-1]["role"] == "assistant" and len(messages[-1]["content"].split()) == 4
    [payload] = client.payloads
    assert payload["max_tokens"] == 4 and payload["temperature"] == 0.5 and payload["tools"] is None


def test_an_aborted_answer_goes_on_with_the_rest_of_its_budget(client: Recorder, server: TestEngine) -> None:
    # More often than attempts are made: an answer that grows does not fail.
    server.set(abort_next=[3] * 8)
    messages, finish_reason = query_single_turn(client, ASKED, {"max_tokens": 30})
    assert finish_reason == "length" and len(messages) == 2
    assert [payload["max_tokens"] for payload in client.payloads] == list(range(30, 5, -3))
    first, *later = client.payloads
    assert first["messages"] == ASKED and not first["extra_body"]
    for payload in later:
        assert payload["extra_body"]["continue_final_message"] is True
        begun = payload["messages"][-1]
        assert begun["role"] == "assistant" and messages[-1]["content"].startswith(begun["content"])
    assert messages[-1]["content"].count("w") == 30


def test_a_budget_that_is_used_up_ends_the_answer(client: Recorder, server: TestEngine) -> None:
    server.set(abort_next=[4, 4])
    messages, finish_reason = query_single_turn(client, ASKED, {"max_tokens": 8})
    assert finish_reason == "length" and messages[-1]["content"].count("w") == 8
    assert len(client.payloads) == 2


def test_without_a_budget_nothing_is_reduced(client: Recorder, server: TestEngine) -> None:
    server.set(abort_next=[4])
    messages, _ = query_single_turn(client, ASKED, {})
    assert all("max_tokens" not in payload for payload in client.payloads)
    assert messages[-1]["content"].count("w") == 4 + 16


def test_a_begun_answer_is_gone_on_with(client: Recorder) -> None:
    begun = [*ASKED, {"role": "assistant", "content": "It is "}]
    messages, _ = query_single_turn(client, begun, {"max_tokens": 2})
    assert client.payloads[0]["extra_body"]["continue_final_message"] is True
    assert len(messages) == 2 and messages[-1]["content"].startswith("It is w")


def test_failures_are_retried_and_then_raised(client: Recorder, server: TestEngine) -> None:
    server.set(fail_next=2, disconnect_next=2)
    messages, _ = query_single_turn(client, ASKED, {"max_tokens": 2})
    assert messages[-1]["content"]
    server.set(fail_next=100)
    client.payloads.clear()
    with pytest.raises(QueryError, match="no answer in 6 attempts; the last: ChatError: .* with 500"):
        query_single_turn(client, ASKED, {"max_tokens": 2})
    assert len(client.payloads) == 6


def test_a_refusal_is_not_repeated(client: Recorder, server: TestEngine) -> None:
    server.set(fail_next=1, fail_status=400)
    with pytest.raises(QueryError, match="the engine refuses the request: .* with 400"):
        query_single_turn(client, ASKED, {"max_tokens": 2})
    assert len(client.payloads) == 1


def test_an_abort_before_the_first_token_counts_as_a_failure(client: Recorder, server: TestEngine) -> None:
    server.set(abort_after=0)
    with pytest.raises(QueryError, match="6 attempts; the last: aborted before the first token"):
        query_single_turn(client, ASKED, {"max_tokens": 2})


def test_calls_of_tools_are_kept(client: Recorder, server: TestEngine) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    server.set(answers=[{"content": None, "tool_calls": [call]}])
    messages, finish_reason = query_single_turn(client, ASKED, {}, tools=[{"type": "function"}])
    assert finish_reason == "tool_calls"
    assert messages[-1] == {"role": "assistant", "content": "", "tool_calls": [call]}


def test_an_answer_reads_like_that_of_openai(client: Recorder) -> None:
    answer = client.chat.completions.create(messages=ASKED, max_tokens=3, extra_body={"seed": 3}, tools=None)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.finish_reason == "length"
    assert answer.usage.completion_tokens == 3 and choice.message.tool_calls is None
    assert json.dumps(answer.model_dump()["choices"][0]["message"]["content"])
    with pytest.raises(AttributeError):
        _ = answer._private


def test_one_connection_is_kept_and_replaced_when_it_breaks(client: Recorder) -> None:
    client.create(messages=ASKED)
    kept = client._connection
    client.create(messages=ASKED)
    assert client._connection is kept
    # Closed behind its back, as a server does with an idle one: nobody notices.
    assert kept is not None and kept.sock is not None
    kept.sock.shutdown(2)
    client.create(messages=ASKED)
    assert client._connection is not kept


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "not JSON": ({"raw_answers": ["no"]}, "is not JSON, but 'no'"),
    "a hang-up": ({"disconnect_next": 5}, "the engine did not answer"),
    "an error": ({"fail_next": 1, "fail_status": 503}, "answered with 503"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_answer_is_an_error_with_the_url_last(
    client: Recorder, server: TestEngine, name: str
) -> None:
    settings, message = ODD[name]
    server.set(**settings)
    with pytest.raises(ChatError, match=message) as raised:
        client.create(messages=ASKED)
    assert str(raised.value).endswith(f"{server.url}/v1")


def test_streams_are_refused_with_a_remedy(client: Recorder) -> None:
    with pytest.raises(ValueError, match="install `openai` for them"):
        client.create(messages=ASKED, stream=True)
