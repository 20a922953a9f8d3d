"""A key opens one door: the agent's may ask, the judge's may judge, and neither knows of another session."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
import requests

import sessions
from loops import anthropic_client, openai_client
from serving import Server
from sessions import Gateway, Session, bearer

USER: list[Any] = [{"role": "user", "content": "Hello?"}]
VERBS: dict[str, Any] = {"reward": {"reward": 1.0}, "end": {"reward": 1.0}, "abandon": {}}


def with_key(session: Session, key: str) -> Session:
    return Session(**vars(session) | {"key": key})


def ask(session: Session) -> Any:
    with openai_client(session) as client:
        return client.chat.completions.create(model=session.model, messages=USER)


def export(session: Session, key: str) -> requests.Response:
    url = f"{session.server.url}/api/sessions/{session.id}/export"
    return requests.get(url, headers=bearer(key), timeout=10)


@pytest.mark.parametrize("verb", VERBS)
def test_the_agents_key_cannot_judge(gateway: Gateway, verb: str) -> None:
    session = gateway.open()
    for headers in (bearer(session.key), {"x-api-key": session.key}):
        url = f"{session.server.url}/api/sessions/{session.id}/{verb}"
        answer = requests.post(url, json=VERBS[verb], headers=headers, timeout=10)
        assert answer.status_code == 403 and session.reward_key not in answer.text
    view = session.view()
    assert (view["state"], view["reward"]) == ("open", None)


@pytest.mark.parametrize("verb", VERBS)
def test_no_key_cannot_judge(gateway: Gateway, verb: str) -> None:
    session = gateway.open()
    url = f"{session.server.url}/api/sessions/{session.id}/{verb}"
    assert requests.post(url, json=VERBS[verb], timeout=10).status_code == 401
    assert session.post(verb, VERBS[verb], key="rk-none").status_code == 401
    assert session.post(verb, VERBS[verb], key=session.reward_key[:-1]).status_code == 401
    assert session.view()["state"] == "open"


@pytest.mark.parametrize("verb", VERBS)
def test_a_judge_of_one_session_cannot_judge_another(gateway: Gateway, verb: str) -> None:
    session, sibling = (gateway.open(instance_id="q", slot=slot, group_size=2) for slot in range(2))
    assert sibling.post(verb, VERBS[verb], key=session.reward_key).status_code == 403
    view = sibling.view()
    assert (view["state"], view["reward"]) == ("open", None)


def test_the_judges_key_cannot_ask(gateway: Gateway) -> None:
    session = gateway.open()
    with pytest.raises(openai.AuthenticationError):
        ask(with_key(session, session.reward_key))
    judge = with_key(session, session.reward_key)
    with pytest.raises(anthropic.AuthenticationError), anthropic_client(judge) as client:
        client.messages.create(model=session.model, max_tokens=9, messages=USER)
    with pytest.raises(openai.AuthenticationError), openai_client(judge) as other:
        other.models.list()
    assert session.turns() == []


def test_an_agents_key_writes_in_its_own_session_only(gateway: Gateway) -> None:
    session, sibling = gateway.open(), gateway.open()
    gateway.engine.say("Hello.")
    ask(session)
    assert (len(session.turns()), len(sibling.turns())) == (1, 0)
    swapped = session.key.replace(session.id, sibling.id)
    with pytest.raises(openai.AuthenticationError):
        ask(with_key(session, swapped))
    assert sibling.turns() == []


def test_the_export_is_for_the_judge(gateway: Gateway) -> None:
    session, sibling = gateway.open(), gateway.open()
    assert export(session, session.reward_key).ok
    assert export(session, session.key).status_code == 403
    assert export(session, sibling.reward_key).status_code == 403
    assert export(session, "none").status_code == 401


def test_the_keys_are_told_once(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello.")
    ask(session)
    for path in ("sessions", f"sessions/{session.id}"):
        shown = requests.get(f"{session.server.url}/api/{path}", timeout=10).text
        assert session.id in shown and session.key not in shown and session.reward_key not in shown


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, house: Gateway) -> Iterator[Server]:
    """A server with a token, in front of the same engine."""
    folder: pathlib.Path = tmp_path_factory.mktemp("guarded")
    model = sessions.write_model(folder / "chatml")
    flags = ["--engine", house.engine.url, "--tokenizer", str(model), "--grammar", "qwen"]
    server = Server(folder / "yard", *flags, "--token", "s3cret")
    yield server
    server.stop()


def opened(server: Server) -> Session:
    answer = requests.post(f"{server.url}/api/sessions", json={}, headers=bearer("s3cret"), timeout=10)
    granted = sessions.told(answer)
    return Session(
        server=server,
        id=granted["session"],
        key=granted["api_key"],
        reward_key=granted["reward_key"],
        model=granted["model"],
    )


def test_a_session_is_opened_by_who_has_the_token(guarded: Server) -> None:
    assert requests.post(f"{guarded.url}/api/sessions", json={}, timeout=10).status_code == 401
    assert opened(guarded).id


def test_no_key_of_a_session_is_a_token(guarded: Server) -> None:
    session = opened(guarded)
    for key in (session.key, session.reward_key):
        for path in (
            "api/sessions",
            f"api/sessions/{session.id}",
            f"api/sessions/{session.id}/events",
            "api/runs/default/books",
            "buffer/stats",
        ):
            answer = requests.get(f"{guarded.url}/{path}", headers=bearer(key), timeout=10)
            assert answer.status_code == 401, path
        for path in ("api/sessions", "get_rollout_data", "buffer/write"):
            answer = requests.post(f"{guarded.url}/{path}", json={}, headers=bearer(key), timeout=10)
            assert answer.status_code == 401, path


def test_an_agent_asks_without_the_token(guarded: Server, gateway: Gateway) -> None:
    session = opened(guarded)
    gateway.engine.say("Hello.")
    assert ask(session).choices[0].message.content == "Hello."
    with pytest.raises(openai.AuthenticationError):
        ask(with_key(session, "s3cret"))


def test_a_judge_judges_without_the_token(guarded: Server, gateway: Gateway) -> None:
    session = opened(guarded)
    gateway.engine.say("Hello.")
    ask(session)
    assert session.post("end", {"reward": 1.0}, key=session.key).status_code in (401, 403)
    assert session.end()["state"] == "ended"


def test_who_has_the_token_judges_everything(guarded: Server, gateway: Gateway) -> None:
    session = opened(guarded)
    gateway.engine.say("Hello.")
    ask(session)
    assert session.post("end", {"reward": 1.0}, key="s3cret").ok
