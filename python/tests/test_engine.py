"""Engines from Python: asked on many loops and threads, cancelled, interrupted, gone."""

from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import rollyard
from rollyard import GenerationConfig, ModelRequest, ModelResponse
from samples import run_python
from testengine import StartEngine, TestEngine, ask, until


def test_an_answer_is_known_to_the_token(engine: rollyard.SGLangEngine) -> None:
    engine.set_version(4)
    response = engine.generate(ask(5, 6, 7))
    assert response.input_tokens == [5, 6, 7] and response.input_len == 3
    assert response.output_len == len(response.output_tokens) == len(response.output_logprobs) == 8
    assert response.stop_reason == "length" and response.is_exact and response.latency >= response.ttft > 0
    assert response.output_versions == [response.segments[0][1]] * 8
    again = pickle.loads(pickle.dumps(response))
    assert again.output_logprobs == response.output_logprobs and again.segments == response.segments


def test_a_thousand_requests_are_answered_each_with_its_own(engine: rollyard.SGLangEngine) -> None:
    alone = [engine.generate(ask(n)).output_tokens for n in range(1, 9)]

    async def all_at_once() -> list[ModelResponse]:
        return await asyncio.gather(*(engine.agenerate(ask(1 + n % 8)) for n in range(1000)))

    for nth, response in enumerate(asyncio.run(all_at_once())):
        assert response.output_tokens == alone[nth % 8]


