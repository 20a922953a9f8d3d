"""Agents as people write them, with conversations that go on after the first answer."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

import sessions
from loops import SYSTEM, weather
from sessions import Gateway, Session

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>'
THOUGHT = "<think>\nI had better ask.\n</think>\n\n"
MODELS = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}


def forecaster(session: Session, client: openai.AsyncOpenAI, kind: str, **options: Any) -> Any:
    return agents.Agent(
        name="Forecaster",
        instructions=SYSTEM,
        tools=[agents.function_tool(weather)],
        model=MODELS[kind](model=session.model, openai_client=client),
        **options,
    )


@pytest.mark.parametrize("kind", MODELS)
def test_an_agent_of_openai_goes_on_with_what_was_said(gateway: Gateway, kind: str) -> None:
    session = gateway.open()
    gateway.engine.say(CALL, "Sunny.", CALL, "Still sunny.")

    async def talk() -> list[str]:
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key) as client:
            agent = forecaster(session, client, kind)
            first = await agents.Runner.run(agent, "How is Berlin?")
            said = [*first.to_input_list(), {"role": "user", "content": "And now?"}]
            second = await agents.Runner.run(agent, said)
            return [first.final_output, second.final_output]

    with gateway.recording(session):
        assert asyncio.run(talk()) == ["Sunny.", "Still sunny."]
    sessions.check_one_line(session)


@pytest.mark.parametrize("kind", MODELS)
def test_a_thought_is_kept_where_the_session_says_so(gateway: Gateway, kind: str) -> None:
    """The template drops earlier thoughts at a new question; with `keep`, the tokens go on all the same."""
    session = gateway.open(thoughts="keep")
    gateway.engine.say(THOUGHT + CALL, f"{THOUGHT}Sunny.", "Still sunny.")

    async def talk() -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key) as client:
            agent = forecaster(session, client, kind)
            first = await agents.Runner.run(agent, "How is Berlin?")
            await agents.Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "And now?"}])

    with gateway.recording(session):
        asyncio.run(talk())
    sessions.check_one_line(session)


def test_a_thought_is_dropped_as_the_template_says(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say(THOUGHT + CALL, f"{THOUGHT}Sunny.", "Still sunny.")

    async def talk() -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key) as client:
            agent = forecaster(session, client, "chat")
            first = await agents.Runner.run(agent, "How is Berlin?")
            await agents.Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "And now?"}])

    with gateway.recording(session) as prompts:
        asyncio.run(talk())
    cuts = [turn["cut"] for turn in session.turns()]
    assert cuts == [None, None, "the template rewrites what was said before"]
    assert "I had better ask" not in gateway.engine.decode(prompts[2])
    assert len(session.export()) == 2


def test_an_agent_of_openai_can_follow_by_name(gateway: Gateway) -> None:
    session = gateway.open()
    gateway.engine.say(CALL, "Sunny.", "Still sunny.")

    async def talk() -> Any:
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key) as client:
            agent = forecaster(session, client, "responses")
            first = await agents.Runner.run(agent, "How is Berlin?", auto_previous_response_id=True)
            return await agents.Runner.run(agent, "And now?", previous_response_id=first.last_response_id)

    with gateway.recording(session):
        assert asyncio.run(talk()).final_output == "Still sunny."
    sessions.check_one_line(session)


@pytest.mark.parametrize("kind", MODELS)
def test_an_agent_that_hands_over_begins_a_line_of_its_own(gateway: Gateway, kind: str) -> None:
    """Another agent has other instructions and tools: that is another prompt, and says so."""
    session = gateway.open()
    handoff = '<tool_call>\n{"name": "transfer_to_forecaster", "arguments": {}}\n</tool_call>'
    gateway.engine.say(handoff, CALL, "Sunny.")

    async def talk() -> Any:
        async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key) as client:
            model = MODELS[kind](model=session.model, openai_client=client)
            other = forecaster(session, client, kind)
            desk = agents.Agent(name="Desk", instructions="Hand over.", handoffs=[other], model=model)
            return await agents.Runner.run(desk, "How is Berlin?")

    with gateway.recording(session):
        assert asyncio.run(talk()).final_output == "Sunny."
    assert [turn["cut"] is None for turn in session.turns()] == [True, False, True]
    assert len(session.export()) == 2


def graph_of(session: Session, **options: Any) -> Any:
    model = ChatOpenAI(model=session.model, base_url=session.base_url, api_key=session.key, **options)
    return create_agent(model, tools=[weather], system_prompt=SYSTEM, checkpointer=InMemorySaver())


@pytest.mark.parametrize("options", [{}, {"use_responses_api": True}], ids=["chat", "responses"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_graph_goes_on_with_what_it_remembers(gateway: Gateway, options: Any, streams: bool) -> None:
    session = gateway.open()
    gateway.engine.say(CALL, "Sunny.", CALL + "\n" + CALL.replace("Berlin", "Rome"), "Sunny in both.")
    graph = graph_of(session, **options)
    config = {"configurable": {"thread_id": "1"}}
    with gateway.recording(session):
        for question in ("How is Berlin?", "And Rome?"):
            said = {"messages": [{"role": "user", "content": question}]}
            if streams:
                list(graph.stream(said, config, stream_mode=["messages", "updates"]))
            else:
                graph.invoke(said, config)
    last = graph.get_state(config).values["messages"][-1]
    assert isinstance(last, AIMessage) and last.text == "Sunny in both."
    sessions.check_one_line(session)


def test_a_graph_is_told_what_was_used(gateway: Gateway) -> None:
    session = gateway.open()
    (sampled,) = gateway.engine.say("Hello.")
    with gateway.recording(session) as prompts:
        state = graph_of(session).invoke(
            {"messages": [{"role": "user", "content": "Hi"}]}, {"configurable": {"thread_id": "1"}}
        )
    usage = state["messages"][-1].usage_metadata
    assert (usage["input_tokens"], usage["output_tokens"]) == (len(prompts[0]), len(sampled))
