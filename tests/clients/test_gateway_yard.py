"""What agents did reaches the trainer: messages, tokens, masks, log-probs and versions, as they were."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import requests

import loops
import sessions
import trainer
from loops import openai_client
from serving import Server
from sessions import Gateway, Session

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>'
FINAL = "It is sunny."


@pytest.fixture(autouse=True)
def emptied(gateway: Gateway) -> Iterator[None]:
    """Whatever other tests left is read before."""
    asyncio.run(read_all(gateway.server))
    yield


async def read_all(server: Server) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while fresh := (await trainer.get_rollout_data(server.url))[0]:
        items += fresh
    return items


def ended(gateway: Gateway, loop: str = "chat", reward: float = 0.75, **opening: Any) -> Session:
    session = gateway.open(**opening)
    gateway.engine.say(CALL, FINAL)
    gateway.engine.set(version=3)
    assert loops.LOOPS[loop](session, False) == FINAL
    gateway.engine.set(version=0)
    assert session.end(reward)["is_delivered"]
    return session


def delivered(gateway: Gateway, count: int = 1) -> list[dict[str, Any]]:
    return asyncio.run(trainer.collect(gateway.server.url, count=count))


@pytest.mark.parametrize("loop", loops.LOOPS)
def test_a_session_is_one_rollout_for_the_trainer(gateway: Gateway, loop: str) -> None:
    before = len(gateway.engine.prompts())
    session = ended(gateway, loop, instance_id="q7", extra_info={"level": 3})
    (item,) = delivered(gateway)
    assert (item["uid"], item["instance_id"], item["reward"]) == (session.id, "q7", 0.75)
    assert item["extra_info"]["level"] == 3 and item["extra_info"]["session"] == session.id
    roles = [message["role"] for message in item["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    assert item["messages"][-1]["content"] == FINAL
    assert item["messages"][3]["content"] == loops.weather("Berlin")
    (call,) = item["messages"][2]["tool_calls"]
    assert call["function"]["name"] == "weather"

    first, second = gateway.engine.prompts()[before:]
    called, said = (gateway.engine.encode(text + sessions.END) for text in (CALL, FINAL))
    between = second[len(first) + len(called) :]
    assert item["prompt_tokens"] == first
    assert item["response_tokens"] == called + between + said
    assert item["loss_mask"] == [1] * len(called) + [0] * len(between) + [1] * len(said)
    assert item["versions"] == [3] * len(called) + [-1] * len(between) + [3] * len(said)
    assert item["weight_version"] == 3
    logprobs = item["response_logprobs"]
    assert len(logprobs) == len(item["response_tokens"])
    for logprob, counts in zip(logprobs, item["loss_mask"], strict=True):
        assert logprob < 0 if counts else logprob == 0


def test_what_was_exported_is_what_is_delivered(gateway: Gateway) -> None:
    session = ended(gateway)
    (exported,) = session.export()
    (item,) = delivered(gateway)
    assert {name: item[name] for name in exported} == exported


def test_turns_can_be_rollouts_of_their_own(gateway: Gateway) -> None:
    ended(gateway, style="individual", discount=0.5)
    items = sorted(delivered(gateway, 2), key=lambda item: len(item["prompt_tokens"]))
    assert [item["reward"] for item in items] == [0.375, 0.75]
    so_far = items[0]["prompt_tokens"] + items[0]["response_tokens"]
    assert items[1]["prompt_tokens"][: len(so_far)] == so_far


def test_a_reward_of_one_answer_is_in_its_place(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("One.", "Two.")
    messages: list[Any] = [{"role": "user", "content": "Hello?"}]
    with openai_client(session) as client:
        first = client.chat.completions.create(model=session.model, messages=messages)
        messages += [first.choices[0].message, {"role": "user", "content": "And?"}]
        client.chat.completions.create(model=session.model, messages=messages)
    assert session.post("reward", {"reward": 0.25, "interaction_id": first.id}).ok
    session.end(0.5)
    (item,) = delivered(gateway)
    assert item["reward"] == 0.75
    rewarded = {at: reward for at, reward in enumerate(item["token_rewards"]) if reward}
    assert rewarded[len(gateway.engine.encode("One." + sessions.END)) - 1] == 0.25


def test_a_session_that_was_abandoned_leaves_nothing(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say("Hello.")
    with openai_client(session) as client:
        client.chat.completions.create(model=session.model, messages=[{"role": "user", "content": "Hello?"}])
    assert session.post("abandon").ok
    assert asyncio.run(read_all(gateway.server)) == []


def test_random_weights_reach_the_trainer_too(tiny_gateway: Server) -> None:
    session = sessions.open_session(tiny_gateway, sampling={"seed": 3, "max_tokens": 12})
    with openai_client(session) as client:
        question: Any = [{"role": "user", "content": "1+1"}]
        answer = client.chat.completions.create(model=session.model, messages=question)
    (exported,) = session.export()
    session.end()
    assert answer.usage is not None
    assert len(exported["response_tokens"]) == answer.usage.completion_tokens
    (item,) = asyncio.run(trainer.collect(tiny_gateway.url, count=1))
    assert item["response_tokens"] == exported["response_tokens"]
    books = requests.get(f"{tiny_gateway.url}/api/runs/default/books", timeout=10).json()
    assert books["admitted"] == 1 and books["balanced"]