def test_loops_in_threads_have_their_own_answers(engine: rollyard.SGLangEngine) -> None:
    found: list[list[int]] = []

    def one_thread(token: int) -> None:
        async def ask_often() -> None:
            answers = await asyncio.gather(*(engine.agenerate(ask(token)) for _ in range(50)))
            assert all(answer.output_tokens == answers[0].output_tokens for answer in answers)
            found.append(answers[0].output_tokens)

        asyncio.run(ask_often())
        asyncio.run(ask_often())

    threads = [threading.Thread(target=one_thread, args=[token]) for token in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({tuple(tokens) for tokens in found}) == 4


def test_cancelling_the_task_reaches_the_server(engine: rollyard.SGLangEngine, server: TestEngine) -> None:
    server.set(hang=True)

    async def give_up() -> None:
        task = asyncio.create_task(engine.agenerate(ask()))
        await asyncio.to_thread(until, lambda: server.counters()["in_flight"] == 1, what="the request")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(until, lambda: server.counters()["in_flight"] == 0, what="its end")

    asyncio.run(give_up())
    server.set(hang=False)
    assert engine.generate(ask()).output_len == 8


def test_an_interrupted_answer_goes_on_with_the_new_weights(
    engine: rollyard.SGLangEngine, server: TestEngine
) -> None:
    whole = engine.generate(ask(9, max_new_tokens=12)).output_tokens
    server.set(abort_next=[5], version_grows_with_aborts=True, version=3)
    response = engine.generate(ask(9, max_new_tokens=12))
    assert response.output_tokens == whole
    assert response.segments == [(5, 3), (7, 4)]
    assert response.output_versions == [3] * 5 + [4] * 7


def test_pause_holds_and_resume_goes_on(engine: rollyard.SGLangEngine, server: TestEngine) -> None:
    engine.pause()
    answers: list[ModelResponse] = []
    thread = threading.Thread(target=lambda: answers.append(engine.generate(ask())))
    thread.start()
    engine.set_version(2)
    assert engine.get_version() == 2 and not answers
    engine.resume()
    thread.join(timeout=30)
    assert answers[0].output_len == 8


def test_servers_say_how_they_fare(start_engine: StartEngine) -> None:
    urls = [start_engine().url for _ in range(2)]
    engine = rollyard.SGLangEngine([*urls, "http://127.0.0.1:1"])
    for _ in range(6):
        engine.generate(ask())
    by_url = {status["url"].rstrip("/"): status for status in engine.servers()}
    assert sum(by_url[url]["requests"] for url in urls) == 6
    assert all(by_url[url]["healthy"] for url in urls)


def test_chat_is_text_and_is_not_passed_off_as_exact(start_engine: StartEngine) -> None:
    server = start_engine("--answer", "It is 4.")
    engine = rollyard.OpenAIEngine(server.url)
    request = ModelRequest(
        messages=[{"role": "user", "content": "2+2?"}], gconfig=GenerationConfig(max_new_tokens=9)
    )
    response = engine.generate(request)
    assert response.message is not None and response.message["content"] == "It is 4."
    assert not response.is_exact and response.output_tokens == []
    with pytest.raises(rollyard.NotExactError):
        engine.generate(ask())


def test_vllm_is_asked_in_its_words(start_engine: StartEngine) -> None:
    server = start_engine("--dialect", "vllm")
    tokens = rollyard.VLLMEngine(server.url).generate(ask(1, 2)).output_tokens
    assert tokens == rollyard.VLLMEngine(server.url).generate(ask(1, 2)).output_tokens and len(tokens) == 8


BAD: list[tuple[Any, type[Exception], str]] = [
    (ModelRequest(), rollyard.RequestError, "neither input_ids nor messages"),
    (ModelRequest(input_ids=[1], messages=[{"role": "user"}]), rollyard.RequestError, "both given"),
    (ask(n_samples=2), rollyard.RequestError, "n_samples is 2"),
    (ask(temperature=-1.0), rollyard.RequestError, "temperature"),
    (ask(max_new_tokens=0), rollyard.RequestError, "max_new_tokens"),
    (ask(max_new_tokens="many"), TypeError, "gconfig.max_new_tokens is 'many'"),
    (ask(seed="x"), TypeError, "gconfig.seed is 'x'"),
    (ModelRequest(input_ids=["x"]), TypeError, "input_ids"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("request_", "kind", "told"), BAD)
def test_a_request_that_is_none_is_not_sent(
    engine: rollyard.SGLangEngine, server: TestEngine, request_: Any, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        engine.generate(request_)

    async def awaited() -> None:
        await engine.agenerate(request_)

    with pytest.raises(kind, match=told):
        asyncio.run(awaited())
    assert server.counters()["requests"] == 0


def test_requests_of_other_programs_are_read_by_their_attributes(engine: rollyard.SGLangEngine) -> None:
    class Hyperparameters:
        n_samples, max_new_tokens, greedy, top_k, stop, stop_token_ids = 1, 5, False, int(1e8), None, [2]

    class Request:
        rid, input_ids, gconfig, tokenizer = "abc", np.array([3, 4], np.int64), Hyperparameters(), object()

    assert engine.generate(Request()).output_len <= 5  # type: ignore[arg-type]


def test_trouble_has_names(start_engine: StartEngine) -> None:
    gone = rollyard.SGLangEngine("http://127.0.0.1:1", attempts=1)
    with pytest.raises(rollyard.EngineUnreachableError, match="is it running there") as unreachable:
        gone.generate(ask())
    assert unreachable.value.may_pass and isinstance(unreachable.value, ConnectionError)
    server = start_engine("--set", '{"fail_next": 1, "fail_status": 400}')
    with pytest.raises(rollyard.EngineError, match="status 400") as refused:
        rollyard.SGLangEngine(server.url, attempts=1).generate(ask())
    assert refused.value.status == 400 and not refused.value.may_pass
    server.set(hang=True)
    with pytest.raises(rollyard.EngineTimeoutError):
        rollyard.SGLangEngine(server.url, attempts=1, request_timeout_secs=0.05).generate(ask())
    with pytest.raises(rollyard.RequestError, match="urls"):
        rollyard.SGLangEngine([])
    with rollyard.SGLangEngine(server.url) as closed:
        pass
    with pytest.raises(rollyard.EngineError, match="closed"):
        closed.generate(ask())


FORKING = """
import os, sys
import rollyard
from testengine import ask
engine = rollyard.SGLangEngine(sys.argv[1])
before = engine.generate(ask(3)).output_tokens
child = os.fork()
if child == 0:
    # Its own threads and connections, to the same server.
    os._exit(0 if rollyard.SGLangEngine(sys.argv[1]).generate(ask(3)).output_tokens == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert engine.generate(ask(3)).output_tokens == before
"""


def test_a_forked_process_samples_too(server: TestEngine) -> None:
    run_python(FORKING, server.url)


def test_a_config_is_changed_into_a_new_one() -> None:
    config = GenerationConfig(temperature=0.5)
    assert config.new(max_new_tokens=3) == GenerationConfig(temperature=0.5, max_new_tokens=3)
    assert config.max_new_tokens == 1024
