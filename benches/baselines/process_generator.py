"""A generator as one would write it in an afternoon: a process for every request that is to be on its way.

It does what the built-in math task does: reads the data set, repeats each sample, asks the engine, rewards
the answer, and writes every rollout. Workers keep their connections to the engine; the parent keeps one to
the buffer and writes what comes back, one item a request, as the service has it.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import time
import urllib.parse
from typing import Any

import rollyard

Item = dict[str, Any]


class Connection:
    """One connection that stays open."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        assert parts.hostname is not None
        self._path = parts.path.rstrip("/")
        self._http = http.client.HTTPConnection(parts.hostname, parts.port)

    def post(self, path: str, body: Item) -> Item:
        self._http.request("POST", self._path + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {text!r}")
        decoded: Item = json.loads(text)
        return decoded


def work(engine_url: str, sampling_params: Item, todo: Any, done: Any) -> None:
    engine = Connection(engine_url)
    for item in iter(todo.get, None):
        request = {"model": "custom", "messages": item["prompt"], "stream": False, **sampling_params}
        choice = engine.post("/v1/chat/completions", request)["choices"][0]
        answer = choice["message"]["content"]
        done.put(
            {
                "uid": item["uid"],
                "instance_id": item["instance_id"],
                "messages": [*item["prompt"], {"role": "assistant", "content": answer}],
                "reward": float(rollyard.verify_answer(answer, item["label"])),
                "extra_info": {
                    "label": item["label"],
                    "finish_reason": choice["finish_reason"],
                    "timestamp": str(time.time()),
                },
            }
        )
    done.put(None)


def generate(
    engine_url: str, buffer_url: str, data: list[Item], *, repeats: int, sampling_params: Item, processes: int
) -> int:
    """Makes and writes all rollouts; returns how many."""
    context = multiprocessing.get_context("fork")
    todo, done = context.Queue(), context.Queue()
    workers = [
        context.Process(target=work, args=(engine_url, sampling_params, todo, done)) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for item in data:
        for repeat in range(repeats):
            todo.put({**item, "uid": f"{item['instance_id']}-{repeat}"})
    for _ in workers:
        todo.put(None)
    buffer = Connection(buffer_url)
    written, working = 0, processes
    while working:
        item = done.get()
        if item is None:
            working -= 1
        else:
            buffer.post("/buffer/write", item)
            written += 1
    for worker in workers:
        worker.join()
    return written
