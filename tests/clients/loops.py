"""An agent with one tool, through each client and framework, as their users write it.

Every one of them asks, calls the tool as often as the model wants, and gives back the model's last words.
Nothing here knows of Rollyard but for the address and the key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import agents
import anthropic
import openai
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI

from sessions import Session

SYSTEM = "You know the weather."
QUESTION = "How is the weather?"
DESCRIPTION = "The weather of a city."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": DESCRIPTION, "parameters": PARAMETERS},
}
RESPONSES_TOOL = {"type": "function", "name": "weather", "description": DESCRIPTION, "parameters": PARAMETERS}
ANTHROPIC_TOOL = {"name": "weather", "description": DESCRIPTION, "input_schema": PARAMETERS}

Loop: TypeAlias = Callable[[Session, bool], str]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"Sunny in {city}, 21 °C."


def openai_client(session: Session, **options: Any) -> openai.OpenAI:
    options = {"max_retries": 0} | options
    return openai.OpenAI(base_url=session.base_url, api_key=session.key, **options)


def anthropic_client(session: Session, **options: Any) -> anthropic.Anthropic:
    options = {"max_retries": 0} | options
    return anthropic.Anthropic(base_url=session.server.url, api_key=session.key, **options)


def chat(session: Session, streams: bool) -> str:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    with openai_client(session) as client:
        while True:
            options: dict[str, Any] = {"model": session.model, "messages": messages, "tools": [CHAT_TOOL]}
            if streams:
                with client.chat.completions.stream(**options) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**options).choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message)
            for call in message.tool_calls:
                result = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def responses_named(session: Session, streams: bool) -> str:
    """Each request names the answer that it follows, and says only what is new."""
    return _responses(session, streams, names=True)


def responses_whole(session: Session, streams: bool) -> str:
    """Each request has all items of the conversation."""
    return _responses(session, streams, names=False)


def _responses(session: Session, streams: bool, *, names: bool) -> str:
    options: dict[str, Any] = {
        "model": session.model,
        "instructions": SYSTEM,
        "tools": [RESPONSES_TOOL],
        "input": [{"role": "user", "content": QUESTION}],
    }
    with openai_client(session) as client:
        while True:
            if streams:
                with client.responses.stream(**options) as stream:
                    stream.until_done()
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**options)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            results = [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": weather(**json.loads(call.arguments)),
                }
                for call in calls
            ]
            if names:
                options |= {"input": results, "previous_response_id": response.id}
            else:
                options["input"] = [*options["input"], *response.output, *results]


def messages(session: Session, streams: bool) -> str:
    turns: list[Any] = [{"role": "user", "content": QUESTION}]
    with anthropic_client(session) as client:
        while True:
            options: dict[str, Any] = {
                "model": session.model,
                "max_tokens": 500,
                "system": SYSTEM,
                "messages": turns,
                "tools": [ANTHROPIC_TOOL],
            }
            if streams:
                with client.messages.stream(**options) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**options)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in message.content if block.type == "text")
            turns.append({"role": "assistant", "content": message.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": weather(**call.input)}
                for call in calls
            ]
            turns.append({"role": "user", "content": results})


def agents_chat(session: Session, streams: bool) -> str:
    return asyncio.run(_agents(session, streams, agents.OpenAIChatCompletionsModel))


def agents_responses(session: Session, streams: bool) -> str:
    return asyncio.run(_agents(session, streams, agents.OpenAIResponsesModel))


async def _agents(session: Session, streams: bool, kind: Callable[..., agents.Model]) -> str:
    async with openai.AsyncOpenAI(base_url=session.base_url, api_key=session.key, max_retries=0) as client:
        agent = agents.Agent(
            name="Forecaster",
            instructions=SYSTEM,
            tools=[agents.function_tool(weather)],
            model=kind(model=session.model, openai_client=client),
        )
        if not streams:
            return str((await agents.Runner.run(agent, QUESTION)).final_output)
        result = agents.Runner.run_streamed(agent, QUESTION)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


def langgraph_chat(session: Session, streams: bool) -> str:
    return _langgraph(session, streams)


def langgraph_responses(session: Session, streams: bool) -> str:
    return _langgraph(session, streams, use_responses_api=True)


def _langgraph(session: Session, streams: bool, **options: Any) -> str:
    model = ChatOpenAI(
        model=session.model,
        base_url=session.base_url,
        api_key=session.key,
        max_retries=0,
        streaming=streams,
        **options,
    )
    graph = create_agent(model, tools=[weather], system_prompt=SYSTEM)
    question: Any = {"messages": [{"role": "user", "content": QUESTION}]}
    if not streams:
        return str(graph.invoke(question)["messages"][-1].text)
    said: dict[str, str] = {}
    for chunk, _ in graph.stream(question, stream_mode="messages"):
        if isinstance(chunk, AIMessageChunk):
            said[str(chunk.id)] = said.get(str(chunk.id), "") + str(chunk.text)
    return list(said.values())[-1]


LOOPS: dict[str, Loop] = {
    loop.__name__: loop
    for loop in (
        chat,
        responses_named,
        responses_whole,
        messages,
        agents_chat,
        agents_responses,
        langgraph_chat,
        langgraph_responses,
    )
}
